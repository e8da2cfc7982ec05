// What stopped a job: the closing line, the limits that it has met, and exit codes.
#include <signal.h>
#include <unistd.h>

#include "sandbox.hpp"
#include "terminal.hpp"

using namespace pinfold::integration;

namespace {

struct Case {
    std::vector<std::string> options;
    Command command;
    int status;
    std::string stopped_by;  // empty: nothing
    std::string hit;         // the limit that was met
    std::string line;
};

const char* const kForks =
    "import os\n"
    "for i in range(50):\n"
    "  try:\n"
    "    if os.fork() == 0: os.execvp('sleep', ['sleep', '100'])\n"
    "  except OSError: pass\n";

const Case kCases[] = {
    {{"--timeout", "1s"}, {"sleep", "100"}, 124, "timeout_seconds", "timeout_seconds", ": --timeout 1s\n"},
    {{"--cpu-timeout", "1s"},
     {"sh", "-c", "while :; do :; done"},
     124,
     "cpu_timeout_seconds",
     "cpu_timeout_seconds",
     " of processor time: --cpu-timeout 1s\n"},
    {{"--disk", "20m"},
     {"sh", "-c", "cat /dev/zero > /workspace/f 2> /dev/null; exit 3"},
     3,
     "",
     "disk_mb",
     "pinfold: disk 20 MB was full\n"},
};

// These take a group that counts.
const Case kCounted[] = {
    {{"--memory", "64m"},
     {"python3", "-c", "x = bytearray(200 << 20)"},
     137,
     "memory_mb",
     "memory_mb",
     "pinfold: out of memory: 64 MB (peak 6"},
    {{"--memory", "64m"},
     {"sh", "-c", "python3 -c 'x = bytearray(200 << 20)'; exit 0"},
     0,
     "",
     "memory_mb",
     "pinfold: memory limit 64 MB was hit once (peak 6"},
    {{"--pids", "20"},
     {"python3", "-c", kForks},
     0,
     "",
     "max_processes",
     "pinfold: process limit 20 was hit 31 times\n"},
};

void check_case(const Bundle& bundle, const Case& one, const SpawnOptions& spawn) {
    CAPTURE(one.line);
    std::vector<std::string> options = one.options;
    options.emplace_back("--verbose");
    const Judged judged = judge_job(bundle, {options, one.command, spawn});
    CHECK(judged.status == one.status);
    CHECK(judged.result["stopped_by"] == (one.stopped_by.empty() ? json() : json(one.stopped_by)));
    CHECK(limit_of(judged.result, one.hit)["hit"] > 0);
    CHECK_MESSAGE(judged.err.find(one.line) != std::string::npos, judged.err);
}

}  // namespace

TEST_CASE("stopped: a limit that a job has met is counted, and told in a line") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    for (const bool rootless : {false, true}) {
        CAPTURE(rootless);
        Bundle bundle;
        const SpawnOptions spawn = rootless ? normal_user(bundle) : SpawnOptions{};
        for (const Case& one : kCases) check_case(bundle, one, spawn);
        for (const Case& one : kCounted) {
            if (!rootless) check_case(bundle, one, spawn);
        }
        const Judged well = judge_job(bundle, {{}, {"true"}, spawn});
        CHECK(well.err == "");
        CHECK(well.result["stopped_by"] == nullptr);
        CHECK(limit_of(well.result, "timeout_seconds")["hit"] == 0);
        CHECK(limit_of(well.result, "disk_mb")["hit"] == 0);
        CHECK(limit_of(well.result, "max_processes")["hit"] == (rootless ? json() : json(0)));
    }
}

TEST_CASE("stopped: a job cannot pretend that its processor time was over") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    for (const bool rootless : {false, true}) {
        CAPTURE(rootless);
        Bundle bundle;
        const SpawnOptions spawn = rootless ? normal_user(bundle) : SpawnOptions{};
        const Judged judged = judge_job(bundle, {{"--cpu-timeout", "100s"}, {"sh", "-c", "kill -XCPU $$"}, spawn});
        CHECK(judged.status == 128 + SIGXCPU);
        CHECK(judged.result["status"] == "signaled");
        CHECK(judged.result["stopped_by"] == nullptr);
        CHECK(limit_of(judged.result, "cpu_timeout_seconds")["hit"] == 0);
    }
}

