// The freezer of cgroup v1: what freeze.hpp promises, for hosts without v2.
#pragma once

#include <chrono>

#include "cgroup/place.hpp"
#include "pinfold/result.hpp"

namespace pinfold {

bool is_legacy_frozen(const CgroupPlace& place);
Result<void> freeze_legacy_group(const CgroupPlace& place, std::chrono::milliseconds patience);
Result<void> thaw_legacy_group(const CgroupPlace& place, std::chrono::milliseconds patience);

// The group and all below it, as far as possible.
void thaw_legacy_tree(const CgroupPlace& place);

}  // namespace pinfold
