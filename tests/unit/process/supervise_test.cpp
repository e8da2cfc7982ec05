// supervise() in a process of its own, in front of a real payload, with real ptys, pipes and signals.
#include "process/supervise.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <functional>

#include "base/strings.hpp"
#include "kernel/terminal.hpp"
#include "support/testing.hpp"

using namespace pinfold;

namespace {

constexpr int kPatience = 20'000;  // ms, for poll: reached only where a test fails
constexpr int kReport = 3;         // a way past the terminal, for the payload
constexpr int kBroken = 99;        // exit code of a front whose supervise() failed

struct Pipe {
    UniqueFd reader;
    UniqueFd writer;
};

Pipe make_pipe(int capacity = 65536) {
    int ends[2];
    REQUIRE(::pipe2(ends, O_CLOEXEC) == 0);
    REQUIRE(::fcntl(ends[1], F_SETPIPE_SZ, capacity) >= 0);
    return {UniqueFd(ends[0]), UniqueFd(ends[1])};
}

Pty open_pty() {
    UniqueFd master(::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC));
    if (!master || ::unlockpt(master.get()) < 0) ::abort();
    UniqueFd slave = open_pty_slave(master.get()).value();
    return {std::move(master), std::move(slave)};
}

int open_pidfd(pid_t pid) { return static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)); }

void send_signal(int pidfd, int signal) { ::syscall(SYS_pidfd_send_signal, pidfd, signal, nullptr, 0); }

bool await(int fd) {
    pollfd slot{fd, POLLIN, 0};
    return ::poll(&slot, 1, kPatience) == 1;
}

void say(std::string_view text) {
    if (::write(STDOUT_FILENO, text.data(), text.size()) != ssize_t(text.size())) ::_exit(98);
}

// The payload's own terminal, so that bytes pass unchanged.
void make_stdin_raw() {
    termios mode{};
    ::tcgetattr(STDIN_FILENO, &mode);
    ::cfmakeraw(&mode);
    ::tcsetattr(STDIN_FILENO, TCSANOW, &mode);
}

// Reads until the text is there, or up to the end.
std::string read_until(int fd, std::string_view text) {
    std::string all;
    char bytes[512];
    while (all.find(text) == std::string::npos) {
        const ssize_t got = await(fd) ? ::read(fd, bytes, sizeof bytes) : -1;
        if (got <= 0) break;
        all.append(bytes, size_t(got));
    }
    return all;
}

std::string read_to_end(int fd) { return read_until(fd, std::string_view("\0never\0", 7)); }

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

