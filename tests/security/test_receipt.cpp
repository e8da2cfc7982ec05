// The receipt: what the kernel says before the payload runs. A kernel that lies is made with strace: a call is answered
// with success and not made, as if its step had been forgotten.
#include <sys/mount.h>

#include "attacks.hpp"
#include "sandbox.hpp"
#include "support/tried.hpp"

namespace pinfold::integration {

namespace {

constexpr const char* kStrace = "/usr/bin/strace";

std::vector<std::string> with_lie(const std::string& call, const std::vector<std::string>& words,
                                  const std::string& when = "1+") {
    std::vector<std::string> line = {kStrace,
                                     "-f",
                                     "-qq",
                                     "-o",
                                     "/dev/null",
                                     "-e",
                                     "trace=" + call,
                                     "-e",
                                     "inject=" + call + ":retval=0:when=" + when};
    line.insert(line.end(), words.begin(), words.end());
    return line;
}

// strace gives up where a process that it has just seen stopped is killed ("ptrace(PTRACE_LISTEN): Input/output
// error"). That says nothing of pinfold, which goes down with it: what it leaves is removed, and the lie is told once
// more.
Ended run_with_lie(const Bundle& bundle, const std::string& call, const std::vector<std::string>& words,
                   const std::string& when = "1+") {
    for (int tries = 1;; ++tries) {
        Ended ended = run_program(with_lie(call, words, when));
        if (tries == 5 || ended.err.find("strace: ptrace(") == std::string::npos) return ended;
        run_program(bundle.verb({"delete", "--force", bundle.id()}));
    }
}

std::vector<std::string> job_words(const Bundle& bundle, const std::vector<std::string>& options) {
    std::vector<std::string> words = bundle.verb({"sandbox", "--name", bundle.id()});
    words.insert(words.end(), options.begin(), options.end());
    words.insert(words.end(), {"--", "echo", "it runs"});
    return words;
}

const json* line_of(const json& receipt, const std::string& name) {
    for (const json& line : receipt) {
        if (line["name"] == name) return &line;
    }
    return nullptr;
}

bool all_hold(const json& receipt) {
    for (const json& line : receipt) {
        if (line["holds"] != true) return false;
    }
    return !receipt.empty();
}

struct Lie {
    const char* call;
    const char* when;  // which of a process's calls
    const char* line;
};

// In a sandbox. Others, such as prctl, are noticed by the steps that follow.
constexpr Lie kLies[] = {
    {"capset", "1+", "capabilities.permitted"},
    {"mount_setattr", "1+", "readonly_paths"},
    {"unshare", "1+", "namespaces"},
    {"setresgid", "2", "group"},
};

}  // namespace

TEST_CASE("receipt: a sandbox's result says what the kernel says") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    Bundle bundle;
    const json receipt = judge_job(bundle, {{"--receipt", "--memory", "64m"}, {"true"}, {}}).result["receipt"];
    CAPTURE(receipt.dump(1));
    CHECK(all_hold(receipt));
    for (const char* name : {"user",
                             "group",
                             "groups",
                             "capabilities.bounding",
                             "capabilities.effective",
                             "capabilities.permitted",
                             "capabilities.inheritable",
                             "capabilities.ambient",
                             "no_new_privs",
                             "seccomp.mode",
                             "seccomp.filters",
                             "RLIMIT_NPROC",
                             "uid_map",
                             "gid_map",
                             "namespaces",
                             "root",
                             "mounts",
                             "masked_paths",
                             "readonly_paths",
                             "cgroup"}) {
        CAPTURE(name);
        CHECK(line_of(receipt, name) != nullptr);
    }
    CHECK((*line_of(receipt, "capabilities.effective"))["found"] == "0000000000000000");
    CHECK((*line_of(receipt, "no_new_privs"))["found"] == "1");
    CHECK((*line_of(receipt, "seccomp.mode"))["found"] == "2");
    const json* memory = line_of(receipt, has_controller("memory") ? "memory.max" : "memory.limit_in_bytes");
    REQUIRE(memory != nullptr);
    CHECK((*memory)["found"] == std::to_string(64 << 20));
}

TEST_CASE("receipt: a normal user's sandbox has one, too") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    Bundle bundle;
    const SpawnOptions user = normal_user(bundle);
    const json receipt = judge_job(bundle, {{"--receipt"}, {"true"}, user}).result["receipt"];
    CAPTURE(receipt.dump(1));
    CHECK(all_hold(receipt));
    CHECK(line_of(receipt, "masked_paths") != nullptr);
}

