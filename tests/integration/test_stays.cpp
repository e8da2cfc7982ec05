// Sandboxes that stay with a command: their output, their end, and who waits for it.
#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <memory>

#include "sandbox.hpp"

using namespace pinfold::integration;

namespace {

json state_of(const DetachedSandbox& box, const Bundle& bundle) {
    return json::parse(box.run({"state", bundle.id()}).out);
}

// The monitor is the parent of the sandbox's first process.
pid_t monitor_of(const DetachedSandbox& box, const Bundle& bundle) {
    const std::string pid = std::to_string(state_of(box, bundle)["pid"].get<int>());
    const std::string status = read_text("/proc/" + pid + "/status");
    return pid_t(std::stol(status.substr(status.find("\nPPid:") + 6)));
}

}  // namespace

TEST_CASE("stays: what its command prints, how it ends and when are there for whoever comes later") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    as_both([](const Bundle& bundle, const SpawnOptions& spawn) {
        const DetachedSandbox box(bundle, {}, {"sh", "-c", "echo out; echo err >&2; exit 3"}, spawn);
        const Ended waited = box.run({"wait", bundle.id()});
        CHECK_MESSAGE(waited.status == 3, waited.err);
        CHECK(waited.out == "3\n");
        const Ended logs = box.run({"logs", bundle.id()});
        CHECK(logs.status == 0);
        CHECK(logs.out == "out\n");
        CHECK(logs.err == "err\n");
        const json state = state_of(box, bundle);
        CHECK(state["status"] == "stopped");
        CHECK(state["exit_code"] == 3);
        CHECK(state["reason"] == "exited");
        CHECK(state["stopped_by"] == nullptr);
        CHECK(state["ended"].get<std::string>().starts_with("20"));
        CHECK(state["command"][0] == "sh");
        const json result = json::parse(box.run({"wait", "--result", "-", bundle.id()}).out);
        CHECK(result["stdout"] == "out\n");
        CHECK(result["stderr"] == "err\n");
        CHECK(result["exit_code"] == 3);
        const std::string table = box.run({"list"}).out;
        CHECK_MESSAGE(table.find("exit 3") != std::string::npos, table);
        CHECK_MESSAGE(table.find("sh -c echo out") != std::string::npos, table);
        CHECK(json::parse(box.run({"list", "--format", "json"}).out)[0]["exit_code"] == 3);
        CHECK(box.run({"prune", "--older-than", "1h"}).out == "");
        CHECK(box.run({"prune"}).out == bundle.id() + "\n");
    });
}

TEST_CASE("stays: who stops one has nothing to do with another that has its name by then") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    as_both([](const Bundle& bundle, const SpawnOptions& spawn) {
        const DetachedSandbox box(bundle, {}, {"sh", "-c", "trap 'echo asked' TERM; echo up; while :; do read x; done"},
                                  spawn);
        Process logs(bundle.verb({"logs", "--follow", bundle.id()}), spawn);
        CHECK(logs.read_line() == "up");
        Process stop(bundle.verb({"stop", "--time", "100s", bundle.id()}), spawn);
        CHECK(logs.read_line() == "asked");
        {
            // It has let go of the lock, and waits for the end.
            const UniqueFd directory(::open((bundle.state_root() / bundle.id()).c_str(), O_RDONLY | O_DIRECTORY));
            REQUIRE(::flock(directory.get(), LOCK_EX) == 0);
        }
        stop.signal(SIGSTOP);
        REQUIRE(box.run({"delete", "--force", bundle.id()}).status == 0);
        REQUIRE(run_job(bundle, {{"--detach"}, {"sleep", "100"}, spawn}).status == 0);
        stop.signal(SIGCONT);
        const Ended ended = stop.finish();
        CHECK_MESSAGE(ended.status == 0, ended.err);
        CHECK(state_of(box, bundle)["status"] == "running");
    });
}

TEST_CASE("stays: it holds nothing of its caller's, neither streams nor what else was open") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    as_both([](const Bundle& bundle, const SpawnOptions& spawn) {
        int ends[2];
        REQUIRE(::pipe2(ends, O_CLOEXEC) == 0);
        const UniqueFd reader(ends[0]);
        UniqueFd writer(ends[1]);
        SpawnOptions with = spawn;
        with.fds = {{1, writer.get()}, {2, writer.get()}, {9, writer.get()}};
        CHECK(run_job(bundle, {{"--detach"}, {"sh", "-c", "echo printed; exec sleep 1000"}, with}).status == 0);
        writer.reset();
        std::string text;
        char bytes[256];
        for (ssize_t count; (count = ::read(reader.get(), bytes, sizeof bytes)) > 0;) text.append(bytes, size_t(count));
        CHECK(text == bundle.id() + "\n");  // and the end of the pipe, while it runs
        CHECK(run_program(bundle.verb({"stop", bundle.id()}), spawn).status == 0);
        CHECK(run_program(bundle.verb({"delete", bundle.id()}), spawn).status == 0);
    });
}

