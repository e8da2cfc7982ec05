// Changing the limits of a group that is in use.
#pragma once

#include <functional>

#include "cgroup/limits.hpp"
#include "cgroup/place.hpp"
#include "pinfold/result.hpp"
#include "pinfold/spec.hpp"

namespace pinfold {

// What is unset or zero stays as it is; what is said of one half of a pair (memory and swap, quota and period) is
// completed with what the group has. All of it comes into force, or an error says why none of it did: also where
// `keep`, which is told what was written, could not remember it.
using KeepLimits = std::function<Result<void>(const GroupLimits&)>;
Result<void> update_cgroup(const CgroupPlace& place, const Resources& resources, const KeepLimits& keep = {});

}  // namespace pinfold
