// linux.resources as writes to the control files of cgroup v1, for limits whose controllers are there. Pure.
#pragma once

#include <vector>

#include "cgroup/layout.hpp"
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

// Zeros mean "not set". Errors are of numbers that contradict each other and of what only cgroup v2 has. Device rules
// are not among them: see legacy_devices.hpp.
Result<std::vector<CgroupWrite>> legacy_writes(const Resources& resources);

// The write leaves a new group as the kernel made it.
bool is_legacy_default(const CgroupWrite& write);

// What a control file says where there is no limit: the highest number of whole pages, or -1.
bool is_legacy_unlimited(std::string_view text);

// A limit whose controller no hierarchy has is named.
Result<void> check_legacy_controllers(const std::vector<CgroupWrite>& writes, const StringMap& legacy);

}  // namespace pinfold
