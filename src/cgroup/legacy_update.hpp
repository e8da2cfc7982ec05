// Changing the limits of groups in cgroup v1 that are in use: one half of update.hpp's promise.
#pragma once

#include <vector>

#include "cgroup/legacy_groups.hpp"
#include "cgroup/undo.hpp"
#include "pinfold/result.hpp"
#include "pinfold/spec.hpp"

namespace pinfold {

// What was written.
Result<std::vector<CgroupWrite>> update_legacy_limits(const CgroupPlace& place, const LegacyGroups& groups,
                                                      Resources resources, Undo& undo);

// Whoever is in the groups stands still meanwhile: between two writes, devices are denied that are allowed before and
// after.
Result<void> update_legacy_devices(const CgroupPlace& place, const LegacyGroups& groups,
                                   const std::vector<DeviceRule>& rules);

}  // namespace pinfold
