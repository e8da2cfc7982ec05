// The controllers that limits need: whether this host has them, and their way down to a container's group.
#pragma once

#include "cgroup/plan.hpp"
#include "pinfold/result.hpp"

namespace pinfold {

// Before anything is made: a host without the controller cannot have the limit, however the groups are arranged.
// `mount` is a descriptor of the plan's mount.
Result<void> check_controllers(int mount, const CgroupPlan& plan);

// Makes every group above the container's own that is missing, and lets each pass the controllers on: those that limits
// need, or it is an error, and as many others as it can.
Result<void> make_ancestors(int mount, const CgroupPlan& plan);

// The permissions of new groups.
inline constexpr unsigned kCgroupMode = 0755;

}  // namespace pinfold
