// One direction between a pipe of ours and a stream of the caller's.
#include "sandbox/flow.hpp"

#include <fcntl.h>
#include <linux/close_range.h>
#include <linux/major.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <csignal>

#include "base/clock.hpp"
#include "base/fs.hpp"
#include "base/process.hpp"
#include "base/strings.hpp"
#include "kernel/terminal.hpp"
#include "process/payload_steps.hpp"

namespace pinfold {

namespace {

constexpr size_t kChunk = 64 << 10;

// Blocks where it has to, so that its parent need not.
[[noreturn]] void pass_on(int from, int to, pid_t parent) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) ::_exit(1);
    ::prctl(PR_SET_NAME, "pinfold-relay");
    reset_signals();
    const int places[] = {::fcntl(from, F_DUPFD, 3), ::fcntl(to, F_DUPFD, 3)};
    for (const int number : {0, 1}) {
        if (::dup2(places[number], number) < 0) ::_exit(1);
    }
    ::close_range(2, UINT_MAX, 0);
    char bytes[kChunk];
    for (ssize_t count = 0; (count = ::read(0, bytes, sizeof bytes)) != 0;) {
        if (count < 0 && errno != EINTR) ::_exit(1);
        if (count <= 0) continue;
        const Result<void> written = write_all(1, {bytes, size_t(count)}, "the stream");
        if (!written) ::_exit(written.error().code);  // which await_helper() reads
    }
    ::_exit(0);
}

}  // namespace

Result<Flow> Flow::to_caller(UniqueFd pipe, int stream) {
    Flow flow;
    flow.pipe_ = std::move(pipe);
    TRY(flow.open_stream(stream, true));
    return flow;
}

Result<Flow> Flow::from_caller(int stream, UniqueFd pipe) {
    Flow flow;
    flow.pipe_ = std::move(pipe);
    TRY(flow.open_stream(stream, false));
    return flow;
}

// Files and memory devices take and give without waiting for anybody. A terminal does not, but can be opened anew
// without blocking, unless it is another user's; then, and for whatever else it may be, somebody else waits.
Result<void> Flow::open_stream(int stream, bool outward) {
    outward_ = outward;
    stream_ = stream;
    struct stat info {};
    if (::fstat(stream, &info) != 0) return errno_error("look at a standard stream");
    if (S_ISFIFO(info.st_mode)) kind_ = Kind::pipe;
    if (S_ISSOCK(info.st_mode)) kind_ = Kind::socket;
    if (!S_ISCHR(info.st_mode) || major(info.st_rdev) == MEM_MAJOR) return {};
    is_terminal_ = ::isatty(stream) != 0;
    Result<UniqueFd> twin = reopen_terminal(stream);
    if (!twin) return start_helper(stream, outward);
    own_ = std::move(twin).value();
    stream_ = own_.get();
    return {};
}

Result<void> Flow::start_helper(int stream, bool outward) {
    Pipe pipe = TRY(make_pipe(" to a relay"));
    const pid_t parent = ::getpid();
    const pid_t pid = ::fork();
    if (pid < 0) return errno_error("start a relay");
    if (pid == 0) pass_on(outward ? pipe.from.get() : stream, outward ? stream : pipe.to.get(), parent);
    helper_ = std::make_unique<ChildGuard>(pid);
    own_ = outward ? std::move(pipe.to) : std::move(pipe.from);
    stream_ = own_.get();
    kind_ = Kind::pipe;
    return {};
}

pollfd Flow::slot() const {
    if (is_over()) return {-1, 0, 0};
    return is_held_up() ? pollfd{to(), POLLOUT, 0} : pollfd{from(), POLLIN, 0};
}

size_t Flow::move(size_t most) {
    if (is_over()) return 0;
    if (kind_ == Kind::pipe) return splice_some(most);
    // A pipe that may block takes, and gives, a little without waiting when poll() has said so, and not otherwise.
    if (kind_ == Kind::copied_pipe && pending_.empty()) return read_some(std::min<size_t>(most, PIPE_BUF));
    const size_t count = pending_.empty() ? read_some(std::min(most, kChunk)) : 0;
    write_pending();
    return count;
}

// Between two pipes nothing is copied. Neither of them waits, whatever their own flags say. After poll() has found
// bytes in the one, it is the other that has no room.
size_t Flow::splice_some(size_t most) {
    const bool had_room = to_is_full_;
    const ssize_t count =
        ::splice(from(), nullptr, to(), nullptr, std::min(most, kChunk), SPLICE_F_NONBLOCK | SPLICE_F_MOVE);
    to_is_full_ = count < 0 && errno == EAGAIN && !had_room;
    if (count > 0) return size_t(count);
    if (count == 0 && most != 0) close();
    if (count < 0 && errno == EPIPE) end_by(errno);
    else if (count < 0 && errno != EAGAIN && errno != EINTR) copy_from_now_on();
    return 0;
}

// The kernel does not splice to what is open for appending, for one.
void Flow::copy_from_now_on() {
    kind_ = Kind::copied_pipe;
    const int flags = (outward_ ? O_WRONLY : O_RDONLY) | O_NONBLOCK;
    Result<UniqueFd> twin = open_at(AT_FDCWD, concat("/proc/self/fd/", stream_), flags);
    if (!twin) return;  // another user's
    own_ = std::move(twin).value();
    stream_ = own_.get();
}

size_t Flow::read_some(size_t most) {
    pending_.resize(most);
    const ssize_t count = kind_ == Kind::socket && !outward_ ? ::recv(from(), pending_.data(), most, MSG_DONTWAIT)
                                                             : ::read(from(), pending_.data(), most);
    const int code = errno;
    pending_.resize(count > 0 ? size_t(count) : 0);
    // A terminal that was hung up answers EIO; no other error heals either.
    if ((count == 0 && most != 0) || (count < 0 && code != EAGAIN && code != EINTR)) close();
    return pending_.size();
}

void Flow::write_pending() {
    if (is_over() || pending_.empty()) return;
    const ssize_t count = kind_ == Kind::socket && outward_
                              ? ::send(to(), pending_.data(), pending_.size(), MSG_DONTWAIT | MSG_NOSIGNAL)
                              : ::write(to(), pending_.data(), pending_.size());
    if (count >= 0) pending_.erase(0, size_t(count));
    else if (errno != EAGAIN && errno != EINTR) end_by(errno);
}

// A terminal that was hung up answers EIO; a disk that does so is broken.
bool Flow::means_gone(int code) const { return code == EPIPE || code == ECONNRESET || (code == EIO && is_terminal_); }

// A reader that has gone takes no more. Who writes to it is to see that, as it would without us in between.
void Flow::end_by(int code) {
    if (outward_ && !means_gone(code)) lost_ = code;
    pending_.clear();
    close();
}

bool Flow::await_helper(int64_t give_up_at) {
    if (!helper_ || !outward_) return true;
    const UniqueFd process = open_pidfd(helper_->pid());
    const int64_t left = std::max<int64_t>(0, give_up_at - monotonic_ns());
    pollfd slot{process.get(), POLLIN, 0};
    if (!process || ::poll(&slot, 1, static_cast<int>(std::min<int64_t>(left / 1000000, INT_MAX))) != 1) return false;
    siginfo_t end{};  // left there for its guard to reap
    const bool known = ::waitid(P_PIDFD, id_t(process.get()), &end, WEXITED | WNOWAIT) == 0;
    if (known && end.si_code == CLD_EXITED && end.si_status != 0) end_by(end.si_status);
    return true;
}

}  // namespace pinfold