TEST_CASE("stays: who follows its output or waits for its end goes on when it ends, however that comes") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    as_both([](const Bundle& bundle, const SpawnOptions& spawn) {
        for (const char* end : {"stop", "delete"}) {
            CAPTURE(end);
            const DetachedSandbox box(bundle, {}, {"sh", "-c", "echo first; read line < p; echo last; exit 5"}, spawn);
            Process follower(bundle.verb({"logs", "--follow", bundle.id()}), spawn);
            Process waiter(bundle.verb({"wait", bundle.id()}), spawn);
            CHECK(follower.read_line() == "first");
            CHECK(box.run(std::string(end) == "stop" ? std::vector<std::string>{"stop", bundle.id()}
                                                     : std::vector<std::string>{"delete", "--force", bundle.id()})
                      .status == 0);
            CHECK(follower.finish().status == 0);
            waiter.finish();
        }
        const DetachedSandbox box(bundle, {}, {"sh", "-c", "mkfifo p; echo first; read line < p; echo last; exit 5"},
                                  spawn);
        Process follower(bundle.verb({"logs", "-f", bundle.id()}), spawn);
        Process waiter(bundle.verb({"wait", bundle.id()}), spawn);
        CHECK(follower.read_line() == "first");
        box.exec({}, {"sh", "-c", "echo > p"});  // which ends with the sandbox, perhaps before it is done
        CHECK(follower.read_line() == "last");
        CHECK(follower.finish().status == 0);
        CHECK(waiter.finish().status == 5);
    });
}

TEST_CASE("stays: stop lets it end by itself for a while, and then does not") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    as_both([](const Bundle& bundle, const SpawnOptions& spawn) {
        {
            const DetachedSandbox box(
                bundle, {}, {"sh", "-c", "trap 'echo bye; exit 7' TERM; echo on; while :; do sleep 0.1; done"}, spawn);
            Process follower(bundle.verb({"logs", "-f", bundle.id()}), spawn);
            CHECK(follower.read_line() == "on");
            const Ended stopped = box.run({"stop", bundle.id()});
            CHECK_MESSAGE(stopped.status == 0, stopped.err);
            CHECK(follower.read_line() == "bye");
            const json state = state_of(box, bundle);
            CHECK(state["exit_code"] == 7);
            CHECK(state["stopped_by"] == "stop");
            CHECK(box.run({"stop", bundle.id()}).status == 0);  // it has ended already
        }
        {
            const DetachedSandbox box(bundle, {}, {"sh", "-c", "trap '' TERM; echo on; while :; do sleep 0.1; done"},
                                      spawn);
            Process follower(bundle.verb({"logs", "-f", bundle.id()}), spawn);
            CHECK(follower.read_line() == "on");
            CHECK(box.run({"stop", "--time", "200ms", bundle.id()}).status == 0);
            CHECK(state_of(box, bundle)["signal"] == SIGKILL);
        }
        const DetachedSandbox box(bundle, {}, {}, spawn);  // without a command
        CHECK(box.run({"stop", bundle.id()}).status == 0);
        CHECK(state_of(box, bundle)["stopped_by"] == "stop");
        CHECK(box.run({"wait", bundle.id()}).out == "0\n");
    });
}

TEST_CASE("stays: who waits for one without a command learns that it was stopped, however quick either is") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    const Bundle bundle;
    for (int round = 0; round < 12; ++round) {
        CAPTURE(round);
        const DetachedSandbox box(bundle, {});
        Process waiting(bundle.verb({"wait", bundle.id()}), {});
        // It waits once it looks at nothing but the sandbox's first process.
        while (read_text("/proc/" + std::to_string(waiting.pid()) + "/wchan").find("poll") == std::string::npos)
            continue;
        CHECK(box.run({"stop", bundle.id()}).status == 0);
        const Ended waited = waiting.finish();
        CHECK_MESSAGE(waited.status == 0, waited.err);
    }
}

