// The last steps of a process on its way to becoming a payload: the container's first one, or one of exec.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "kernel/terminal.hpp"
#include "plan/plan.hpp"
#include "process/protocol.hpp"
#include "seccomp/compile.hpp"

namespace pinfold {

// What the payload gets as 0, 1 and 2 instead of the caller's own.
struct Streams {
    UniqueFd in;
    UniqueFd out;
    UniqueFd err;
};

// What the parent has made ready for the payload.
struct Outfit {
    std::optional<SeccompFilter> filter;
    UniqueFd console_socket;  // empty: the terminal goes to the parent
    std::optional<winsize> window;
    const Streams* streams = nullptr;  // null: the caller's own
};

struct Executable {
    std::string path;
    std::vector<std::string> env;
};

// Sizes the terminal, gives it to its user, and sends its master to whom it is for.
Result<void> hand_over_terminal(const Pty& pty, uid_t owner, const Outfit& outfit, const Channel& channel);

// The security modules' part: what the next execve changes to. While the host's /proc is in reach.
Result<void> confine(const ProcessPlan& process, pid_t host_pid);

// From root in the container to the payload's user, who is the one to look for its program.
Result<Executable> become_user(const ProcessPlan& process);

// As 0, 1 and 2, where they are not the caller's own.
Result<void> take_streams(const Outfit& outfit);

// An end to what the payload must not inherit: the parent-death signal, blocked and ignored signals, descriptors that
// leaked to us. They are closed by execve, and with them the channel: that tells the parent that the payload runs.
Result<void> let_go(const ProcessPlan& process);

void reset_signals();

// Says so on the channel; then no_new_privs, Landlock, capabilities, filter, execve. Returns only on failure.
Result<void> execute_payload(const ProcessPlan& process, const Executable& executable, const Outfit& outfit,
                             const Channel& channel);

// The same in two halves, for a process that is seen by others in the container from its first moment (entry.hpp).
// Outside of their sight: the payload's user, streams and rights. What is left to do inside, and the capability that it
// takes, if it takes one: see kept_capabilities(). The program's path is found inside, where it may be one in /proc.
Result<Executable> become_payload_ahead(const ProcessPlan& process, const Outfit& outfit);
// In the process that was cloned: a session, the terminal, what does not outlast a clone. Its pid as the host sees it,
// which comes with the parent's `go`.
Result<pid_t> settle_inside(const ProcessPlan& process, const Channel& channel);
// Returns only on failure.
Result<void> execute_inside(const ProcessPlan& process, Executable executable, const Outfit& outfit,
                            const Channel& channel);

}  // namespace pinfold
