// The parent's side of a child on its way to becoming a payload: the container's first process, or one of exec.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "kernel/child_guard.hpp"
#include "pinfold/result.hpp"
#include "pinfold/unique_fd.hpp"
#include "plan/plan.hpp"
#include "process/child_options.hpp"
#include "process/payload.hpp"
#include "process/protocol.hpp"
#include "process/supervise.hpp"

namespace pinfold {

struct Child {
    ChildGuard guard;
    UniqueFd pidfd;

    pid_t pid() const { return guard.pid(); }
};

// clone3 into the group, if there is one (-1: none). 0 in the child.
Result<pid_t> clone_into(uint64_t flags, int cgroup, int& pidfd);

// What the child cannot do for itself: hard limits, its OOM score, pipes that it may open again.
Result<void> prepare_process(pid_t pid, const ProcessPlan& process, std::optional<uid_t> stream_owner);

Result<void> send_pidfd(const Child& child, const std::string& socket);

// Filter, console socket and window size, as the plan and the caller want them.
Result<Outfit> make_outfit(const ProcessPlan& process, const std::optional<Seccomp>& seccomp,
                           const ChildOptions& options);

// Waits for that very message; anything else is an error, as is a signal on signal_fd (-1: none) that asks us to end.
Result<Packet> expect(const Channel& channel, Message wanted, int signal_fd = -1);

// What is to be done for a child that is ready, while it waits.
struct ReadyHandlers {
    // Takes the listener, and says what to watch: a call that arrives there is the very one that starts the program.
    // -1: nothing, the listener is with somebody else.
    std::function<Result<int>(const ListenerOffer&)> on_listener;
    std::function<Result<void>(WaitingPlace gate)> on_gate;
};

// Until execve has closed the child's end. Gives the terminal's master, if there is one for us.
Result<UniqueFd> await_payload(const Channel& channel, bool terminal_for_us, const ReadyHandlers& handlers,
                               int signal_fd = -1);

// The foreground: passes signals on and relays the terminal until the process ends. The value is its exit code.
Result<int> supervise_child(Child child, const SignalForwarder& signals, UniqueFd master);

}  // namespace pinfold