TEST_CASE("stays: stop is told as the reason only of an end that it has waited for, and that no limit has brought") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    const Bundle bundle;
    const std::string bind = bundle.host().string() + ":/b";
    const Command deaf = {"sh", "-c", "trap '' TERM; echo on; until [ -e /b/go ]; do sleep 0.05; done; exit 4"};
    const auto start_stop = [&](const DetachedSandbox& box) {
        CHECK(Process(bundle.verb({"logs", "-f", bundle.id()}), {}).read_line() == "on");
        auto stop = std::make_unique<Process>(bundle.verb({"stop", "--time", "100s", bundle.id()}), SpawnOptions{});
        const fs::path mark = bundle.state_root() / bundle.id() / "stop";
        while (!fs::exists(mark)) ::usleep(10'000);
        CHECK(state_of(box, bundle)["status"] == "running");
        return stop;
    };
    {
        const DetachedSandbox box(bundle, {"--ro-bind", bind}, deaf);
        const auto stop = start_stop(box);
        stop->signal(SIGKILL);
        stop->finish();
        write_text(bundle.host() / "go", "");
        CHECK(box.run({"wait", bundle.id()}).status == 4);
        CHECK(state_of(box, bundle)["stopped_by"] == nullptr);
        fs::remove(bundle.host() / "go");
    }
    const DetachedSandbox box(bundle, {"--ro-bind", bind, "--timeout", brief()}, deaf);
    const auto stop = start_stop(box);
    CHECK(box.run({"wait", bundle.id()}).status == 124);
    CHECK(state_of(box, bundle)["stopped_by"] == "timeout_seconds");
    CHECK(stop->finish().status == 0);
}

TEST_CASE("stays: stop and the deadline end what is paused as well") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    const Bundle bundle;
    {
        const DetachedSandbox box(bundle, {}, {"sleep", "1000"});
        CHECK(box.run({"pause", bundle.id()}).status == 0);
        const Ended stopped = box.run({"stop", bundle.id()});
        CHECK_MESSAGE(stopped.status == 0, stopped.err);
        CHECK(state_of(box, bundle)["status"] == "stopped");
    }
    const DetachedSandbox box(bundle, {"--timeout", brief()}, {"sleep", "1000"});
    CHECK(box.run({"pause", bundle.id()}).status == 0);
    CHECK(box.run({"wait", bundle.id()}).status == 124);
    CHECK(state_of(box, bundle)["stopped_by"] == "timeout_seconds");
}

TEST_CASE("stays: limits hold without a caller, and the end says which it was") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    as_both([](const Bundle& bundle, const SpawnOptions& spawn) {
        {
            const DetachedSandbox box(bundle, {"--timeout", brief()}, {"sh", "-c", "trap '' TERM; sleep 1000"}, spawn);
            CHECK(box.run({"wait", bundle.id()}).status == 124);
            CHECK(state_of(box, bundle)["reason"] == "timed_out");
        }
        {
            const DetachedSandbox box(bundle, {"--cpu-timeout", "200ms"}, {"sh", "-c", "while :; do :; done"}, spawn);
            CHECK(box.run({"wait", bundle.id()}).status == 124);
            CHECK(state_of(box, bundle)["stopped_by"] == "cpu_timeout_seconds");
        }
        // Shared memory is what no rlimit holds.
        const char* const script =
            "import mmap\n"
            "all = [mmap.mmap(-1, 8 << 20) for _ in range(40)]\n"
            "for one in all: one.write(b'x' * (8 << 20))\n"
            "while True: pass\n";
        const DetachedSandbox box(bundle, {"--memory", "64m"}, {"python3", "-c", script}, spawn);
        CHECK(box.run({"wait", bundle.id()}).status == 137);
        CHECK(state_of(box, bundle)["reason"] == "oom_killed");
    });
}

TEST_CASE("stays: nobody lengthens its life by stopping what holds its deadline") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    as_both([](const Bundle& bundle, const SpawnOptions& spawn) {
        const DetachedSandbox box(bundle, {"--timeout", "1s"}, {}, spawn);
        for (const char* signal : {"STOP", "SIGSTOP", "19"}) {
            const Ended refused = box.run({"kill", bundle.id(), signal});
            check_refused(refused, "a sandbox is not stopped by a signal");
            CHECK(refused.err.find("hint: pinfold pause " + bundle.id()) != std::string::npos);
            check_refused(box.run({"kill", "--all", bundle.id(), signal}), "a sandbox is not stopped by a signal");
        }
        // Who has its rights can do it by hand; then its time is over for prune, as it would be for itself.
        REQUIRE(::kill(state_of(box, bundle)["pid"].get<int>(), SIGSTOP) == 0);
        std::string pruned;
        while (pruned.empty()) pruned = box.run({"prune"}).out;
        CHECK(pruned == bundle.id() + "\n");
    });
}

