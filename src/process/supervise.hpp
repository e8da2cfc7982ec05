// The process in front of a running container: passes signals on, relays its terminal, reports its end.
#pragma once

#include <sys/resource.h>
#include <sys/types.h>
#include <unistd.h>

#include <csignal>

#include "base/process.hpp"
#include "pinfold/result.hpp"
#include "pinfold/unique_fd.hpp"
#include "process/channel.hpp"
#include "process/spawn.hpp"

namespace pinfold {

// Holds back, from before the clone on, the signals that are the container's, so that none is lost on the way.
// What was ignored when we were started stays ignored (nohup, a shell's background job).
class SignalForwarder {
public:
    static Result<SignalForwarder> create();
    SignalForwarder(SignalForwarder&& other) noexcept = default;
    SignalForwarder& operator=(SignalForwarder&&) = delete;
    // Drops what is still pending: it was meant for a container that is gone.
    ~SignalForwarder();

    const sigset_t& original_mask() const { return original_mask_; }
    int fd() const { return fd_.get(); }

private:
    SignalForwarder() = default;

    UniqueFd fd_;
    sigset_t original_mask_{};
    struct sigaction original_child_action_ {};
};

// An error if one of the signals that wait to be read asks us to end. The others are dropped: their receiver does not
// exist yet.
Result<void> refuse_to_go_on(int signal_fd);

struct Supervision {
    int pidfd = -1;
    int signal_fd = -1;     // SignalForwarder::fd()
    UniqueFd pty_master{};  // empty: the container has no terminal
    int input = STDIN_FILENO;
    int output = STDOUT_FILENO;
};

// Waits for the container's process, which must be our child, and reaps it. The value is its exit code.
Result<int> supervise(Supervision supervision);

// The same for a child, with its terminal's master, if we have that.
Result<int> supervise_child(Child child, const SignalForwarder& signals, UniqueFd master);

// How a process ended, and what it and those that it had waited for have used.
PayloadEnd payload_end(const siginfo_t& end, const rusage& usage);

}  // namespace pinfold
