// A process in front of a real payload: what the tests of supervise() and of its relay are made of.
#pragma once

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <csignal>
#include <cstdlib>
#include <functional>
#include <string>
#include <string_view>

#include "base/strings.hpp"
#include "kernel/terminal.hpp"
#include "process/supervise.hpp"
#include "support/testing.hpp"

namespace pinfold::testing {

constexpr int kPatience = 20'000;  // ms, for poll: reached only where a test fails
constexpr int kReport = 3;         // a way past the terminal, for the payload
constexpr int kBroken = 99;        // exit code of a front whose supervise() failed

struct Pipe {
    UniqueFd reader;
    UniqueFd writer;
};

inline Pipe make_pipe(int capacity = 65536) {
    int ends[2];
    REQUIRE(::pipe2(ends, O_CLOEXEC) == 0);
    REQUIRE(::fcntl(ends[1], F_SETPIPE_SZ, capacity) >= 0);
    return {UniqueFd(ends[0]), UniqueFd(ends[1])};
}

inline Pty open_pty() {
    UniqueFd master(::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC));
    if (!master || ::unlockpt(master.get()) < 0) ::abort();
    UniqueFd slave = open_pty_slave(master.get()).value();
    return {std::move(master), std::move(slave)};
}

inline void send_signal(int pidfd, int signal) { ::syscall(SYS_pidfd_send_signal, pidfd, signal, nullptr, 0); }

inline bool await(int fd) {
    pollfd slot{fd, POLLIN, 0};
    return ::poll(&slot, 1, kPatience) == 1;
}

inline void say(std::string_view text) {
    if (::write(STDOUT_FILENO, text.data(), text.size()) != ssize_t(text.size())) ::_exit(98);
}

// Reads until the text is there, or up to the end.
inline std::string read_until(int fd, std::string_view text) {
    std::string all;
    char bytes[512];
    while (all.find(text) == std::string::npos) {
        const ssize_t got = await(fd) ? ::read(fd, bytes, sizeof bytes) : -1;
        if (got <= 0) break;
        all.append(bytes, size_t(got));
    }
    return all;
}

inline std::string read_to_end(int fd) { return read_until(fd, std::string_view("\0never\0", 7)); }

using Payload = std::function<int()>;

// The process under test: holds signals back, starts the payload, supervises it and exits with its code.
struct Setup {
    bool terminal = false;
    int input = -1;   // -1: /dev/null
    int output = -1;  // -1: /dev/null
    int controlling_terminal = -1;
    int report = -1;  // the payload's descriptor kReport
    std::function<void()> before_create = [] {};
    std::function<void()> before_clone = [] {};
};

class SupervisorFixture {
public:
    SupervisorFixture(const Setup& setup, const Payload& payload) {
        const Pipe ready = make_pipe();
        pid_ = ::fork();
        REQUIRE(pid_ >= 0);
        if (pid_ == 0) run(setup, payload, ready.writer.get());
        REQUIRE(await(ready.reader.get()));
        REQUIRE(::read(ready.reader.get(), &payload_, sizeof payload_) == ssize_t(sizeof payload_));
        payload_pidfd_ = open_pidfd(payload_);
        pidfd_ = open_pidfd(pid_);
    }
    SupervisorFixture(const SupervisorFixture&) = delete;
    SupervisorFixture& operator=(const SupervisorFixture&) = delete;
    ~SupervisorFixture() {
        if (payload_pidfd_) send_signal(payload_pidfd_.get(), SIGKILL);
        if (pid_ <= 0) return;
        ::kill(pid_, SIGKILL);
        ::waitpid(pid_, nullptr, 0);
    }

    pid_t pid() const { return pid_; }
    void signal(int number) const { REQUIRE(::kill(pid_, number) == 0); }
    void kill_payload() const { send_signal(payload_pidfd_.get(), SIGKILL); }
    bool payload_ends() const { return await(payload_pidfd_.get()); }

    // The exit code, -n for death by signal n, -1000 for a front that does not end.
    int exit_code() {
        if (!await(pidfd_.get())) return -1000;
        int status = 0;
        ::waitpid(pid_, &status, 0);
        pid_ = -1;
        return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
    }

private:
    [[noreturn]] static void run_payload(const Setup& setup, const Payload& payload, const Pty& pty, int null) {
        ::prctl(PR_SET_PDEATHSIG, SIGKILL);
        ::setsid();
        if (setup.terminal) {
            if (!attach_terminal(pty.slave.get())) ::_exit(97);
        } else {
            ::dup2(setup.input >= 0 ? setup.input : null, STDIN_FILENO);
            ::dup2(setup.output >= 0 ? setup.output : null, STDOUT_FILENO);
        }
        if (setup.report >= 0) ::dup2(setup.report, kReport);
        ::close_range(kReport + 1, ~0U, 0);
        sigset_t none;
        ::sigemptyset(&none);
        ::pthread_sigmask(SIG_SETMASK, &none, nullptr);
        ::_exit(payload());
    }

    [[noreturn]] static void run(const Setup& setup, const Payload& payload, int ready) {
        ::prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (setup.controlling_terminal >= 0) {
            ::setsid();
            ::ioctl(setup.controlling_terminal, TIOCSCTTY, 0);
        } else {
            ::setpgid(0, 0);  // a job of its own, which can be stopped
        }
        setup.before_create();
        ::_exit(start(setup, payload, ready));
    }

    static int start(const Setup& setup, const Payload& payload, int ready) {
        Result<SignalForwarder> signals = SignalForwarder::create();
        if (!signals) return kBroken;
        Pty pty;
        if (setup.terminal) pty = open_pty();
        setup.before_clone();
        const int null = ::open("/dev/null", O_RDWR | O_CLOEXEC);
        const pid_t child = ::fork();
        if (child == 0) run_payload(setup, payload, pty, null);
        pty.slave.reset();
        if (::write(ready, &child, sizeof child) != ssize_t(sizeof child)) return kBroken;
        Supervision what;
        what.pidfd = open_pidfd(child).release();
        what.signal_fd = signals->fd();
        what.pty_master = std::move(pty.master);
        what.input = setup.input >= 0 ? setup.input : null;
        what.output = setup.output >= 0 ? setup.output : null;
        const Result<int> code = supervise(std::move(what));
        return code ? *code : kBroken;
    }

    pid_t pid_ = -1;
    pid_t payload_ = -1;
    UniqueFd pidfd_;
    UniqueFd payload_pidfd_;
};

// Says "ready", then the number of every signal that arrives; SIGTERM is the last.
inline int report_signals() {
    sigset_t all;
    ::sigfillset(&all);
    ::sigprocmask(SIG_SETMASK, &all, nullptr);
    say("ready\n");
    for (;;) {
        int signal = 0;
        ::sigwait(&all, &signal);
        say(concat(signal, "\n"));
        if (signal == SIGTERM) return 3;
    }
}

inline int pause_for_ever() {
    for (;;) ::pause();
}

}  // namespace pinfold::testing