TEST_CASE("stays: without a command nothing is asked for that a monitor would have to hold") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    const Bundle bundle;
    const Ended ended = run_program(bundle.verb({"sandbox", "-d", "--name", bundle.id(), "--cpu-timeout", "1s",
                                                 "--output-limit", "1m", "--merge-output", "--receipt"}));
    check_refused(ended, "--cpu-timeout, --output-limit, --merge-output, --receipt: nobody stays with a sandbox", 125);
}

TEST_CASE("stays: a limit that was updated is told as it was in the end") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    const Bundle bundle;
    const DetachedSandbox box(bundle, {"--memory", "256m"},
                              {"sh", "-c", "until [ -e go ]; do sleep 0.01; done; exec tail /dev/zero"});
    CHECK(box.run({"update", "--memory", "64m", "--memory-swap", "64m", bundle.id()}).status == 0);
    CHECK(box.exec({}, {"touch", "go"}).status == 0);
    const Ended waited = box.run({"wait", "--result", "-", bundle.id()});
    CHECK(waited.status == 137);
    const json memory = limit_of(json::parse(waited.out), "memory_mb");
    CHECK(memory["asked"] == 256);
    CHECK(memory["value"] == 64 << 20);
    CHECK(memory["hit"] >= 1);
}

TEST_CASE("stays: of much output the newest is kept") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    as_both([](const Bundle& bundle, const SpawnOptions& spawn) {
        const DetachedSandbox box(bundle, {"--output-limit", "100k"}, {"seq", "200000"}, spawn);
        CHECK(box.run({"wait", bundle.id()}).status == 0);
        const json result = json::parse(box.run({"wait", "--result", "-", bundle.id()}).out);
        CHECK(result["status"] == "exited");
        CHECK(result["truncated"] == true);
        CHECK(limit_of(result, "output_bytes")["hit"] == 1);
        const Ended logs = box.run({"logs", bundle.id()});
        CHECK_MESSAGE(logs.err.find("printed before is dropped") != std::string::npos, logs.err);
        CHECK(logs.out.size() <= 100 << 10);
        CHECK(logs.out.size() > 80 << 10);
        CHECK(logs.out.ends_with("\n199999\n200000\n"));
        struct stat info {};
        const std::string file = bundle.state_root() / bundle.id() / "output";
        REQUIRE(::stat(file.c_str(), &info) == 0);
        CHECK(info.st_blocks * 512 <= 140 << 10);
    });
}

TEST_CASE("stays: who reads its output, or copies from it, through a pipe that does not block gets all of it") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    constexpr size_t kBytes = 1'000'000;
    const Bundle bundle;
    const DetachedSandbox box(bundle, {}, {"sh", "-c", "head -c 1000000 /dev/zero | tee file; exec sleep 1000"});
    CHECK(box.exec({}, {"sh", "-c", "until [ $(stat -c %s file) = 1000000 ]; do :; done"}).status == 0);
    for (const Command& words : {Command{"cp", bundle.id() + ":/workspace/file", "-"}, Command{"logs", bundle.id()}}) {
        CAPTURE(words[0]);
        if (words[0] == "logs") CHECK(box.run({"stop", bundle.id()}).status == 0);  // all of it is there then
        int ends[2];
        REQUIRE(::pipe2(ends, O_CLOEXEC) == 0);
        const UniqueFd reader(ends[0]);
        UniqueFd writer(ends[1]);
        REQUIRE(::fcntl(writer.get(), F_SETPIPE_SZ, 4096) > 0);
        REQUIRE(::fcntl(writer.get(), F_SETFL, O_NONBLOCK) == 0);
        SpawnOptions spawn;
        spawn.fds = {{1, writer.get()}};
        Process process(bundle.verb(words), spawn);
        writer.reset();
        size_t read = 0;
        char bytes[4096];
        for (ssize_t count = 0; (count = ::read(reader.get(), bytes, sizeof bytes)) > 0;) read += size_t(count);
        CHECK(read == kBytes);
        const Ended ended = process.finish();
        CHECK_MESSAGE(ended.status == 0, ended.err);
    }
}

