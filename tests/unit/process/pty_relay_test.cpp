// The relay between a payload's pty and the user's side, with real ptys and pipes: no byte is lost, nothing hangs.
#include "process/supervise.hpp"

#include "supervisor_fixture.hpp"

using namespace pinfold;
using namespace pinfold::testing;

namespace {

// The payload's own terminal, so that bytes pass unchanged.
void make_stdin_raw() {
    termios mode{};
    ::tcgetattr(STDIN_FILENO, &mode);
    ::cfmakeraw(&mode);
    ::tcsetattr(STDIN_FILENO, TCSANOW, &mode);
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

// A pty holds it even while nobody reads, and it is more than one piece of the relay.
constexpr size_t kFitsIntoPty = 7'000;

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

void make_room(const Pty& pty, size_t size) {
    std::string bytes(size, '\0');
    for (size_t done = 0; done < size;) {
        const ssize_t got = ::read(pty.master.get(), bytes.data(), size - done);
        REQUIRE(got > 0);
        done += size_t(got);
    }
}

bool is_raw(int fd) {
    termios mode{};
    REQUIRE(::tcgetattr(fd, &mode) == 0);
    return (mode.c_lflag & (ICANON | ECHO | ISIG)) == 0;
}

}  // namespace
TEST_CASE("a megabyte of terminal output arrives whole at a slow reader") {
    const Pipe out = make_pipe(4096);
    Setup setup;
    setup.terminal = true;
    setup.output = out.writer.get();
    SupervisorFixture front(setup, [] {
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
    const bool whole = got == sample(kMegabyte);
    CHECK(whole);
    CHECK(front.exit_code() == 0);
}

TEST_CASE("a megabyte goes in and comes back at the same time") {
    const Pipe in = make_pipe(4096);
    const Pipe out = make_pipe(4096);
    Setup setup;
    setup.terminal = true;
    setup.input = in.reader.get();
    setup.output = out.writer.get();
    SupervisorFixture front(setup, [] {
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
    const bool whole = got == text;
    CHECK(whole);
    CHECK(front.exit_code() == 0);
}

TEST_CASE("what a payload leaves in its terminal is read after its end") {
    Pipe out = make_pipe(4096);
    write_whole(out.writer.get(), std::string(4096, '.'));  // full: nothing gets through before we read
    Setup setup;
    setup.terminal = true;
    setup.output = out.writer.get();
    SupervisorFixture front(setup, [] {
        make_stdin_raw();
        write_whole(STDOUT_FILENO, sample(kFitsIntoPty));
        return 4;
    });
    REQUIRE(front.payload_ends());
    out.writer.reset();
    const bool whole = read_to_end(out.reader.get()) == std::string(4096, '.') + sample(kFitsIntoPty);
    CHECK(whole);
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
    SupervisorFixture front(setup, [] {
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
    CHECK(SupervisorFixture(setup, [] { return say("hello\n"), 6; }).exit_code() == 6);
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
    SupervisorFixture front(setup, [] {
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
    SupervisorFixture front(setup, [] {
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
    SupervisorFixture front(setup, [] {
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
    SupervisorFixture front(setup, [] { return say("ready\n"), pause_for_ever(); });
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
    SupervisorFixture front(setup, [] {
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
    SupervisorFixture front(setup, report_signals);
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
    make_room(user, 3'000);  // it takes a part of what the relay writes, and there a blocking write would hang
    const Pipe report = make_pipe();
    Setup setup;
    setup.terminal = true;
    setup.input = user.slave.get();
    setup.output = user.slave.get();
    setup.report = report.writer.get();
    SupervisorFixture front(setup, [] {
        make_stdin_raw();
        write_whole(STDOUT_FILENO, sample(kFitsIntoPty));
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
