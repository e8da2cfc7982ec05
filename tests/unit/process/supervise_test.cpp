// supervise() in front of a real payload: exit codes, and which signals go where.
#include "process/supervise.hpp"

#include <cerrno>
#include <cstring>

#include "supervisor_fixture.hpp"

using namespace pinfold;
using namespace pinfold::testing;

TEST_CASE("the exit code is the payload's") {
    Setup setup;
    SUBCASE("without a terminal") {}
    SUBCASE("with a terminal") { setup.terminal = true; }
    for (const int code : {0, 1, 7, 255}) {
        CHECK(SupervisorFixture(setup, [&] { return code; }).exit_code() == code);
    }
    for (const int signal : {SIGKILL, SIGTERM, SIGSEGV}) {
        const Payload dies = [&] {
            ::signal(signal, SIG_DFL);  // doctest's handlers are not the payload's
            ::raise(signal);
            return 0;
        };
        CHECK(SupervisorFixture(setup, dies).exit_code() == 128 + signal);
    }
}

TEST_CASE("signals reach the payload, and only those that are its business") {
    const Pipe out = make_pipe();
    Setup setup;
    setup.output = out.writer.get();
    SUBCASE("without a terminal") {}
    SUBCASE("with a terminal") { setup.terminal = true; }
    SupervisorFixture front(setup, report_signals);
    REQUIRE(read_until(out.reader.get(), "ready").find("ready") != std::string::npos);
    for (const int signal : {SIGWINCH, SIGPIPE, SIGURG, SIGCHLD}) front.signal(signal);
    for (const int signal : {SIGUSR1, SIGHUP, SIGINT, SIGQUIT, SIGUSR2, SIGALRM, SIGRTMIN + 1}) {
        front.signal(signal);
        const std::string wanted = concat(signal);
        const std::string said = read_until(out.reader.get(), "\n");
        CHECK(std::string_view(said).substr(0, wanted.size()) == wanted);
    }
    front.signal(SIGTERM);
    CHECK(front.exit_code() == 3);
}

TEST_CASE("a signal that comes before the payload exists is not lost") {
    Setup setup;
    setup.before_clone = [] { ::kill(::getpid(), SIGUSR1); };
    SupervisorFixture front(setup, pause_for_ever);
    CHECK(front.exit_code() == 128 + SIGUSR1);
}

TEST_CASE("what was ignored at our start is not passed on") {
    const Pipe out = make_pipe();
    Setup setup;
    setup.output = out.writer.get();
    setup.before_create = [] { ::signal(SIGHUP, SIG_IGN); };
    SupervisorFixture front(setup, report_signals);
    REQUIRE(read_until(out.reader.get(), "ready\n") == "ready\n");
    front.signal(SIGHUP);
    front.signal(SIGUSR1);
    CHECK(read_until(out.reader.get(), "\n") == concat(SIGUSR1, "\n"));
}

TEST_CASE("a parent that ignored SIGCHLD does not cost us the exit code") {
    Setup setup;
    setup.before_create = [] { ::signal(SIGCHLD, SIG_IGN); };
    CHECK(SupervisorFixture(setup, [] { return 42; }).exit_code() == 42);
}

TEST_CASE("SIGTSTP stops us as a job and SIGCONT brings us back") {
    const Pipe out = make_pipe();
    Setup setup;
    setup.output = out.writer.get();
    SupervisorFixture front(setup, report_signals);
    REQUIRE(read_until(out.reader.get(), "ready\n") == "ready\n");
    front.signal(SIGTSTP);
    int status = 0;
    REQUIRE(::waitpid(front.pid(), &status, WUNTRACED) == front.pid());
    REQUIRE(WIFSTOPPED(status));
    CHECK(WSTOPSIG(status) == SIGTSTP);
    front.signal(SIGCONT);
    CHECK(read_until(out.reader.get(), "\n") == concat(SIGCONT, "\n"));
    front.signal(SIGTERM);
    CHECK(front.exit_code() == 3);
}

TEST_CASE("what comes after the payload's end, or was pending then, does not end us before we have ended") {
    const pid_t pid = ::fork();
    REQUIRE(pid >= 0);
    if (pid == 0) {
        {
            const Result<SignalForwarder> signals = SignalForwarder::create();
            ::raise(SIGUSR1);
        }
        if (is_asked_to_end()) ::_exit(1);
        for (const int signal : {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGALRM, SIGPIPE, SIGTSTP, SIGRTMIN})
            ::raise(signal);
        ::_exit(is_asked_to_end() ? 0 : 2);
    }
    int status = -1;
    REQUIRE(::waitpid(pid, &status, 0) == pid);
    CHECK(status == 0);
}

TEST_CASE("supervise fails where somebody else has reaped the payload") {
    const pid_t pid = ::fork();
    REQUIRE(pid >= 0);
    if (pid == 0) {
        const pid_t child = ::fork();
        if (child == 0) ::_exit(0);
        const UniqueFd pidfd = open_pidfd(child);
        ::waitpid(child, nullptr, 0);
        const Result<SignalForwarder> signals = SignalForwarder::create();
        Supervision what;
        what.pidfd = pidfd.get();
        what.signal_fd = signals->fd();
        const Result<int> code = supervise(std::move(what));
        ::_exit(!code && code.error().code == ECHILD ? 0 : 1);
    }
    int status = -1;
    REQUIRE(::waitpid(pid, &status, 0) == pid);
    CHECK(status == 0);
}