TEST_CASE("stays: as much is kept of who prints line by line") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    const Bundle bundle;
    const DetachedSandbox box(bundle, {"--output-limit", "50k"},
                              {"bash", "-c", "for ((i = 100000; i < 108000; i++)); do echo line $i; done"});
    CHECK(box.run({"wait", bundle.id()}).status == 0);
    const std::string out = box.run({"logs", bundle.id()}).out;
    CHECK(out.ends_with("\nline 107999\n"));
    CHECK(out.size() > 43 << 10);  // an eighth is dropped at once
    CHECK(out.size() <= 50 << 10);
}

TEST_CASE("stays: a disk that is full takes neither the newest output nor the end") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    const Bundle bundle;
    fs::create_directories(bundle.state_root());
    const MountGuard disk("none", bundle.state_root(), "tmpfs", 0);
    REQUIRE(::mount(nullptr, bundle.state_root().c_str(), nullptr, MS_REMOUNT, "size=1m") == 0);
    fs::permissions(bundle.state_root(), fs::perms::owner_all);
    const std::string bind = bundle.host().string() + ":/b";
    {
        const DetachedSandbox box(bundle, {},
                                  {"sh", "-c", "echo first; yes xxxxxxx | head -c 4000000; echo END; exit 5"});
        const json result = json::parse(box.run({"wait", "--result", "-", bundle.id()}).out);
        CHECK(result["status"] == "exited");
        CHECK(result["exit_code"] == 5);
        CHECK(result["truncated"] == true);
        CHECK_FALSE(result.contains("error"));
        const std::string out = box.run({"logs", bundle.id()}).out;
        CHECK(out.ends_with("xxxxxxx\nEND\n"));
        CHECK(out.size() > 200 << 10);
    }
    const Command command = {"sh", "-c", "until [ -e /b/go ]; do sleep 0.05; done; seq 100000; echo END; exit 5"};
    const DetachedSandbox box(bundle, {"--ro-bind", bind}, command);
    const fs::path filler = bundle.state_root() / bundle.id() / "filler";
    {
        const UniqueFd file(::open(filler.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
        const std::string block(4096, 'x');
        while (::write(file.get(), block.data(), block.size()) > 0) {
        }
        REQUIRE(errno == ENOSPC);
    }
    write_text(bundle.host() / "go", "");
    const Ended waited = box.run({"wait", bundle.id()});
    CHECK_MESSAGE(waited.status == 5, waited.err);
    CHECK(box.run({"logs", bundle.id()}).out.ends_with("\n99999\n100000\nEND\n"));
}

TEST_CASE("stays: a caller that may write only small files starts it all the same") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    as_both([](const Bundle& bundle, const SpawnOptions& spawn) {
        const DetachedSandbox none(bundle, {}, {}, spawn);  // its user has a state directory
        std::vector<std::string> line = {"/bin/bash", "-c", "ulimit -f 1024 && exec \"$@\"", "bash"};
        const std::vector<std::string> words = bundle.verb(
            {"sandbox", "-d", "--name", bundle.id() + "b", "--", "sh", "-c", "seq 1000000; ulimit -f; exit 5"});
        line.insert(line.end(), words.begin(), words.end());
        const Ended started = run_program(line, spawn);
        CHECK_MESSAGE(started.status == 0, started.err);
        const json result = json::parse(none.run({"wait", "--result", "-", bundle.id() + "b"}).out);
        CHECK(result["exit_code"] == 5);
        CHECK(result["status"] == "exited");
        CHECK_FALSE(result.contains("error"));
        const std::string out = none.run({"logs", bundle.id() + "b"}).out;
        CHECK_MESSAGE(out.find("\n1000000\n") != std::string::npos, out.substr(out.size() - 50));
        CHECK_FALSE(out.ends_with("\nunlimited\n"));  // what the monitor may, the job may not
        CHECK(none.run({"delete", bundle.id() + "b"}).status == 0);
    });
}

