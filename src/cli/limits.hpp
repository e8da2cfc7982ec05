// ResourceLimits from a file and options of the command line.
#pragma once

#include "cli/verbs.hpp"
#include "pinfold/resource_limits.hpp"
#include "pinfold/sandbox.hpp"

namespace pinfold {

struct WantedLimits {
    ResourceLimits limits;
    Network network = Network::none;
};

Result<WantedLimits> resolve_limits(const LimitOptions& options);

}  // namespace pinfold
