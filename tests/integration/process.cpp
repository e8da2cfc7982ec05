// Starting programs and awaiting them, by poll() on their pipes and their pidfd: no sleeps.
#include "process.hpp"

#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <signal.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "support/testing.hpp"

namespace pinfold::integration {

namespace {

struct Pipe {
    UniqueFd read_end;
    UniqueFd write_end;
};

Pipe make_pipe() {
    std::array<int, 2> ends{};
    REQUIRE(::pipe2(ends.data(), O_CLOEXEC) == 0);
    return {UniqueFd(ends[0]), UniqueFd(ends[1])};
}

[[noreturn]] void give_up(const char* step) {
    ::dprintf(STDERR_FILENO, "test harness: %s: %s\n", step, std::strerror(errno));
    ::_exit(125);
}

void set_signals(const std::vector<int>& ignored, const std::vector<int>& blocked) {
    for (int number = 1; number < NSIG; ++number) ::signal(number, SIG_DFL);
    for (const int number : ignored) ::signal(number, SIG_IGN);
    sigset_t mask;
    ::sigemptyset(&mask);
    for (const int number : blocked) ::sigaddset(&mask, number);
    ::sigprocmask(SIG_SETMASK, &mask, nullptr);
}

void become(uid_t uid) {
    if (::setgroups(0, nullptr) != 0 || ::setresgid(uid, uid, uid) != 0 || ::setresuid(uid, uid, uid) != 0) {
        give_up("become a normal user");
    }
}

// Moves each descriptor out of the way first: {3 <- 4, 4 <- 3} must work too.
void place(std::vector<std::pair<int, int>> fds) {  // NOLINT(performance-unnecessary-value-param): it is changed below
    constexpr int kOutOfTheWay = 200;
    for (auto& [target, source] : fds) {
        source = ::fcntl(source, F_DUPFD_CLOEXEC, kOutOfTheWay);
        if (source < 0) give_up("fcntl");
    }
    for (const auto& [target, source] : fds) {
        if (::dup2(source, target) < 0) give_up("dup2");
    }
}

[[noreturn]] void exec_child(const std::vector<std::string>& arguments, const SpawnOptions& options,
                             const std::vector<std::pair<int, int>>& fds) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // an aborted test program leaves nothing behind
    set_signals(options.ignored_signals, options.blocked_signals);
    place(fds);
    if (options.own_terminal && (::setsid() < 0 || ::ioctl(STDIN_FILENO, TIOCSCTTY, 0) != 0)) give_up("TIOCSCTTY");
    for (const std::string& entry : options.env) {
        const size_t equals = entry.find('=');
        ::setenv(entry.substr(0, equals).c_str(), entry.substr(equals + 1).c_str(), 1);
    }
    if (!options.directory.empty() && ::chdir(options.directory.c_str()) != 0) give_up("chdir");
    ::umask(options.umask);
    if (options.uid) become(*options.uid);
    for (const int number : options.closed) ::close(number);
    std::vector<char*> argv;
    for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
    argv.push_back(nullptr);
    ::execvp(argv[0], argv.data());
    give_up(argv[0]);
}

// Takes what is there, without waiting; false at the end of the stream.
bool drain(int fd, std::string& text) {
    std::array<char, 16384> buffer{};
    for (;;) {
        const ssize_t count = ::read(fd, buffer.data(), buffer.size());
        if (count > 0) text.append(buffer.data(), static_cast<size_t>(count));
        else return count < 0 && errno == EAGAIN;
    }
}

}  // namespace

std::chrono::milliseconds patience() { return std::chrono::seconds(testing::slow_machine() ? 120 : 30); }

bool await_readable(int fd) {
    pollfd source{fd, POLLIN, 0};
    return ::poll(&source, 1, static_cast<int>(patience().count())) == 1;
}

std::string await_file(const std::string& path) {
    const UniqueFd changes(::inotify_init1(IN_CLOEXEC));
    REQUIRE(::inotify_add_watch(changes.get(), path.substr(0, path.rfind('/')).c_str(),
                                IN_MOVED_TO | IN_MODIFY | IN_CLOSE_WRITE) >= 0);
    for (;;) {
        std::string text;
        const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
        if (file) drain(file.get(), text);
        if (!text.empty()) return text;
        if (!await_readable(changes.get())) FAIL("this file did not come: " << path);
        std::array<char, 4096> events{};
        REQUIRE(::read(changes.get(), events.data(), events.size()) > 0);
    }
}

Process::Process(const std::vector<std::string>& argv, const SpawnOptions& options) {
    Pipe in = make_pipe();
    Pipe out = make_pipe();
    Pipe err = make_pipe();
    if (!options.input.empty()) {
        REQUIRE(::write(in.write_end.get(), options.input.data(), options.input.size()) >= 0);
    }
    std::vector<std::pair<int, int>> fds = {{0, in.read_end.get()}, {1, out.write_end.get()}, {2, err.write_end.get()}};
    for (const auto& wanted : options.fds) {
        std::erase_if(fds, [&](const auto& given) { return given.first == wanted.first; });
        fds.push_back(wanted);
    }
    pid_ = ::fork();
    REQUIRE(pid_ >= 0);
    if (pid_ == 0) exec_child(argv, options, fds);
    pidfd_ = UniqueFd(static_cast<int>(::syscall(SYS_pidfd_open, pid_, 0)));
    out_ = std::move(out.read_end);
    err_ = std::move(err.read_end);
    ::fcntl(out_.get(), F_SETFL, O_NONBLOCK);
    ::fcntl(err_.get(), F_SETFL, O_NONBLOCK);
}

Process::~Process() {
    if (pid_ < 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
}

void Process::signal(int number) const { CHECK(::kill(pid_, number) == 0); }

bool Process::advance() {
    std::array<pollfd, 3> sources{pollfd{out_.get(), POLLIN, 0}, pollfd{err_.get(), POLLIN, 0},
                                  pollfd{pidfd_.get(), POLLIN, 0}};
    if (::poll(sources.data(), sources.size(), static_cast<int>(patience().count())) <= 0) {
        FAIL("deadline passed; output so far: " << out_text_ << "\nerrors so far: " << err_text_);
    }
    if (out_ && !drain(out_.get(), out_text_)) out_.reset();
    if (err_ && !drain(err_.get(), err_text_)) err_.reset();
    // The end was seen before the pipes were drained, so that all it wrote is here.
    return sources[2].revents == 0;
}

std::string Process::read_line() {
    bool alive = true;
    size_t end = std::string::npos;
    while ((end = out_text_.find('\n', taken_)) == std::string::npos && alive) alive = advance();
    if (end == std::string::npos) FAIL("ended without the line that was awaited; errors: " << err_text_);
    std::string line = out_text_.substr(taken_, end - taken_);
    taken_ = end + 1;
    return line;
}

Ended Process::finish() {
    while (advance()) {
    }
    int status = 0;
    REQUIRE(::waitpid(pid_, &status, 0) == pid_);
    pid_ = -1;
    return {WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), out_text_, err_text_};
}

Ended run_program(const std::vector<std::string>& argv, const SpawnOptions& options) {
    return Process(argv, options).finish();
}

}  // namespace pinfold::integration
