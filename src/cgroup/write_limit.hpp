// Setting one limit of a group.
#pragma once

#include "cgroup/limits.hpp"
#include "pinfold/result.hpp"

namespace pinfold {

// Or finds that it is met without its file. The error names the property, and what would help where that is known.
Result<void> write_limit(int group, const CgroupWrite& write);

// A kernel built without swap has no file to keep swap off in.
bool is_met_without_swap(const CgroupWrite& write);

}  // namespace pinfold
