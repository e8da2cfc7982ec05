// A program that uses libpinfold as anybody would, from a thread of its own while others run. Prints what went wrong.
#include <pinfold/generate.hpp>
#include <pinfold/mount_policy.hpp>
#include <pinfold/resource_limits.hpp>
#include <pinfold/sandbox.hpp>
#include <pinfold/seccomp_profile.hpp>

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

using namespace pinfold;

namespace {

int failures = 0;

void check(bool ok, const char* what, const std::string& found = "") {
    if (ok) return;
    std::fprintf(stderr, "consumer: %s: %s\n", what, found.c_str());
    ++failures;
}

void run_jobs(const RunnerOptions& options, const std::string& directory) {
    const SandboxRunner runner(options);
    SandboxJob job;
    job.limits.memory_mb = 128;
    job.limits.timeout_seconds = 20;
    const SandboxResult code = runner.run_code("sh", "echo $((6 * 7)); exit 3", job);
    check(code.status == SandboxStatus::exited && code.exit_code == 3 && code.out == "42\n", "run_code", to_json(code));
    const SandboxResult denied = runner.run_command({"unshare", "-m", "true"}, job);
    check(denied.denied && denied.denied->size() == 1 && denied.denied->front().name == "unshare", "denied",
          to_json(denied));
    job.limits.timeout_seconds = 0.3;
    const SandboxResult late = runner.run_command({"sleep", "100"}, job);
    check(late.status == SandboxStatus::timed_out && exit_code_of(late) == 124, "timeout", to_json(late));
    // Files of its own come out, whatever end it came to, and tell what did not.
    job.copy_out = {{"out-*", directory + "/made"}, {"none", directory + "/none"}};
    const SandboxResult made = runner.run_command({"sh", "-c", "echo text > out-1; sleep 100"}, job);
    check(made.status == SandboxStatus::timed_out && std::ifstream(directory + "/made/out-1").good(), "copy_out",
          to_json(made));
    check(made.copy_failures.size() == 1 && made.copy_failures[0].source == "none", "copy_failures", to_json(made));
    const SandboxResult unknown = runner.run_code("cobol", "", {});
    check(unknown.status == SandboxStatus::setup_failed && !unknown.error.empty(), "unknown language");
}

// The words of the events in an audit log.
std::string events_in(const std::string& log) {
    const std::string key = "\"event\":\"";
    std::ifstream file(log);
    std::string events;
    for (std::string line; std::getline(file, line);) {
        const size_t begin = line.find(key) + key.size();
        events += line.substr(begin, line.find('"', begin) - begin) + " ";
    }
    return events;
}

void use_a_sandbox(RunnerOptions options, const std::string& directory) {
    options.audit = directory + "/audit-" + std::to_string(::getpid());
    Result<Sandbox> box = Sandbox::start({}, options);
    check(box.has_value(), "start", box ? "" : box.error().message);
    if (!box) return;
    const std::string bytes("a\0b\xff", 4);
    check(box->write_file("/workspace/in", bytes).has_value(), "write_file");
    const SandboxResult copied = box->exec({"cp", "in", "out"});
    check(copied.exit_code == 0, "exec", to_json(copied));
    const SandboxResult shown = box->exec({"cat", "out"});
    check(shown.out == bytes, "bytes in the result", to_json(shown));
    const Result<std::string> read = box->read_file("/workspace/out");
    check(read && *read == bytes, "read_file");
    check(!box->read_file("/workspace/out", 2).has_value(), "read_file of more than it may");
    const Result<void> taken = box->copy_from("/workspace/out", directory + "/out");
    check(taken.has_value(), "copy_from", taken ? "" : taken.error().message);
    check(box->copy_to(directory + "/out", "/workspace/again").has_value(), "copy_to");
    check(!box->copy_to("/etc/shadow", "/workspace/").has_value(), "copy_to of a forbidden file");
    const Result<void> gone = box->cleanup();
    check(gone.has_value(), "cleanup", gone ? "" : gone.error().message);
    check(box->exec({"true"}).status == SandboxStatus::setup_failed, "exec after cleanup");
    const std::string events = events_in(options.audit);  // three of which say what was wrong
    check(events ==
              "sandbox copy exec receipt exec-end exec receipt exec-end copy copy copy copy copy copy copy policy "
              "delete ",
          "audit", events);
}

// A caller that has closed its streams: no descriptor of the library's takes their place in the sandbox.
void run_without_streams(const RunnerOptions& options) {
    int kept[3];
    for (int number = 0; number < 3; ++number) kept[number] = ::fcntl(number, F_DUPFD_CLOEXEC, 100);
    for (int number = 0; number < 3; ++number) ::close(number);
    SandboxJob job;
    job.command = {"sh", "-c", "for n in 0 1 2; do readlink /proc/$$/fd/$n; done | cat > f; mv f fds; sleep 1000"};
    Result<Sandbox> box = Sandbox::start(job, options);
    const SandboxResult shown =
        box ? box->exec({"sh", "-c", "until cat fds 2>&-; do sleep 0.1; done"}, {.timeout = std::chrono::seconds(20)})
            : SandboxResult{};
    const std::string failed = box ? "" : box.error().message;
    for (int number = 0; number < 3; ++number) ::dup2(kept[number], number);
    check(shown.out.starts_with("/dev/null\npipe:["), "closed streams", failed + to_json(shown));  // its monitor's
}

// One that stays with a command: its output and its end are there for whoever comes later.
void wait_for_a_sandbox(const RunnerOptions& options) {
    SandboxJob job;
    job.command = {"sh", "-c", "echo out; echo err >&2; exit 3"};
    const Result<Sandbox> box = Sandbox::start(job, options);
    check(box.has_value(), "start with a command", box ? "" : box.error().message);
    if (!box) return;
    const SandboxResult ended = box->wait();
    check(ended.exit_code == 3 && ended.out == "out\n" && ended.err == "err\n", "wait", to_json(ended));
    const Result<Sandbox::Output> output = box->output();
    check(output && output->out == "out\n" && output->err == "err\n", "output");
    job.command = {"sleep", "1000"};
    const Result<Sandbox> other = Sandbox::start(job, options);
    if (other) {
        ExecLimits limits;
        limits.session = "one";
        other->exec({"cd /usr"}, limits);
        const SandboxResult shown = other->exec({"pwd"}, limits);
        check(shown.out == "/usr\n", "session", to_json(shown));
    }
    const Result<void> stopped = other ? other->stop(std::chrono::seconds(5)) : Result<void>(other.error());
    check(stopped.has_value(), "stop", stopped ? "" : stopped.error().message);
    if (other) check(other->wait().stopped_by == "stop", "what stopped it", to_json(other->wait()));
    SandboxJob brief;
    brief.limits.timeout_seconds = 0.3;
    const SandboxResult late = SandboxRunner(options).run_command({"sleep", "100"}, brief);
    check(explain(late).size() == 1 && late.stopped_by == "timeout_seconds", "explain", to_json(late));
}

// One that keeps its files: they are there when it has stopped, when it is started again, and for the next one.
void keep_files(const RunnerOptions& options, const std::string& directory) {
    SandboxJob job;
    job.keep_files = directory + "/kept-" + std::to_string(::getpid());
    {
        const Result<Sandbox> box = Sandbox::start(job, options);
        check(box.has_value(), "start with kept files", box ? "" : box.error().message);
        if (!box) return;
        check(box->write_file("/workspace/in", "text").has_value(), "write_file");
        check(!box->restart().has_value(), "restart of one that runs");
        check(box->stop().has_value(), "stop");
        const Result<std::string> left = box->read_file("/workspace/in");
        check(left && *left == "text", "read_file of one that has stopped", left ? *left : left.error().message);
        const Result<void> again = box->restart();
        check(again.has_value(), "restart", again ? "" : again.error().message);
        check(box->exec({"cat", "in"}).out == "text", "what was kept");
    }
    const Result<Sandbox> next = Sandbox::start(job, options);
    check(next && next->exec({"cat", "in"}).out == "text", "what was kept for the next one");
}

// Twice: in the worker and here.
void keep_much_output(const RunnerOptions& options) {
    constexpr long kCaptured = 16 << 20;
    const auto most = [](int who) {
        rusage usage{};
        ::getrusage(who, &usage);
        return usage.ru_maxrss * 1024;
    };
    const long own = most(RUSAGE_SELF);
    const SandboxResult much =
        SandboxRunner(options).run_command({"sh", "-c", "head -c 16777216 /dev/zero | tr '\\0' '\\1'"});
    SandboxJob greedy;
    greedy.output_limit = (256 << 20) + 1;
    const SandboxResult refused = SandboxRunner(options).run_command({"true"}, greedy);
    check(refused.status == SandboxStatus::setup_failed && refused.error.find("output_limit") != std::string::npos,
          "too much output", refused.error);
    check(much.out == std::string(kCaptured, '\1'), "much output", std::to_string(much.out.size()));
    const long here = most(RUSAGE_SELF) - own, there = most(RUSAGE_CHILDREN);
    check(here < 5 * kCaptured && there < 6 * kCaptured, "memory", std::to_string(here) + " " + std::to_string(there));
}

void generate_a_config() {
    GenerateOptions options;
    const Result<Seccomp> profile = find_profile("strict");
    check(profile.has_value(), "find_profile");
    if (profile) options.seccomp = *profile;
    const std::string config = config_json(generate(ResourceLimits{}, options));
    check(config.find("\"noNewPrivileges\": true") != std::string::npos, "generate");
    check(!parse_resource_limits("{\"memory_mb\": 0}", "here").has_value(), "limits");
    check(!open_allowed(MountPolicy{}, "/etc/shadow", Access::read).has_value(), "MountPolicy");
}

}  // namespace

// consumer STATE-ROOT DIRECTORY
int main(int argc, char** argv) {
    if (argc != 3) return 2;
    const RunnerOptions options{argv[1], "", ""};
    std::atomic<bool> done = false;
    // Another thread that allocates all the time: a fork in the wrong way would find its lock taken.
    std::thread busy([&] {
        while (!done) std::vector<std::string>(100, "busy");
    });
    run_jobs(options, argv[2]);
    use_a_sandbox(options, argv[2]);
    run_without_streams(options);
    wait_for_a_sandbox(options);
    keep_files(options, argv[2]);
    keep_much_output(options);
    generate_a_config();
    done = true;
    busy.join();
    return failures == 0 ? 0 : 1;
}
