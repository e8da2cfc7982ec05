// ResourceLimits from a file and options of the command line.
#pragma once

#include <string>
#include <vector>

#include "cli/verbs.hpp"
#include "pinfold/resource_limits.hpp"
#include "pinfold/sandbox.hpp"

namespace pinfold {

struct WantedLimits {
    ResourceLimits limits;
    Network network = Network::none;
    std::vector<std::string> asked;  // limits that not every host can hold, and that were asked for by name
};

Result<WantedLimits> resolve_limits(const LimitOptions& options);

}  // namespace pinfold