TEST_CASE("receipt: a step that the kernel did not take is noticed, and nothing runs") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    if (!fs::exists(kStrace)) SKIP_TEST("needs strace");
    const Bundle bundle;
    for (const Lie& lie : kLies) {
        CAPTURE(lie.call);
        const Ended strict = run_with_lie(bundle, lie.call, job_words(bundle, {}), lie.when);
        CAPTURE(strict.err);
        WITHSTANDS(lie.call, strict.status == 125 && strict.out.empty());
        CHECK(strict.err.find("receipt: not as planned: ") != std::string::npos);
        CHECK(strict.err.find(std::string(lie.line) + ": planned ") != std::string::npos);
        CHECK(strict.err.find("hint: ") != std::string::npos);
    }
}

TEST_CASE("receipt: with --no-strict it is only told") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    if (!fs::exists(kStrace)) SKIP_TEST("needs strace");
    const Bundle bundle;
    const std::string file = bundle.host() / "result";
    const Ended ended = run_with_lie(bundle, "mount_setattr", job_words(bundle, {"--no-strict", "--result", file}));
    CAPTURE(ended.err);
    CHECK(ended.out == "it runs\n");
    const json receipt = json::parse(read_text(file))["receipt"];
    const json* line = line_of(receipt, "readonly_paths");
    REQUIRE(line != nullptr);
    CHECK((*line)["holds"] == false);
    CHECK((*line)["found"].get<std::string>().find("not /proc/") != std::string::npos);
}

TEST_CASE("receipt: a mount without one of the flags that it was to have is noticed") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    if (!fs::exists(kStrace)) SKIP_TEST("needs strace");
    for (const char* option :
         {"ro", "nosuid", "nodev", "noexec", "noatime", "nodiratime", "nosymfollow", "rro", "rnosuid", "rnodev",
          "rnoexec", "rnoatime", "rnodiratime", "rnosymfollow", "strictatime"}) {
        Bundle bundle;
        CAPTURE(option);
        fs::create_directories(bundle.host() / "source");
        const MountGuard source("source", bundle.host() / "source", "tmpfs", MS_RELATIME);
        source.set_propagation(MS_SHARED);
        bundle.bind(bundle.host() / "source", "/data", {option}).probe({"print", "it runs"});
        bundle.config["linux"]["readonlyPaths"] = json::array();
        const RunOptions strict{.args = {"--strict"}};
        CHECK(run(bundle, strict).status == 0);
        // The first two cut the container off from the host's mounts.
        const Ended ended = run_with_lie(bundle, "mount_setattr", bundle.command_line(strict), "3+");
        CAPTURE(ended.status);
        CAPTURE(ended.err);
        WITHSTANDS(option, is_refused(ended, "mounts: planned 7 in place, the kernel says 6 in place, not /data"));
    }
}

TEST_CASE("receipt: a flag for a whole tree that a mount below does not have is noticed") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    if (!fs::exists(kStrace)) SKIP_TEST("needs strace");
    Bundle bundle;
    const fs::path below = bundle.host() / "below";
    fs::create_directories(below);
    // The top has the flag already, so that only what lies below can tell.
    const MountGuard top("top", bundle.host(), "tmpfs", MS_NOEXEC | MS_NODEV);
    fs::create_directories(below);
    const MountGuard mount("below", below, "tmpfs", MS_NODEV);
    fs::create_directories(bundle.host() / "own");
    bundle.bind(bundle.host(), "/data", {"rbind", "rnoexec"}).mount("/data/own", "tmpfs", "tmpfs", {});
    bundle.config["linux"]["maskedPaths"].push_back("/data/below");
    bundle.config["linux"]["readonlyPaths"] = json::array();
    bundle.probe({"print", "it runs"});
    const RunOptions strict{.args = {"--strict"}};
    CHECK(run(bundle, strict).status == 0);
    bundle.config["linux"]["maskedPaths"].erase(bundle.config["linux"]["maskedPaths"].size() - 1);
    CHECK(run(bundle, strict).status == 0);
    const Ended ended = run_with_lie(bundle, "mount_setattr", bundle.command_line(strict), "3+");
    WITHSTANDS("rnoexec below", is_refused(ended, "mounts: planned 8 in place, the kernel says 7 in place, not /data"));
}

TEST_CASE("receipt: bundles have one with --strict or the annotation, in run, create and exec") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    if (!fs::exists(kStrace)) SKIP_TEST("needs strace");
    Bundle bundle;
    bundle.config["linux"]["seccomp"] = {{"defaultAction", "SCMP_ACT_ALLOW"}};
    CHECK(report_of(bundle, {.args = {"--strict"}})["seccomp"]["mode"] == 2);
    RunOptions strict{.args = {"--strict"}};
    WITHSTANDS("seccomp", run_with_lie(bundle, "seccomp", bundle.command_line(strict)).status == 1);
    const Ended told = run_with_lie(bundle, "seccomp", bundle.command_line(strict));
    check_refused(told, "receipt: not as planned: seccomp.mode: planned 2, the kernel says 0");
    CHECK(run_with_lie(bundle, "seccomp", bundle.command_line({})).status == 0);

    bundle.config["annotations"] = {{"org.pinfold.strict", "true"}};
    bundle.probe({"wait-signal"});
    const Container container(bundle, Container::As::running);
    CHECK(container.exec_report()["seccomp"]["mode"] == 2);
    WITHSTANDS(
        "seccomp in exec",
        run_program(with_lie("seccomp", bundle.verb({"exec", bundle.id(), "/probe", "print", "x"}))).status != 0);
}