TEST_CASE("stopped: the processor time of a job that was killed is what it had used when it lived") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    Bundle bundle;
    const SpawnOptions user = normal_user(bundle);
    const std::string busy = "import time\nwhile time.process_time() < 0.3: pass";
    const Command command = {"sh", "-c", "python3 -c '" + busy + "'; sleep 100"};
    for (int i = 0; i < 5; ++i) {
        const Judged judged = judge_job(bundle, {{"--timeout", "3s"}, command, user});
        CHECK(judged.result["status"] == "timed_out");
        CHECK(judged.result["usage"]["cpu_seconds"] >= 0.2);
    }
}

TEST_CASE("stopped: a job that ended in its time is not told as late where its supervisor was") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    const Bundle bundle;
    const std::string result = bundle.host() / "result";
    const std::string script = "echo on; until [ -e /b/go ]; do sleep 0.02; done; exit 7";
    Process job(job_line(bundle, {{"--timeout", "3s", "--result", result, "--ro-bind", bundle.host().string() + ":/b"},
                                  {"sh", "-c", script},
                                  {}}),
                {});
    CHECK(job.read_line() == "on");
    job.signal(SIGSTOP);
    write_text(bundle.host() / "go", "");
    ::usleep(3'100'000);  // the time itself is what is tested
    job.signal(SIGCONT);
    CHECK(job.finish().status == 7);
    const json told = json::parse(read_text(result));
    CHECK(told["status"] == "exited");
    CHECK(told["stopped_by"] == nullptr);
}

TEST_CASE("stopped: the line comes on a terminal, and nowhere else without --verbose") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    const Bundle bundle;
    CHECK(run_job(bundle, {{"--timeout", "1s"}, {"sleep", "100"}, {}}).err == "");
    Terminal terminal(24, 80);
    Process job(job_line(bundle, {{"--timeout", "1s"}, {"sleep", "100"}, {}}), {.fds = {{2, terminal.slave()}}});
    CHECK(terminal.read_line().find(": --timeout 1s") != std::string::npos);
    CHECK(job.finish().status == 124);
    const Ended well = run_job(bundle, {{"-v"}, {"sh", "-c", "exit 3"}, {}});
    CHECK_MESSAGE(well.err.starts_with("pinfold: exited with 3 after "), well.err);
}

TEST_CASE("stopped: an exec says so as well") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    const Bundle bundle;
    const DetachedSandbox box(bundle, {});
    const Ended ended = box.exec({"-v", "--timeout", "1s"}, {"sleep", "100"});
    CHECK(ended.status == 124);
    CHECK_MESSAGE(ended.err.find(": --timeout 1s\n") != std::string::npos, ended.err);
    const json result = box.judge({"--timeout", "1s"}, {"sleep", "100"});
    CHECK(result["stopped_by"] == "timeout_seconds");
    CHECK(limit_of(result, "timeout_seconds")["hit"] == 1);
}

TEST_CASE("stopped: a call that was denied right before a failure is a hint") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    const Bundle bundle;
    const Judged failed = judge_job(bundle, {{"-v"}, {"unshare", "-m", "true"}, {}});
    CHECK(failed.result.value("hint", "").find("denied unshare") != std::string::npos);
    CHECK_MESSAGE(failed.err.find("pinfold: hint: ") != std::string::npos, failed.err);
    CHECK_FALSE(judge_job(bundle, {{}, {"sh", "-c", "unshare -m; exit 0"}, {}}).result.contains("hint"));
    CHECK_FALSE(judge_job(bundle, {{}, {"sh", "-c", "unshare -m; sleep 1; exit 1"}, {}}).result.contains("hint"));
}

