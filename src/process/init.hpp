// The child: from the clone to execve, one flat list of steps.
#pragma once

#include <optional>
#include <vector>

#include "pinfold/unique_fd.hpp"
#include "plan/plan.hpp"
#include "process/protocol.hpp"
#include "seccomp/compile.hpp"

namespace pinfold {

// Detached trees that the parent opened for the child; empty where the child opens them itself.
struct OpenedTrees {
    UniqueFd root;
    std::vector<UniqueFd> mounts;  // one per request, in order
};

// What the child takes over from its parent besides the plan.
struct InitContext {
    Channel channel;
    OpenedTrees trees;
    std::optional<SeccompFilter> filter;
    UniqueFd console_socket;  // empty: the terminal goes to the parent
    std::optional<winsize> window;
};

[[noreturn]] void run_init(const Plan& plan, InitContext context);

}  // namespace pinfold
