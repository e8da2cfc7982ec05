// A further process in a container that exists.
#pragma once

#include <string>

#include "plan/plan.hpp"
#include "process/child.hpp"
#include "state/store.hpp"

namespace pinfold {

// Runs it to its end and returns its exit code; 0 at once with detach. `group` is a cgroup below the container's, empty
// for that itself.
Result<int> exec_in_container(const ExecPlan& plan, const ContainerState& state, const std::string& group,
                              const ChildOptions& options);

}  // namespace pinfold
