// A further process in a container that exists.
#pragma once

#include <functional>
#include <string>

#include "plan/plan.hpp"
#include "process/child_options.hpp"
#include "process/child_steps.hpp"
#include "process/spawn.hpp"
#include "state/store.hpp"
#include "verify/receipt.hpp"

namespace pinfold {

struct ExecRequest {
    const ExecPlan& plan;
    const ContainerState& state;
    std::string group;  // a cgroup below the container's; empty: that itself
    const ChildOptions& options;
    const Ending& ending;
    const Streams* streams = nullptr;  // null: our own
    bool listens = false;              // to what the filter notifies of: the listener stays with us
    ReceiptHandler on_receipt{};       // where one was planned
    int deadline = -1;                 // a timer, after which it is given up with ETIME
    int signals = -1;                  // a signalfd that may ask us to end
    // What is to be done before it may become its program; `mark` is its cgroup namespace, if the plan says so.
    std::function<Result<void>(const Child& child, int mark)> on_born{};
};

struct StartedExec {
    Child child;
    UniqueFd master{};    // of the terminal, if there is one for us
    UniqueFd listener{};  // of its seccomp filter, if that is for us
    UniqueFd mark{};      // its cgroup namespace, if the plan says so
};

// Before anything is made: the filter is compiled, and it is decided where the last steps are taken. Where pinfold's
// own file is to be protected and that is not in the trampoline, pinfold has to start again, and this decides nothing.
Result<Ending> decide_exec_ending(const ExecPlan& plan, const ChildOptions& options);

// Its payload runs.
Result<StartedExec> start_exec(const ExecRequest& request);

// Runs it to its end and returns its exit code; 0 at once with detach.
Result<int> exec_in_container(const ExecRequest& request);

}  // namespace pinfold
