// `sandbox --runtime`: the same job, run by another runtime, with the same result as far as that can tell.
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>

#include <memory>

#include "runtimes.hpp"
#include "sandbox.hpp"

using namespace pinfold::integration;

namespace {

// Those that are installed and can hold limits here: fewer are no failure, but none is.
std::vector<std::string> usable() {
    std::vector<std::string> names;
    for (const Peer& peer : peers()) {
        if (!peer.command.empty() && peer.has_groups) names.push_back(peer.name);
    }
    return names;
}

Job job_by(const std::string& runtime, std::vector<std::string> options, const Command& command) {
    options.insert(options.begin(), {"--runtime", runtime});
    return {std::move(options), command, {}};
}

std::unique_ptr<Process> start_job(const Bundle& bundle, const std::string& runtime, const std::string& script) {
    return std::make_unique<Process>(
        bundle.verb({"sandbox", "--runtime", runtime, "--name", bundle.id(), "--", "sh", "-c", script}),
        SpawnOptions{});
}

// What a killed pinfold has left to us: all of it is about to end.
void await_orphans() {
    for (const pid_t child : children()) {
        const UniqueFd pidfd(static_cast<int>(::syscall(SYS_pidfd_open, child, 0)));
        if (pidfd) CHECK(await_readable(pidfd.get()));
    }
}

// A job that has to be ended. They run side by side, since they wait; all of them have to be checked before one of them
// goes.
struct Late {
    explicit Late(const std::string& name)
        : runtime(name),
          process(job_line(bundle, job_by(name, {"--result", "-", "--timeout", "3s"}, {"sh", "-c", "sleep 1000"})),
                  {}) {}
    void check() {
        CAPTURE(runtime);
        const Judged judged = judge(process.finish());
        CHECK(judged.status == 124);
        CHECK(judged.result["status"] == "timed_out");
    }

    std::string runtime;
    Bundle bundle;
    Process process;
};

}  // namespace

#define NEEDS_RUNTIMES() \
    NEEDS_ROOT();        \
    PINFOLD_ONLY();      \
    if (usable().empty()) SKIP_TEST("no other runtime can be used here")

static uid_t owner_of_null() {
    struct stat info {};
    REQUIRE(::stat("/dev/null", &info) == 0);
    return info.st_uid;
}

TEST_CASE("external runtime: a job's output, exit code and limits are the same") {
    NEEDS_RUNTIMES();
    for (const std::string& runtime : usable()) {
        CAPTURE(runtime);
        const Bundle bundle;
        const Command command = {"sh", "-c", "id -u; pwd; echo err >&2; touch /workspace/x && touch /usr/x; exit 3"};
        const uid_t owner = owner_of_null();
        const Judged judged = judge_job(bundle, job_by(runtime, {"--memory", "64m", "--cpus", "0.5"}, command));
        CHECK_MESSAGE(judged.status == 3, judged.err);
        CHECK(judged.result["status"] == "exited");
        CHECK(judged.result["stdout"] == "1000\n/workspace\n");
        const std::string err = judged.result["stderr"];
        CHECK(err.starts_with("err\n"));
        CHECK(err.find("/usr/x") != std::string::npos);
        CHECK(judged.result["denied"] == nullptr);
        CHECK(judged.result["usage"]["cpu_seconds"] > 0);
        CHECK(judged.result["usage"]["oom_kills"] == 0);
        CHECK(owner_of_null() == owner);  // what it had to read was not the host's own device
        CHECK(limit_of(judged.result, "memory_mb")["value"] == 64 << 20);
        CHECK(limit_of(judged.result, "network_enabled")["enforced_by"] == "namespace");
        const json disk = limit_of(judged.result, "disk_mb");
        CHECK(disk["enforced_by"] == (runtime == "runsc" ? "runtime" : "tmpfs"));
        CHECK(disk["value"] == (runtime == "runsc" ? json() : json(100 << 20)));
    }
}

TEST_CASE("external runtime: gVisor is another kernel") {
    NEEDS_RUNTIMES();
    if (!has(usable(), "runsc")) SKIP_TEST("runsc is not installed");
    const Bundle bundle;
    utsname host{};
    REQUIRE(::uname(&host) == 0);
    const Command command = {"sh", "-c", "uname -r; cat /proc/version"};
    const Ended own = run_job(bundle, {{}, command, {}});
    CHECK(own.out.starts_with(std::string(host.release) + "\n"));
    const Ended other = run_job(bundle, job_by("runsc", {}, command));
    CHECK_MESSAGE(other.status == 0, other.err);
    CHECK(other.out.find(host.release) == std::string::npos);
}

TEST_CASE("external runtime: time, output and memory end") {
    NEEDS_RUNTIMES();
    {
        std::vector<std::unique_ptr<Late>> jobs;
        for (const std::string& runtime : usable()) jobs.push_back(std::make_unique<Late>(runtime));
        for (const auto& job : jobs) job->check();
    }
    for (const std::string& runtime : usable()) {
        CAPTURE(runtime);
        const Bundle bundle;
        const Judged flood = judge_job(
            bundle, job_by(runtime, {"--output-limit", "1000"}, {"sh", "-c", "head -c 100000 /dev/zero | tr '\\0' x"}));
        CHECK(flood.status == 0);
        CHECK(flood.result["status"] == "output_limit");
        CHECK(flood.result["truncated"] == true);
        CHECK(flood.result["stdout"] == std::string(1000, 'x'));
        const Judged greedy = judge_job(
            bundle, job_by(runtime, {"--memory", "64m", "--rootfs", bundle.rootfs()}, {"/probe", "alloc", "200"}));
        CHECK(greedy.status == 137);
        CHECK(greedy.result["status"] == "oom_killed");
        CHECK(greedy.result["usage"]["oom_kills"] > 0);
    }
}