class Front {
public:
    Front(const Setup& setup, const Payload& payload) {
        const Pipe ready = make_pipe();
        pid_ = ::fork();
        REQUIRE(pid_ >= 0);
        if (pid_ == 0) run(setup, payload, ready.writer.get());
        REQUIRE(await(ready.reader.get()));
        REQUIRE(::read(ready.reader.get(), &payload_, sizeof payload_) == ssize_t(sizeof payload_));
        payload_pidfd_.reset(open_pidfd(payload_));
        pidfd_.reset(open_pidfd(pid_));
    }
    Front(const Front&) = delete;
    Front& operator=(const Front&) = delete;
    ~Front() {
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
    [[noreturn]] static void run_payload(const Setup& setup, const Payload& payload, const SignalForwarder& signals,
                                         const Pty& pty, int null) {
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
        ::pthread_sigmask(SIG_SETMASK, &signals.original_mask(), nullptr);
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
        if (child == 0) run_payload(setup, payload, *signals, pty, null);
        pty.slave.reset();
        if (::write(ready, &child, sizeof child) != ssize_t(sizeof child)) return kBroken;
        Supervision what;
        what.pidfd = open_pidfd(child);
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
int report_signals() {
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

int pause_for_ever() {
    for (;;) ::pause();
}

// Bytes in which every loss and every swap shows.
std::string sample(size_t size) {
    std::string text(size, '\0');
    uint32_t state = 12345;
    for (char& byte : text) {
        state = state * 1664525 + 1013904223;
        byte = char(state >> 24);
    }
    return text;
}

void write_whole(int fd, std::string_view text) {
    while (!text.empty()) {
        const ssize_t written = ::write(fd, text.data(), text.size());
        if (written <= 0) ::_exit(96);
        text.remove_prefix(size_t(written));
    }
}

constexpr size_t kMegabyte = 1 << 20;

// Writes to the user's terminal until it takes no more: what its master has not read, and then the queue before that.
void fill(const Pty& pty) {
    const UniqueFd writer = reopen_terminal(pty.slave.get()).value();
    const auto write_all_it_takes = [&] {
        while (::write(writer.get(), "................", 16) > 0) continue;
    };
    for (int unread = 0; unread < 4095;) {
        write_all_it_takes();
        REQUIRE(::ioctl(pty.master.get(), FIONREAD, &unread) == 0);
    }
    write_all_it_takes();
}

bool is_raw(int fd) {
    termios mode{};
    REQUIRE(::tcgetattr(fd, &mode) == 0);
    return (mode.c_lflag & (ICANON | ECHO | ISIG)) == 0;
}

}  // namespace

TEST_CASE("the exit code is the payload's") {
    Setup setup;
    SUBCASE("without a terminal") {}
    SUBCASE("with a terminal") { setup.terminal = true; }
    for (const int code : {0, 1, 7, 255}) {
        CHECK(Front(setup, [&] { return code; }).exit_code() == code);
    }
    for (const int signal : {SIGKILL, SIGTERM, SIGSEGV}) {
        const Payload dies = [&] {
            ::signal(signal, SIG_DFL);  // doctest's handlers are not the payload's
            ::raise(signal);
            return 0;
        };
        CHECK(Front(setup, dies).exit_code() == 128 + signal);
    }
}

TEST_CASE("signals reach the payload, and only those that are its business") {
    const Pipe out = make_pipe();
    Setup setup;
    setup.output = out.writer.get();
    SUBCASE("without a terminal") {}
    SUBCASE("with a terminal") { setup.terminal = true; }
    Front front(setup, report_signals);
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
    Front front(setup, pause_for_ever);
    CHECK(front.exit_code() == 128 + SIGUSR1);
}

TEST_CASE("the payload starts with the signal mask that we were started with") {
    Setup setup;
    setup.before_create = [] {
        sigset_t set;
        ::sigemptyset(&set);
        ::sigaddset(&set, SIGUSR2);
        ::sigprocmask(SIG_BLOCK, &set, nullptr);
    };
    Front front(setup, [] {
        sigset_t mask;
        ::sigprocmask(SIG_BLOCK, nullptr, &mask);
        return ::sigismember(&mask, SIGUSR2) * 10 + ::sigismember(&mask, SIGUSR1) + ::sigismember(&mask, SIGTERM);
    });
    CHECK(front.exit_code() == 10);
}

TEST_CASE("what was ignored at our start is not passed on") {
    const Pipe out = make_pipe();
    Setup setup;
    setup.output = out.writer.get();
    setup.before_create = [] { ::signal(SIGHUP, SIG_IGN); };
    Front front(setup, report_signals);
    REQUIRE(read_until(out.reader.get(), "ready\n") == "ready\n");
    front.signal(SIGHUP);
    front.signal(SIGUSR1);
    CHECK(read_until(out.reader.get(), "\n") == concat(SIGUSR1, "\n"));
}

TEST_CASE("a parent that ignored SIGCHLD does not cost us the exit code") {
    Setup setup;
    setup.before_create = [] { ::signal(SIGCHLD, SIG_IGN); };
    CHECK(Front(setup, [] { return 42; }).exit_code() == 42);
}

TEST_CASE("SIGTSTP stops us as a job and SIGCONT brings us back") {
    const Pipe out = make_pipe();
    Setup setup;
    setup.output = out.writer.get();
    Front front(setup, report_signals);
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

TEST_CASE("SignalForwarder leaves the signals as they were, and nothing that was pending kills us") {
    const pid_t pid = ::fork();
    REQUIRE(pid >= 0);
    if (pid == 0) {
        sigset_t before{};  // the kernel fills only a part of it
        sigset_t after{};
        ::signal(SIGCHLD, SIG_IGN);
        ::sigprocmask(SIG_BLOCK, nullptr, &before);
        {
            Result<SignalForwarder> signals = SignalForwarder::create();
            const SignalForwarder moved = std::move(signals).value();
            for (const int signal : {SIGPIPE, SIGTERM, SIGINT}) ::raise(signal);
        }
        ::sigprocmask(SIG_BLOCK, nullptr, &after);
        const bool same = std::memcmp(&before, &after, sizeof before) == 0;
        ::_exit(same && ::signal(SIGCHLD, SIG_DFL) == SIG_IGN ? 0 : 1);
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
        const UniqueFd pidfd(open_pidfd(child));
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

TEST_CASE("a megabyte of terminal output arrives whole at a slow reader") {
    const Pipe out = make_pipe(4096);
    Setup setup;
    setup.terminal = true;
    setup.output = out.writer.get();
    Front front(setup, [] {
        make_stdin_raw();
        write_whole(STDOUT_FILENO, sample(kMegabyte));
        return 0;
    });
    std::string got;
    char bytes[777];  // never in step with any buffer
    while (got.size() < kMegabyte && await(out.reader.get())) {
        const ssize_t piece = ::read(out.reader.get(), bytes, sizeof bytes);
        REQUIRE(piece > 0);
        got.append(bytes, size_t(piece));
    }
    CHECK(got == sample(kMegabyte));
    CHECK(front.exit_code() == 0);
}

TEST_CASE("a megabyte goes in and comes back at the same time") {
    const Pipe in = make_pipe(4096);
    const Pipe out = make_pipe(4096);
    Setup setup;
    setup.terminal = true;
    setup.input = in.reader.get();
    setup.output = out.writer.get();
    Front front(setup, [] {
        make_stdin_raw();
        say("ready");
        char bytes[3000];
        for (size_t done = 0; done < kMegabyte;) {
            const ssize_t got = ::read(STDIN_FILENO, bytes, sizeof bytes);
            if (got <= 0) return 1;
            write_whole(STDOUT_FILENO, {bytes, size_t(got)});
            done += size_t(got);
        }
        return 0;
    });
    REQUIRE(read_until(out.reader.get(), "ready") == "ready");
    REQUIRE(::fcntl(in.writer.get(), F_SETFL, O_WRONLY | O_NONBLOCK) == 0);
    const std::string text = sample(kMegabyte);
    std::string got;
    size_t sent = 0;
    char bytes[1111];
    while (got.size() < kMegabyte) {
        pollfd slots[] = {{out.reader.get(), POLLIN, 0}, {sent < text.size() ? in.writer.get() : -1, POLLOUT, 0}};
        REQUIRE(::poll(slots, 2, kPatience) > 0);
        if (slots[1].revents != 0) {
            const ssize_t piece = ::write(in.writer.get(), text.data() + sent, text.size() - sent);
            REQUIRE(piece > 0);
            sent += size_t(piece);
        }
        if (slots[0].revents == 0) continue;
        const ssize_t piece = ::read(out.reader.get(), bytes, sizeof bytes);
        REQUIRE(piece > 0);
        got.append(bytes, size_t(piece));
    }
    CHECK(got == text);
    CHECK(front.exit_code() == 0);
}

TEST_CASE("what a payload leaves in its terminal is read after its end") {
    Pipe out = make_pipe(4096);
    Setup setup;
    setup.terminal = true;
    setup.output = out.writer.get();
    Front front(setup, [] {
        make_stdin_raw();
        write_whole(STDOUT_FILENO, sample(10'000));
        return 4;
    });
    REQUIRE(front.payload_ends());  // nothing was read up to here
    out.writer.reset();
    CHECK(read_to_end(out.reader.get()) == sample(10'000));
    CHECK(front.exit_code() == 4);
}

TEST_CASE("a reader that goes away neither kills us nor hangs the payload") {
    Pipe out = make_pipe(4096);
    Setup setup;
    setup.terminal = true;
    setup.output = out.writer.get();
    const int reader = out.reader.get();
    setup.before_create = [=] { ::close(reader); };  // the front's inherited copy would keep the pipe alive
    SUBCASE("before the first byte") {
        out.reader.reset();
        setup.before_create = [] {};
    }
    SUBCASE("in the middle") {}
    Front front(setup, [] {
        make_stdin_raw();
        write_whole(STDOUT_FILENO, sample(kMegabyte));
        return 5;
    });
    if (out.reader) {
        char bytes[100];
        REQUIRE(await(out.reader.get()));
        REQUIRE(::read(out.reader.get(), bytes, sizeof bytes) > 0);
        out.reader.reset();
    }
    CHECK(front.exit_code() == 5);
}

TEST_CASE("closed standard streams are as good as none") {
    const UniqueFd unused(::open("/dev/null", O_RDWR | O_CLOEXEC));
    Setup setup;
    setup.terminal = true;
    setup.input = unused.get();
    setup.output = unused.get();
    setup.before_clone = [&] { ::close(unused.get()); };
    // the front warns about the output that it cannot deliver
    CHECK(Front(setup, [] { return say("hello\n"), 6; }).exit_code() == 6);
}

TEST_CASE("input that is no terminal is typed into the payload's, and its end changes nothing") {
    Pipe in = make_pipe();
    const Pipe out = make_pipe();
    Setup setup;
    setup.terminal = true;
    setup.input = in.reader.get();
    setup.output = out.writer.get();
    write_whole(in.writer.get(), "hello\n");
    in.writer.reset();
    Front front(setup, [] {
        char line[64];
        const ssize_t got = ::read(STDIN_FILENO, line, sizeof line);
        say(std::string_view(line, size_t(got)) == "hello\n" ? "good\n" : "bad\n");
        return pause_for_ever();
    });
    CHECK(read_until(out.reader.get(), "good").find("good") != std::string::npos);
    front.signal(SIGTERM);
    CHECK(front.exit_code() == 128 + SIGTERM);
}

TEST_CASE("a console that the payload closes and opens again goes on working") {
    const Pipe in = make_pipe();
    const Pipe out = make_pipe();
    Setup setup;
    setup.terminal = true;
    setup.input = in.reader.get();
    setup.output = out.writer.get();
    Front front(setup, [] {
        make_stdin_raw();
        const std::string name = ::ttyname(STDIN_FILENO);
        sigset_t usr1;
        ::sigemptyset(&usr1);
        ::sigaddset(&usr1, SIGUSR1);
        ::sigprocmask(SIG_BLOCK, &usr1, nullptr);
        say("first");
        for (int fd = 0; fd < 3; ++fd) ::close(fd);
        int signal = 0;
        ::sigwait(&usr1, &signal);
        if (::open(name.c_str(), O_RDWR) != 0 || ::dup(0) != 1) return 1;
        char bytes[8];
        if (::read(STDIN_FILENO, bytes, sizeof bytes) != 1) return 2;
        say("second");
        return 0;
    });
    CHECK(read_until(out.reader.get(), "first") == "first");
    front.signal(SIGUSR1);
    write_whole(in.writer.get(), "x");
    CHECK(read_until(out.reader.get(), "second") == "second");
    CHECK(front.exit_code() == 0);
}

TEST_CASE("the user's terminal is raw while the payload runs and as before afterwards") {
    const Pty user = open_pty();
    Setup setup;
    setup.terminal = true;
    setup.input = user.slave.get();
    setup.output = user.slave.get();
    setup.controlling_terminal = user.slave.get();
    termios before{};
    REQUIRE(::tcgetattr(user.slave.get(), &before) == 0);
    Front front(setup, [] {
        say("ready\n");
        return pause_for_ever();
    });
    REQUIRE(read_until(user.master.get(), "ready\r\n") == "ready\r\n");
    CHECK(is_raw(user.slave.get()));
    SUBCASE("the payload dies") { front.kill_payload(); }
    SUBCASE("the payload is ended by a key") { write_whole(user.master.get(), "\x1c"); }
    SUBCASE("we are told to end") { front.signal(SIGTERM); }
    CHECK(front.exit_code() > 128);
    termios after{};
    REQUIRE(::tcgetattr(user.slave.get(), &after) == 0);
    CHECK(after.c_lflag == before.c_lflag);
    CHECK(after.c_iflag == before.c_iflag);
    CHECK(after.c_oflag == before.c_oflag);
}

TEST_CASE("the flags of the user's terminal, which the shell shares, are not touched") {
    const Pty user = open_pty();
    Setup setup;
    setup.terminal = true;
    setup.input = user.slave.get();
    setup.output = user.slave.get();
    Front front(setup, [] { return say("ready\n"), pause_for_ever(); });
    REQUIRE(read_until(user.master.get(), "ready").find("ready") != std::string::npos);
    CHECK((::fcntl(user.slave.get(), F_GETFL) & O_NONBLOCK) == 0);
}

TEST_CASE("the size of the user's window is the payload's, at the start and at each change") {
    const Pty user = open_pty();
    REQUIRE(set_window_size(user.master.get(), 40, 120));
    Setup setup;
    setup.terminal = true;
    setup.input = user.slave.get();
    setup.output = user.slave.get();
    setup.controlling_terminal = user.slave.get();
    Front front(setup, [] {
        sigset_t winch;
        ::sigemptyset(&winch);
        ::sigaddset(&winch, SIGWINCH);
        ::sigprocmask(SIG_BLOCK, &winch, nullptr);
        for (;;) {
            const winsize size = window_size(STDIN_FILENO).value();
            say(concat("size ", size.ws_row, "x", size.ws_col, ";"));
            int signal = 0;
            ::sigwait(&winch, &signal);
        }
        return 0;
    });
    // The payload may have started before its terminal had a size; then the change tells it.
    CHECK(read_until(user.master.get(), "size 40x120;").find("size 40x120;") != std::string::npos);
    REQUIRE(set_window_size(user.master.get(), 50, 132));
    CHECK(read_until(user.master.get(), "size 50x132;").find("size 50x132;") != std::string::npos);
}

TEST_CASE("a stop gives the user's terminal back, and a continue takes it again") {
    const Pty user = open_pty();
    Setup setup;
    setup.terminal = true;
    setup.input = user.slave.get();
    setup.output = user.slave.get();
    Front front(setup, report_signals);
    REQUIRE(read_until(user.master.get(), "ready\r\n") == "ready\r\n");
    REQUIRE(is_raw(user.slave.get()));
    front.signal(SIGTSTP);
    int status = 0;
    REQUIRE(::waitpid(front.pid(), &status, WUNTRACED) == front.pid());
    CHECK(!is_raw(user.slave.get()));
    front.signal(SIGCONT);
    CHECK(read_until(user.master.get(), "\n") == concat(SIGCONT, "\r\n"));
    CHECK(is_raw(user.slave.get()));
}

TEST_CASE("a terminal that nobody reads does not keep signals from the payload") {
    const Pty user = open_pty();
    fill(user);
    const Pipe report = make_pipe();
    Setup setup;
    setup.terminal = true;
    setup.input = user.slave.get();
    setup.output = user.slave.get();
    setup.report = report.writer.get();
    Front front(setup, [] {
        make_stdin_raw();
        write_whole(STDOUT_FILENO, sample(8'000));  // a pty holds it, even if we take nothing
        write_whole(kReport, "x");
        return pause_for_ever();
    });
    REQUIRE(read_until(report.reader.get(), "x") == "x");
    SUBCASE("a signal is passed on") {
        front.signal(SIGTERM);
        CHECK(front.payload_ends());
    }
    SUBCASE("output that nobody takes holds us up only until we are told to end") {
        front.kill_payload();
        REQUIRE(front.payload_ends());
        front.signal(SIGTERM);
        CHECK(front.exit_code() == 128 + SIGKILL);
    }
}
