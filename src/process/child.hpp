// The parent's side of a child on its way to becoming a payload: the container's first process, or one of exec.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "pinfold/result.hpp"
#include "pinfold/unique_fd.hpp"
#include "plan/plan.hpp"
#include "process/child_options.hpp"
#include "process/child_steps.hpp"
#include "process/protocol.hpp"
#include "process/spawn.hpp"
#include "process/supervise.hpp"
#include "verify/receipt.hpp"

namespace pinfold {

// What a child cannot do for itself.
Result<void> set_oom_score(pid_t pid, int score);
// Pipes on our 0, 1 and 2 that it may open again.
Result<void> give_away_pipes(uid_t owner);

Result<void> send_pidfd(const Child& child, const std::string& socket);

// Console socket and window size, as the plan and the caller want them; the filter is still to be compiled.
Result<PayloadSetup> make_setup(const ProcessPlan& process, const ChildOptions& options);

// Waits for that very message; anything else is an error, as is a signal on signal_fd (-1: none) that asks us to end.
Result<Packet> expect(const Channel& channel, Message wanted, int signal_fd = -1);

// A child that is ready, and what is to be done for it while it waits.
struct ReadyChild {
    pid_t pid = 0;
    int pidfd = -1;
    // Gets the listener of its filter, and gives it back if it is to stay with us: a call that arrives there is then
    // the very one that starts the program.
    std::function<Result<UniqueFd>(UniqueFd listener)> on_listener;
    std::function<Result<Receipt>()> read_receipt;
    ReceiptHandler on_receipt;
};

// Until execve has closed the child's end. The listener, if it stays with us.
Result<UniqueFd> await_payload(const Channel& channel, const ReadyChild& child, int signal_fd = -1);

// The foreground: passes signals on and relays the terminal until the process ends. The value is its exit code.
Result<int> supervise_child(Child child, const SignalForwarder& signals, UniqueFd master);

}  // namespace pinfold
