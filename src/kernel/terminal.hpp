// A container's terminal: the pty made inside the container's own devpts, handed over and sized,
// and the raw mode of the terminal that a user sits at.
#pragma once

#include <sys/ioctl.h>
#include <sys/types.h>
#include <termios.h>

#include <string>

#include "pinfold/result.hpp"
#include "pinfold/unique_fd.hpp"

namespace pinfold {

struct Pty {
    UniqueFd master;
    UniqueFd slave;
};

// Child, before pivot_root: a new pty of the devpts mounted at dev/pts below root_fd, and of no other file there.
Result<Pty> open_container_pty(int root_fd);

// The other end of a pty, by descriptor: a path to it may mean something else by now (CVE-2025-52565).
Result<UniqueFd> open_pty_slave(int master_fd);

// The container's user owns its terminal, so that it can reopen it; the group stays devpts' own.
Result<void> own_terminal(int slave_fd, uid_t uid);

// Makes the slave standard input, output and error.
Result<void> place_terminal(int slave_fd);
// Child, after setsid: makes it the controlling terminal.
Result<void> claim_terminal(int slave_fd);
Result<void> attach_terminal(int slave_fd);  // both

Result<void> set_window_size(int fd, unsigned short rows, unsigned short columns);
Result<winsize> window_size(int fd);

// A second, non-blocking description of the same terminal. The first one's flags belong to everyone who inherited it.
Result<UniqueFd> reopen_terminal(int fd);

// Holds a terminal in raw mode. In the background it leaves the terminal alone: it is someone else's then.
class RawMode {
public:
    static Result<RawMode> enter(int fd);
    RawMode(RawMode&& other) noexcept;
    RawMode& operator=(RawMode&&) = delete;
    ~RawMode() { restore(); }

    Result<void> apply();  // again, after restore() or after a shell had the terminal
    void restore() noexcept;

private:
    RawMode(int fd, const termios& saved) : fd_(fd), saved_(saved) {}

    int fd_;
    termios saved_;
    bool raw_ = false;
};

}  // namespace pinfold
