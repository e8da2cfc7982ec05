// Standard streams, other descriptors, signals and exit codes: the payload's connections to its caller.
#include <fcntl.h>
#include <signal.h>

#include <algorithm>

#include "harness.hpp"
#include "terminal.hpp"

using namespace pinfold::integration;

namespace {

json numbers(const json& fds) {
    json out = json::array();
    for (const json& each : fds) out.push_back(each["fd"]);
    return out;
}

// A pipe's readable end with this text in it and nothing to follow.
UniqueFd filled_pipe(const std::string& text) {
    int ends[2];
    REQUIRE(::pipe2(ends, O_CLOEXEC) == 0);
    REQUIRE(::write(ends[1], text.data(), text.size()) == static_cast<ssize_t>(text.size()));
    ::close(ends[1]);
    return UniqueFd(ends[0]);
}

}  // namespace

TEST_CASE("streams: input, output and errors are the caller's") {
    NEEDS_ROOT();
    Bundle bundle;
    const Outcome outcome =
        run_probe(bundle, {{"cat"}, {"print", "to the errors"}}, {.spawn = {.input = "from the caller\n"}});
    CHECK(outcome.status == 0);
    CHECK(outcome.out.rfind("from the caller\n{", 0) == 0);
    CHECK(outcome.err == "to the errors\n");
}

TEST_CASE("streams: much output arrives whole") {
    NEEDS_ROOT();
    Bundle bundle;
    write_text(bundle.rootfs() / "data/much", std::string(1 << 20, 'x'));
    const Outcome outcome = run_probe(bundle, {{"read", "/data/much"}});
    CHECK(outcome.status == 0);
    CHECK(outcome.answer()["text"].get<std::string>().size() == 1 << 20);
}

TEST_CASE("descriptors: --preserve-fds passes that many, and no more") {
    NEEDS_ROOT();
    Bundle bundle;
    const UniqueFd third = filled_pipe("three");
    const UniqueFd fourth = filled_pipe("four");
    const UniqueFd fifth = filled_pipe("five");
    const RunOptions options{.args = {"--preserve-fds", "2"},
                             .spawn = {.fds = {{3, third.get()}, {4, fourth.get()}, {5, fifth.get()}}}};
    const Outcome outcome = run_probe(bundle, {{"read-fd", "3"}, {"read-fd", "4"}, {"report"}}, options);
    CHECK(outcome.answer(0)["text"] == "three");
    CHECK(outcome.answer(1)["text"] == "four");
    CHECK(numbers(outcome.answer(2)["fds"]) == json({0, 1, 2, 3, 4}));
}

TEST_CASE("descriptors: fewer than --preserve-fds says are refused, and nothing of pinfold's own takes their place") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    Bundle bundle;
    const UniqueFd third = filled_pipe("three");
    for (const char* verb : {"run", "create"}) {
        CAPTURE(verb);
        bundle.probe({"report"}).write_config();
        const Ended ended =
            run_program(bundle.verb({verb, "--bundle", bundle.path().string(), "--preserve-fds", "3", bundle.id()}),
                        {.fds = {{3, third.get()}}});
        check_refused(ended, "--preserve-fds 3: descriptor 4 is not open");
        CHECK(run_program(bundle.verb({"state", bundle.id()}), {}).status == 1);
    }
}

TEST_CASE("exit codes: the payload's own") {
    NEEDS_ROOT();
    for (const int code : {0, 1, 7, 255}) {
        CAPTURE(code);
        Bundle bundle;
        CHECK(run_probe(bundle, {{"exit", std::to_string(code)}}).status == code);
    }
}

TEST_CASE("exit codes: 128 + the signal that ended it") {
    NEEDS_ROOT();
    for (const int number : {SIGTERM, SIGKILL, SIGSEGV}) {
        CAPTURE(number);
        Bundle bundle;
        bundle.drop_namespace("pid");  // the first process of a pid namespace would be spared
        CHECK(run_probe(bundle, {{"signal", std::to_string(number)}}).status == 128 + number);
    }
}

TEST_CASE("exit codes: killed from outside") {
    NEEDS_ROOT();
    Bundle bundle;
    bundle.probe({"sleep-forever"});
    const auto running = start(bundle, {.args = {"--pid-file", bundle.host() / "pid"}});
    REQUIRE(running->read_line() == "READY");
    CHECK(::kill(static_cast<pid_t>(std::stol(await_file(bundle.host() / "pid"))), SIGKILL) == 0);
    CHECK(running->finish().status == 128 + SIGKILL);
}

TEST_CASE("signals: forwarded to the payload") {
    NEEDS_ROOT();
    Bundle bundle;
    bundle.probe({"wait-signal"});
    const auto running = start(bundle);
    REQUIRE(running->read_line() == "READY");
    const std::pair<int, std::string> signals[] = {{SIGUSR1, "USR1"}, {SIGUSR2, "USR2"}, {SIGHUP, "HUP"},
                                                   {SIGINT, "INT"},   {SIGQUIT, "QUIT"}, {SIGCONT, "CONT"},
                                                   {SIGALRM, "ALRM"}, {SIGTERM, "TERM"}};
    for (const auto& each : signals) {
        CAPTURE(each.second);
        running->signal(each.first);
        CHECK(running->read_line() == each.second);
    }
    CHECK(running->finish().status == 0);
}

TEST_CASE("signals: what is typed at the terminal is for all that the program has started") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    Bundle bundle;
    fs::copy_file("/bin/busybox", bundle.rootfs() / "busybox");
    waiting(bundle);
    const Container container(bundle, Container::As::running);
    Terminal terminal(24, 80);
    SpawnOptions at{.fds = {{0, terminal.slave()}, {1, terminal.slave()}, {2, terminal.slave()}}};
    at.own_terminal = true;
    constexpr const char* kScript = "trap 'echo heard' INT; /busybox sh -c 'echo on; exec /busybox sleep 30'; echo $?";
    Process exec(bundle.verb({"exec", bundle.id(), "/busybox", "sh", "-c", kScript}), at);
    terminal.await_line("on");
    terminal.type("\x03");
    terminal.await_line("130");
    CHECK(exec.finish().status == 0);
}

TEST_CASE("signals: the payload starts with none blocked or ignored, whatever the caller ignores") {
    NEEDS_ROOT();
    Bundle bundle;
    // As a shell starts what runs in the background, and as nohup does.
    const RunOptions options{.spawn = {.ignored_signals = {SIGINT, SIGQUIT, SIGHUP, SIGPIPE, SIGUSR1}}};
    const std::string status = run_probe(bundle, {{"read", "/proc/self/status"}}, options).answer()["text"];
    CHECK(status.find("SigBlk:\t0000000000000000\n") != std::string::npos);
    CHECK(status.find("SigIgn:\t0000000000000000\n") != std::string::npos);
}

TEST_CASE("processes: whatever the payload leaves behind ends with it") {
    NEEDS_ROOT();
    Bundle bundle;
    // The leak check does the asking: the orphan would be ours by now.
    bundle.config["process"]["args"] = {"/probe", "orphan"};
    CHECK(run(bundle).status == 0);
}
