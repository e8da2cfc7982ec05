// linux.resources as writes to the control files of cgroup v1, for limits whose controllers are there. Pure.
#pragma once

#include <span>
#include <vector>

#include "cgroup/control_files.hpp"
#include "cgroup/plan.hpp"
#include "pinfold/result.hpp"
#include "pinfold/spec.hpp"

namespace pinfold {

// Each limit goes where its controller is; one that is nowhere goes to cgroup v2, and is refused there.
struct DividedResources {
    Resources v2;
    Resources v1;
};
DividedResources divide_resources(const Resources& resources, const CgroupHost& host);

// Zeros mean "not set". An error where numbers contradict each other, and for what only cgroup v2 has. Device rules are
// left to v1_device_writes().
Result<std::vector<CgroupWrite>> v1_writes(const Resources& resources);

// The write leaves a new group as the kernel made it.
bool is_v1_default(const CgroupWrite& write);

// What a control file says where there is no limit: the highest number of whole pages, or -1.
bool is_v1_unlimited(std::string_view text);

// The error names the limits whose controllers no hierarchy has.
Result<void> check_v1_controllers(const std::vector<CgroupWrite>& writes, const StringMap& mounts);

// linux.resources.devices as writes to devices.allow and devices.deny, in this order. They mean what device_program()
// makes of the same rules; an error where cgroup v1, whose lists know no order, cannot say it.
Result<std::vector<CgroupWrite>> v1_device_writes(std::span<const DeviceRule> rules);

}  // namespace pinfold
