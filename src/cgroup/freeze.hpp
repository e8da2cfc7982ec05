// Stopping all that runs in a group at once, and letting it go on: by the freezer of cgroup v2, which needs no
// controller, or by that of v1 where there is no v2.
#pragma once

#include <chrono>

#include "cgroup/place.hpp"
#include "pinfold/result.hpp"

namespace pinfold {

// How long a process may take to reach a point where it can stop.
inline constexpr std::chrono::milliseconds kFreezePatience{10'000};

// The group itself was told to freeze, which is what thaw_group() can take back; a frozen group above it does not
// count. False also where there is no such group.
bool is_frozen(const CgroupPlace& place);

// Returns when everything in the group and below it has stopped. What does not stop in time is let go again.
Result<void> freeze_group(const CgroupPlace& place, std::chrono::milliseconds patience = kFreezePatience);

// Returns when the group runs again.
Result<void> thaw_group(const CgroupPlace& place, std::chrono::milliseconds patience = kFreezePatience);

// What cgroup v1 has frozen, in the group or below it, dies of SIGKILL only once it is thawed: this lets it. What
// cgroup v2 has frozen dies anyway.
void let_die(const CgroupPlace& place);

}  // namespace pinfold