TEST_CASE("stopped: a failure at the limit of memory is a hint where an rlimit refuses what is above it") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    if (pinfold::testing::sanitised()) SKIP_TEST("the sanitizers take more memory than a job of a normal user has");
    Bundle bundle;
    const SpawnOptions user = normal_user(bundle);
    const Command eats = {"perl", "-e", "push @kept, 'x' x 100000 while 1"};
    const Judged failed = judge_job(bundle, {{"-v", "--memory", "64m"}, eats, user});
    CHECK(failed.status != 0);
    if (failed.result["status"] != "oom_killed") {  // it may have been seen before it was refused
        CHECK(failed.result.value("hint", "").find(" of its memory, 64 MB") != std::string::npos);
        CHECK_MESSAGE(failed.err.find("hint: it had used 6") != std::string::npos, failed.err);
    }
    // One large piece that is refused is never used.
    const Judged large =
        judge_job(bundle, {{"--memory", "64m"}, {"perl", "-e", "$x = 'x' x 45_000_000; $y = 'y' x 45_000_000"}, user});
    CHECK(large.status != 0);
    if (large.result["status"] != "oom_killed")
        CHECK(large.result.value("hint", "").find("may have been refused more") != std::string::npos);
    const Command little = {"perl", "-e", "$x = 'x' x 10_000_000; exit 1"};
    CHECK_FALSE(judge_job(bundle, {{"--memory", "64m"}, little, user}).result.contains("hint"));
    const Command well = {"perl", "-e", "eval { push @kept, 'x' x 100000 while @kept < 480 }; exit 0"};
    CHECK_FALSE(judge_job(bundle, {{"--memory", "64m"}, well, user}).result.contains("hint"));
}

TEST_CASE("stopped: a receipt is in the result where it is asked for; its digest always is") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    for (const bool rootless : {false, true}) {
        CAPTURE(rootless);
        Bundle bundle;
        const SpawnOptions spawn = rootless ? normal_user(bundle) : SpawnOptions{};
        const json without = judge_job(bundle, {{}, {"true"}, spawn}).result;
        CHECK(without["receipt"] == nullptr);
        CHECK(without["receipt_sha256"].get<std::string>().size() == 64);
        const json with = judge_job(bundle, {{"--receipt"}, {"true"}, spawn}).result;
        CHECK(with["receipt"].size() > 10);
        CHECK(with["receipt_sha256"].get<std::string>().size() == 64);
    }
}

TEST_CASE("stopped: a program that is not there is 127, one that cannot be executed 126, all else 125") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    for (const bool rootless : {false, true}) {
        CAPTURE(rootless);
        Bundle bundle;
        const SpawnOptions spawn = rootless ? normal_user(bundle) : SpawnOptions{};
        CHECK(run_job(bundle, {{}, {"no-such-program"}, spawn}).status == 127);
        CHECK(run_job(bundle, {{}, {"/no/such/program"}, spawn}).status == 127);
        CHECK(run_job(bundle, {{}, {"/etc/passwd"}, spawn}).status == 126);
        CHECK(run_job(bundle, {{"--rootfs", "/no/such/root"}, {"true"}, spawn}).status == 125);
        const Judged judged = judge_job(bundle, {{}, {"no-such-program"}, spawn});
        CHECK(judged.status == 127);
        CHECK(judged.result["status"] == "setup_failed");
        CHECK(judged.result["exit_code"] == 127);
    }
}

TEST_CASE("stopped: a size without a unit that nothing could be held to is refused, and what was meant is told") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    const Bundle bundle;
    for (const char* size : {"64", "512"}) {
        const Ended ended = run_job(bundle, {{"--memory", size}, {"true"}, {}});
        CHECK(ended.status == 125);
        CHECK_MESSAGE(ended.err.find(std::string("hint: for megabytes: --memory ") + size + "m") != std::string::npos,
                      ended.err);
    }
}

TEST_CASE("stopped: processors that cannot be held are an error where they are asked for, unless that is allowed") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    Bundle bundle;
    const SpawnOptions user = normal_user(bundle);
    for (const char* cpus : {"0.5", "1"}) {
        const Ended refused = run_job(bundle, {{"--cpus", cpus}, {"echo", "ran"}, user});
        CHECK(refused.status == 125);
        CHECK(refused.out == "");
        CHECK_MESSAGE(refused.err.find("hint: --allow-unenforced cpu_cores") != std::string::npos, refused.err);
    }
    const Judged allowed = judge_job(bundle, {{"--cpus", "0.5", "--allow-unenforced", "cpu_cores"}, {"true"}, user});
    CHECK(allowed.status == 0);
    CHECK(limit_of(allowed.result, "cpu_cores")["enforced_by"] == nullptr);
    CHECK(judge_job(bundle, {{}, {"true"}, user}).status == 0);  // the default is only told
    CHECK(run_job(bundle, {{"--allow-unenforced", "memory"}, {"true"}, user}).status == 125);
}
