// The child: from the clone to execve, one flat list of steps.
#pragma once

#include <optional>
#include <vector>

#include "pinfold/unique_fd.hpp"
#include "plan/plan.hpp"
#include "process/keeper.hpp"
#include "process/payload.hpp"
#include "process/protocol.hpp"
#include "state/store.hpp"

namespace pinfold {

// Detached mounts: the parent has made those that the child cannot, the child makes the others.
struct OpenedTrees {
    UniqueFd root;
    std::vector<UniqueFd> mounts;  // one per request, in order
};

// What the child takes over from its parent besides the plan.
struct InitContext {
    Channel channel;
    OpenedTrees trees;
    Outfit outfit;
    UniqueFd start_socket;                    // empty: do not wait for `start`
    UniqueFd pid_namespace;                   // to be entered when all else is set up; empty: we are where we belong
    OwnWords words;                           // for then
    std::optional<KeeperContext> keeper;      // where the plan has one
    const ContainerRecord* record = nullptr;  // for hooks
    pid_t host_pid = 0;                       // our own, as the host sees it; the parent says it
};

[[noreturn]] void run_init(const Plan& plan, InitContext context);

}  // namespace pinfold