TEST_CASE("receipt: a limit that was changed between create and start is noticed at start") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    const bool unified = has_controller("pids");
    if (!unified && cgroup1_mount("pids").empty()) SKIP_TEST("no cgroup here limits processes");
    Bundle bundle;
    bundle.config["annotations"] = {{"org.pinfold.strict", "true"}};
    bundle.config["linux"]["resources"]["pids"] = {{"limit", 20}};
    bundle.probe({"print", "it runs"});
    const Container container(bundle, Container::As::created);
    const fs::path group = (unified ? cgroup2_mount() : cgroup1_mount("pids")) / "pinfold" / bundle.id();
    write_text(group / "pids.max", "max");
    const Ended ended = verb(bundle, {"start", bundle.id()});
    WITHSTANDS("pids.max", ended.status == 1 && ended.out.empty());
    CHECK(ended.err.find("pids.max: planned 20, the kernel says max") != std::string::npos);
}

TEST_CASE("receipt: limits that were updated between create and start are those that are due") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    const bool unified = has_controller("pids");
    if (!unified && cgroup1_mount("pids").empty()) SKIP_TEST("no cgroup here limits processes");
    const bool has_memory = has_controller("memory") || !cgroup1_mount("memory").empty();
    Bundle bundle;
    bundle.config["annotations"] = {{"org.pinfold.strict", "true"}};
    bundle.config["linux"]["resources"]["pids"] = {{"limit", 50}};
    if (has_memory) bundle.config["linux"]["resources"]["memory"] = {{"limit", 64 << 20}};
    bundle.probe({"wait-signal"});
    const fs::path group = (unified ? cgroup2_mount() : cgroup1_mount("pids")) / "pinfold" / bundle.id();
    {
        const Container container(bundle, Container::As::created);
        container.must({"update", "--pids-limit", "80", bundle.id()});
        container.must({"update", "--pids-limit", "100", bundle.id()});
        if (has_memory) container.must({"update", "--memory", "96m", bundle.id()});
        container.must({"start", bundle.id()});
        CHECK(container.status() == "running");
        CHECK(read_text(group / "pids.max") == "100\n");
    }
    // What was never asked for is noticed as before: with the number that is due by then.
    const Container container(bundle, Container::As::created);
    container.must({"update", "--pids-limit", "100", bundle.id()});
    write_text(group / "pids.max", "50");
    const Ended ended = verb(bundle, {"start", bundle.id()});
    WITHSTANDS("pids.max", ended.status == 1);
    CHECK_MESSAGE(ended.err.find("pids.max: planned 100, the kernel says 50") != std::string::npos, ended.err);
}

TEST_CASE("receipt: limits that the kernel rounds, or that are said twice, are as planned") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    const bool unified = has_controller("memory") && has_controller("cpu");
    if (!unified && (cgroup1_mount("memory").empty() || cgroup1_mount("cpu").empty()))
        SKIP_TEST("no cgroup here limits memory and processors");
    Bundle bundle;
    bundle.probe({"print", "it runs"});
    const auto runs_strictly = [&] {
        const Outcome outcome = run(bundle, {.args = {"--strict"}});
        CHECK_MESSAGE((outcome.status == 0 && outcome.says("it runs")), outcome.err);
    };
    json& resources = bundle.config["linux"]["resources"];
    resources["memory"] = {{"limit", (64 << 20) + 100}};
    resources["cpu"] = {{"shares", 1}};
    runs_strictly();
    if (!unified) return;
    resources["cpu"]["idle"] = 1;  // takes the weight away
    // One that can only be written to is among them.
    resources["unified"] = {{"memory.max", "33554432"}, {"memory.reclaim", "0"}};
    runs_strictly();
}

TEST_CASE("receipt: it is in the audit log") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    Bundle bundle;
    const std::string log = bundle.host() / "log";
    std::vector<std::string> words = runtime_command();
    words.insert(words.end(),
                 {"--root", bundle.state_root(), "--audit", log, "sandbox", "--name", bundle.id(), "--", "true"});
    REQUIRE(run_program(words).status == 0);
    std::istringstream lines(read_text(log));
    json receipt;
    for (std::string line; std::getline(lines, line);) {
        const json event = json::parse(line);
        if (event["event"] == "receipt") receipt = event["lines"];
    }
    CHECK(all_hold(receipt));
}

}  // namespace pinfold::integration
