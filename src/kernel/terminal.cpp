// A container's terminal: the pty made inside the container's own devpts, handed over and sized,
// and the raw mode of the terminal that a user sits at.
#include "kernel/terminal.hpp"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/fs.hpp"
#include "base/log.hpp"
#include "base/strings.hpp"
#include "kernel/syscalls.hpp"

namespace pinfold {

namespace {

constexpr const char* kMountHint = "mount devpts at /dev/pts";
constexpr const char* kPtmxModeHint = "mount devpts with the options newinstance and ptmxmode=0666";

UniqueFd open_beneath(int dir, const char* path, int flags, uint64_t resolve) {
    open_how how{};
    how.flags = uint64_t(flags | O_CLOEXEC);
    how.resolve = resolve | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_SYMLINKS;
    return UniqueFd(sys_openat2(dir, path, how));
}

bool is_devpts(int fd) {
    struct statfs info {};
    return ::fstatfs(fd, &info) == 0 && info.f_type == DEVPTS_SUPER_MAGIC;
}

bool is_ptmx(int fd) {
    struct stat info {};
    return ::fstat(fd, &info) == 0 && S_ISCHR(info.st_mode) && info.st_rdev == makedev(5, 2);
}

// The directory is verified before anything in it is opened: to open an unknown device can have effects of its own.
Result<UniqueFd> open_devpts(int root_fd) {
    UniqueFd dir = open_beneath(root_fd, "dev/pts", O_PATH | O_DIRECTORY, RESOLVE_IN_ROOT);
    if (!dir) return errno_error("open /dev/pts in the container").with_hint(kMountHint);
    if (!is_devpts(dir.get())) return plain_error("/dev/pts in the container is not a devpts").with_hint(kMountHint);
    return dir;
}

// NO_XDEV: nobody can make a file in a devpts, but a mount can cover the one that is there.
Result<UniqueFd> open_ptmx(int devpts_fd) {
    UniqueFd master = open_beneath(devpts_fd, "ptmx", O_RDWR | O_NOCTTY, RESOLVE_BENEATH | RESOLVE_NO_XDEV);
    if (!master) {
        const int code = errno;
        Error error = errno_error(code, "open /dev/pts/ptmx in the container");
        if (code == EACCES) return std::move(error).with_hint(kPtmxModeHint);
        return error;
    }
    if (!is_devpts(master.get()) || !is_ptmx(master.get())) {
        return plain_error("/dev/pts/ptmx in the container is not the devpts master device").with_hint(kMountHint);
    }
    return master;
}

// A terminal that is ours but whose foreground is another job. To touch it would stop us (SIGTTOU).
bool in_background(int fd) {
    const pid_t foreground = ::tcgetpgrp(fd);
    return foreground > 0 && foreground != ::getpgrp();
}

// Large enough for one descriptor; the union gives the alignment that cmsghdr needs.
}  // namespace

Result<UniqueFd> open_pty_slave(int master_fd) {
    UniqueFd slave(::ioctl(master_fd, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC));
    if (!slave) return errno_error("open the terminal's slave (TIOCGPTPEER)");
    return slave;
}

Result<Pty> open_container_pty(int root_fd) {
    const UniqueFd devpts = TRY(open_devpts(root_fd));
    UniqueFd master = TRY(open_ptmx(devpts.get()));
    const int locked = 0;
    if (::ioctl(master.get(), TIOCSPTLCK, &locked) < 0) return errno_error("unlock the terminal (TIOCSPTLCK)");
    UniqueFd slave = TRY(open_pty_slave(master.get()));
    return Pty{std::move(master), std::move(slave)};
}

Result<void> own_terminal(int slave_fd, uid_t uid) {
    if (::fchown(slave_fd, uid, gid_t(-1)) == 0) return {};
    // In a user namespace the uid may not be mapped, or the devpts may belong to the host. The terminal works
    // all the same through the descriptors that the process has.
    Error error = errno_error(concat("give the terminal to uid ", uid));
    if (error.code != EINVAL && error.code != EPERM) return error;
    log_debug(error.message);
    return {};
}

Result<void> claim_terminal(int slave_fd) {
    if (::ioctl(slave_fd, TIOCSCTTY, 0) < 0) return errno_error("make the terminal the controlling one (TIOCSCTTY)");
    return {};
}

Result<void> attach_terminal(int slave_fd) {
    TRY(claim_terminal(slave_fd));
    return place_terminal(slave_fd);
}

Result<void> place_terminal(int slave_fd) {
    for (const int target : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
        // dup3 refuses equal numbers; then only the flag that would close it at exec has to go.
        const int done = slave_fd == target ? ::fcntl(target, F_SETFD, 0) : ::dup3(slave_fd, target, 0);
        if (done < 0) return errno_error(concat("attach the terminal to descriptor ", target));
    }
    return {};
}

Result<void> set_window_size(int fd, unsigned short rows, unsigned short columns) {
    const winsize size{.ws_row = rows, .ws_col = columns, .ws_xpixel = 0, .ws_ypixel = 0};
    if (::ioctl(fd, TIOCSWINSZ, &size) < 0) return errno_error("set the terminal's window size");
    return {};
}

Result<winsize> window_size(int fd) {
    winsize size{};
    if (::ioctl(fd, TIOCGWINSZ, &size) < 0) return errno_error("read the terminal's window size");
    return size;
}

Result<UniqueFd> reopen_terminal(int fd) {
    // ptmx makes a new pty at each open.
    if (::isatty(fd) == 0 || is_ptmx(fd)) return plain_error(concat("descriptor ", fd, " is no terminal to reopen"));
    const int access = ::fcntl(fd, F_GETFL) & O_ACCMODE;
    return open_at(AT_FDCWD, concat("/proc/self/fd/", fd), access | O_NONBLOCK | O_NOCTTY);
}

Result<RawMode> RawMode::enter(int fd) {
    termios saved{};
    if (::tcgetattr(fd, &saved) < 0) return errno_error("read the terminal's mode");
    RawMode mode(fd, saved);
    TRY(mode.apply());
    return mode;
}

RawMode::RawMode(RawMode&& other) noexcept
    : fd_(other.fd_), saved_(other.saved_), raw_(std::exchange(other.raw_, false)) {}

Result<void> RawMode::apply() {
    if (in_background(fd_)) return {};
    termios raw = saved_;
    ::cfmakeraw(&raw);
    if (::tcsetattr(fd_, TCSANOW, &raw) < 0) return errno_error("make the terminal raw");
    raw_ = true;
    return {};
}

void RawMode::restore() noexcept {
    if (!std::exchange(raw_, false) || in_background(fd_)) return;
    ::tcsetattr(fd_, TCSANOW, &saved_);  // fails only for a terminal that is gone
}

}  // namespace pinfold
