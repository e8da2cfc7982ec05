// For verbs that work on the group of a container that has processes.
#pragma once

#include <string>

#include "cli/verbs.hpp"
#include "pinfold/result.hpp"
#include "state/lifecycle.hpp"

namespace pinfold {

// Refused: a container in a state in which the operation is not legal, and one without a group of its own.
Result<ContainerState> load_with_cgroup(Operation operation, const std::string& id, const CommandLine& line);

}  // namespace pinfold