TEST_CASE("stays: with its monitor it ends, and that is told") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    as_both([](const Bundle& bundle, const SpawnOptions& spawn) {
        const DetachedSandbox box(bundle, {}, {"sleep", "1000"}, spawn);
        const pid_t monitor = monitor_of(box, bundle);
        REQUIRE(monitor > 1);
        CHECK(read_text("/proc/" + std::to_string(monitor) + "/comm") == "pinfold-monitor\n");
        // No signal but the last is for it: its caller's session is not its own.
        CHECK(::kill(monitor, SIGTERM) == 0);
        CHECK(::kill(monitor, SIGHUP) == 0);
        CHECK(box.exec({}, {"true"}).status == 0);
        CHECK(::kill(monitor, SIGKILL) == 0);
        const Ended waited = box.run({"wait", bundle.id()});
        CHECK(waited.status == 125);
        CHECK_MESSAGE(waited.err.find("monitor was killed") != std::string::npos, waited.err);
        box.await_end();
    });
}

TEST_CASE("stays: who waits for one that is just being made, or reads its output, gets both") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    const Bundle bundle;
    for (const char* word : {"wait", "logs"}) {
        CAPTURE(word);
        Process maker(job_line(bundle, {{"--detach"}, {"sh", "-c", "echo hi; exit 3"}, {}}), {});
        const fs::path state = bundle.state_root() / bundle.id();
        while (!fs::exists(state)) {
        }
        std::vector<std::string> words = {word, bundle.id()};
        if (word == std::string("logs")) words.insert(words.begin() + 1, "-f");
        const Ended ended = verb(bundle, words);
        CHECK_MESSAGE(ended.out == (word == std::string("logs") ? "hi\n" : "3\n"), ended.err);
        CHECK(maker.finish().status == 0);
        CHECK(verb(bundle, {"delete", "--force", bundle.id()}).status == 0);
    }
}

TEST_CASE("stays: of one that does not stay it is told so, and stop ends it all the same") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    const Bundle bundle;
    Process job(job_line(bundle, {{}, {"sh", "-c", "echo on; exec sleep 1000"}, {}}), {});
    CHECK(job.read_line() == "on");
    const Ended waited = verb(bundle, {"wait", bundle.id()});
    CHECK(waited.status == 125);
    CHECK_MESSAGE(waited.err.find("does not stay") != std::string::npos, waited.err);
    check_refused(verb(bundle, {"logs", bundle.id()}), "does not stay");
    const Ended stopped = verb(bundle, {"stop", bundle.id()});
    CHECK_MESSAGE(stopped.status == 0, stopped.err);
    CHECK(job.finish().status == 128 + SIGTERM);
}

TEST_CASE("stays: a pipe in its state directory holds up nobody") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    const Bundle bundle;
    const DetachedSandbox box(bundle, {}, {"true"});
    CHECK(box.run({"wait", bundle.id()}).status == 0);
    const fs::path file = bundle.state_root() / bundle.id() / "result";
    fs::remove(file);
    REQUIRE(::mkfifo(file.c_str(), 0600) == 0);
    CHECK(box.run({"list"}).out.find(bundle.id()) != std::string::npos);
    CHECK(box.run({"wait", bundle.id()}).status == 125);
}

TEST_CASE("stays: what cannot be waited for, stopped or shown is refused by name") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    Bundle bundle;
    CHECK(verb(bundle, {"wait", "none"}).status == 125);
    for (const char* word : {"logs", "stop"}) {
        const Ended ended = verb(bundle, {word, "none"});
        CHECK(ended.status == 1);
        CHECK_MESSAGE(ended.err.find("does not exist") != std::string::npos, ended.err);
    }
    CHECK(verb(bundle, {"stop", "--time", "soon", "none"}).err.find("--time 'soon'") != std::string::npos);
    CHECK(verb(bundle, {"prune", "--older-than", "soon"}).err.find("--older-than 'soon'") != std::string::npos);
    const Ended missing = run_job(bundle, {{"--detach"}, {"no-such-program"}, {}});
    CHECK(missing.status == 127);
    CHECK(missing.out == "");
    CHECK(!fs::exists(bundle.state_root() / bundle.id()));
    {
        const DetachedSandbox box(bundle, {});
        const Ended logs = box.run({"logs", bundle.id()});
        CHECK(logs.status == 1);
        CHECK_MESSAGE(logs.err.find("without a command") != std::string::npos, logs.err);
    }
    const Container container(waiting(bundle), Container::As::running);
    const std::string kill = "pinfold kill " + bundle.id() + " KILL";
    check_refused(verb(bundle, {"stop", bundle.id()}), "is no sandbox\nhint: end it by " + kill);
    check_refused(verb(bundle, {"delete", bundle.id()}), "\nhint: end it first, by " + kill + ", or use --force");
}