TEST_CASE("external runtime: scripts, files of the host and other roots, which are not changed") {
    NEEDS_RUNTIMES();
    for (const std::string& runtime : usable()) {
        CAPTURE(runtime);
        const Bundle bundle;
        write_text(bundle.host() / "file", "given");
        fs::permissions(bundle.host(), fs::perms::owner_all);
        Job script = job_by(
            runtime, {"--ro-bind", (bundle.host() / "file").string() + ":/data/in", "--lang", "sh", "-", "word"}, {});
        script.spawn.input = "echo \"$1 $(cat /data/in)\"; echo x > /data/in\n";
        const Ended ended = run_job(bundle, script);
        CHECK_MESSAGE(ended.out == "word given\n", ended.err);
        CHECK(read_text(bundle.host() / "file") == "given");
        const std::string before = bundle.listing();
        const Ended rooted =
            run_job(bundle, job_by(runtime, {"--rootfs", bundle.rootfs()}, {"/probe", "create", "/new", "x"}));
        CHECK_MESSAGE(rooted.out.find("\"ok\":false") != std::string::npos, rooted.out << rooted.err);
        CHECK(bundle.listing() == before);
    }
}

TEST_CASE("external runtime: signals reach the program; a second one ends it whatever it does") {
    NEEDS_RUNTIMES();
    for (const std::string& runtime : usable()) {
        CAPTURE(runtime);
        const Bundle bundle;
        const auto polite = start_job(bundle, runtime, "trap 'exit 5' TERM; echo ready; while :; do sleep 0.1; done");
        CHECK(polite->read_line() == "ready");
        polite->signal(SIGTERM);
        CHECK(polite->finish().status == 5);
        const auto stubborn =
            start_job(bundle, runtime, "trap 'echo no' TERM; echo ready; while :; do sleep 0.1; done");
        CHECK(stubborn->read_line() == "ready");
        stubborn->signal(SIGTERM);
        CHECK(stubborn->read_line() == "no");
        stubborn->signal(SIGTERM);
        CHECK(stubborn->finish().status == 128 + SIGKILL);
    }
}

TEST_CASE("external runtime: killed itself, it leaves nothing but its record") {
    NEEDS_RUNTIMES();
    for (const std::string& runtime : usable()) {
        CAPTURE(runtime);
        const Bundle bundle;
        const auto running = start_job(bundle, runtime, "echo ready; sleep 1000");
        CHECK(running->read_line() == "ready");
        CHECK(json::parse(verb(bundle, {"state", bundle.id()}).out)["status"] == "running");
        running->signal(SIGKILL);
        CHECK(running->finish().status == 128 + SIGKILL);
        await_orphans();
        CHECK(cgroups_named(bundle.id()).empty());
        CHECK(json::parse(verb(bundle, {"state", bundle.id()}).out)["status"] == "stopped");
        CHECK(verb(bundle, {"delete", bundle.id()}).status == 0);
    }
}

TEST_CASE("external runtime: what cannot be had is told, and how to get it") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    Bundle bundle;
    const auto refusal = [&](const Job& job) {
        const Ended ended = run_job(bundle, job);
        CHECK(ended.status == 125);
        CHECK(ended.out == "");
        return ended.err;
    };
    const auto has_words = [](const std::string& text, const std::string& words) {
        CHECK_MESSAGE(text.find(words) != std::string::npos, text);
    };
    const std::string absent = refusal(job_by("/nonexistent/runsc", {}, {"true"}));
    has_words(absent, "--runtime '/nonexistent/runsc': no such program is installed");
    has_words(absent, "hint: apt install runsc");
    has_words(refusal(job_by("unheard-of", {}, {"true"})), "hint: runc, crun, runsc, kata-runtime, or a path");
    has_words(refusal(job_by("/bin/false", {}, {"true"})), "/bin/false create: ended with exit code 1");
    has_words(refusal(job_by("runc", {"--writable-root"}, {"true"})), "--writable-root cannot be had with --runtime");
    has_words(refusal(job_by("runc", {"--copy-in", "/etc/passwd:/workspace/p"}, {"true"})), "--copy-in cannot");
    has_words(refusal(job_by("runc", {"--detach"}, {"true"})), "--detach: a sandbox that stays cannot");
    if (has(usable(), "runc")) has_words(refusal(job_by("runc", {}, {"/nonexistent"})), "runc create: ");
    if (has_mixed_cgroups()) has_words(refusal(job_by("crun", {}, {"true"})), "hybrid mode not supported");
    Job rootless = job_by("runc", {}, {"true"});
    rootless.spawn = normal_user(bundle);
    has_words(refusal(rootless), "only root can hand a job to another runtime");
}
