// For verbs that work on the group of a container that has processes.
#pragma once

#include <string>

#include "cli/options.hpp"
#include "pinfold/result.hpp"
#include "state/store.hpp"

namespace pinfold {

// Refused: a container that has ended or is not whole yet, and one without a group of its own.
Result<ContainerState> load_live(const std::string& id, const CommandLine& line);

}  // namespace pinfold
