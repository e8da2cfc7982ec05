// linux.resources as writes to the control files of cgroup v1, for limits whose controllers are there. Pure.
#pragma once

#include <span>
#include <vector>

#include "cgroup/host.hpp"
#include "cgroup/limits.hpp"
#include "pinfold/result.hpp"
#include "pinfold/spec.hpp"

namespace pinfold {

// Each limit goes where its controller is; one that is nowhere goes to cgroup v2, and is refused there.
struct DividedResources {
    Resources unified;
    Resources legacy;
};
DividedResources divide_resources(const Resources& resources, const CgroupHost& host);

// Zeros mean "not set". An error where numbers contradict each other, and for what only cgroup v2 has. Device rules are
// left to legacy_device_writes().
Result<std::vector<CgroupWrite>> legacy_writes(const Resources& resources);

// The write leaves a new group as the kernel made it.
bool is_legacy_default(const CgroupWrite& write);

// What a control file says where there is no limit: the highest number of whole pages, or -1.
bool is_legacy_unlimited(std::string_view text);

// The error names the limits whose controllers no hierarchy has.
Result<void> check_legacy_controllers(const std::vector<CgroupWrite>& writes, const StringMap& legacy);

// linux.resources.devices as writes to devices.allow and devices.deny, in this order. They mean what device_program()
// makes of the same rules; an error where cgroup v1, whose lists know no order, cannot say it.
Result<std::vector<CgroupWrite>> legacy_device_writes(std::span<const DeviceRule> rules);

}  // namespace pinfold
