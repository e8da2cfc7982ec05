// Work in a process of its own.
#include "sandbox/worker.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstring>
#include <memory>

#include "base/fs.hpp"
#include "base/process.hpp"
#include "base/strings.hpp"
#include "pinfold/unique_fd.hpp"
#include "process/payload_steps.hpp"
#include "process/spawn.hpp"

namespace pinfold {

namespace {

// First whether it was done, then the answer or the error, each with its size. Whole or it is no answer: what is cut
// short is shorter than that says.
struct Head {
    bool done;
    size_t size;
};

Result<void> send(int fd, const Result<std::string>& result) {
    const ErrorPacket error(result ? Error{} : result.error());
    const std::string_view answer = result ? std::string_view(*result) : error.bytes();
    const Head head{result.has_value(), answer.size()};
    for (const std::string_view part : {std::string_view(reinterpret_cast<const char*>(&head), sizeof head), answer})
        TRY(write_all(fd, part, "the answer"));
    return {};
}

Result<std::string> unwrap(std::string text) {
    Head head{};
    const Error lost = plain_error("the process that supervised the sandbox was killed");
    if (text.size() < sizeof head) return lost;
    std::memcpy(&head, text.data(), sizeof head);
    text.erase(0, sizeof head);
    if (text.size() != head.size) return lost;
    if (head.done) return text;
    return unpack_error(text).value_or(lost);
}

// The caller's handlers are for its own affairs, and its mask may hold back what must end us.
[[noreturn]] void work_here(int answer, const std::function<Result<std::string>(int answer)>& work) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    reset_signals();
    for (const int number : {SIGPIPE, SIGXFSZ}) ::signal(number, SIG_IGN);  // errors of write() are told
    const Result<void> filled = fill_standard_streams();
    (void)send(answer, filled ? work(answer) : filled.error()).has_value();  // or there is nobody to tell
    ::_exit(0);
}

Result<std::string> in_child(const std::function<Result<std::string>(int answer)>& work) {
    Pipe pipe = TRY(make_pipe(" to the supervisor"));
    // A caller may have closed its standard streams: their numbers are left free, for the worker to fill.
    const Result<UniqueFd> from = above_standard_streams(std::move(pipe.from));
    Result<UniqueFd> to = above_standard_streams(std::move(pipe.to));
    if (!from || !to) return from ? to.error() : from.error();
    const pid_t pid = ::fork();  // glibc's: its locks are whole in the child, whatever other threads were doing
    if (pid < 0) return errno_error("start the supervisor");
    if (pid == 0) work_here(to->get(), work);
    to->reset();
    Result<std::string> text = read_all(from->get(), "the supervisor's answer");
    reap(pid);
    if (!text) return text;
    return unwrap(std::move(*text));
}

// All of our own are closed by execve(2), so what is not was inherited.
Result<void> close_inherited() {
    const std::unique_ptr<DIR, int (*)(DIR*)> open(::opendir("/proc/self/fd"), ::closedir);
    if (!open) return errno_error("list /proc/self/fd");
    while (const dirent* entry = ::readdir(open.get())) {
        const int fd = parse_number<int>(entry->d_name).value_or(-1);
        const int flags = fd > STDERR_FILENO ? ::fcntl(fd, F_GETFD) : -1;
        if (flags >= 0 && (flags & FD_CLOEXEC) == 0) ::close(fd);
    }
    return {};
}

}  // namespace

Result<void> leave_caller(const char* name) {
    const UniqueFd nowhere = TRY(open_at(AT_FDCWD, "/dev/null", O_RDWR));
    for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
        if (::dup2(nowhere.get(), stream) < 0) return errno_error("let go of the caller's streams");
    }
    TRY(close_inherited());
    if (::chdir("/") != 0) return errno_error("change to /");
    ::setsid();                  // fails only for one that leads a session
    wipe(find_argv_region());    // which may hold what others are not to read
    ::prctl(PR_SET_NAME, name);  // cannot fail
    return {};
}

Result<std::string> in_lasting_worker(const std::function<void(const Answer&)>& work, int not_held) {
    Pipe pipe = TRY(make_pipe(" to the monitor"));
    const pid_t pid = ::fork();
    if (pid < 0) return errno_error("start the monitor");
    if (pid == 0) {
        ::signal(SIGPIPE, SIG_IGN);
        if (not_held >= 0) ::close(not_held);
        pipe.from.reset();
        work([&pipe](const Result<std::string>& result) -> Result<void> {
            if (!pipe.to) return {};
            Result<void> sent = send(pipe.to.get(), result);
            pipe.to.reset();
            return sent;
        });
        ::_exit(0);
    }
    pipe.to.reset();
    Result<std::string> answer = unwrap(TRY(read_all(pipe.from.get(), "the monitor's answer")));
    if (!answer) reap(pid);
    return answer;
}

Result<std::string> in_worker(const std::function<Result<std::string>()>& work) {
    return in_child([&](int) { return work(); });
}

Result<std::string> in_clean_worker(const std::function<Result<std::string>(int answer)>& work) {
    return in_child([&](int answer) {
        const auto number = static_cast<unsigned>(answer);
        ::close_range(STDERR_FILENO + 1, number - 1, 0);  // fails where there is none between
        ::close_range(number + 1, UINT_MAX, 0);
        return work(answer);
    });
}

}  // namespace pinfold
