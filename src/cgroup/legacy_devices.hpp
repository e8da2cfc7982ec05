// linux.resources.devices as writes to devices.allow and devices.deny of cgroup v1. Pure.
#pragma once

#include <span>
#include <vector>

#include "cgroup/limits.hpp"
#include "pinfold/result.hpp"
#include "pinfold/spec.hpp"

namespace pinfold {

// To be written in this order. They mean what device_program() makes of the same rules; an error where cgroup v1, whose
// lists know no order, cannot say it.
Result<std::vector<CgroupWrite>> legacy_device_writes(std::span<const DeviceRule> rules);

}  // namespace pinfold
