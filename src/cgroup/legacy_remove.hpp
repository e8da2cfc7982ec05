// The end of a container's groups in cgroup v1.
#pragma once

#include "cgroup/place.hpp"
#include "pinfold/result.hpp"

namespace pinfold {

// Kills what runs in the groups and in those that the payload has made below them, and removes all of them. Groups that
// are absent are removed.
Result<void> remove_legacy_groups(const CgroupPlace& place);

// The same where it is not known whether the groups became the container's: what holds processes or further groups is
// left alone, and is the error. Waits a little for a process that is about to end.
Result<void> remove_empty_legacy_groups(const CgroupPlace& place);

}  // namespace pinfold
