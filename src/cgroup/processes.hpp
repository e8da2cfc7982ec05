// Who is in a group.
#pragma once

#include <sys/types.h>

#include <vector>

#include "cgroup/place.hpp"
#include "pinfold/result.hpp"

namespace pinfold {

// Every process in the group and in the groups below it, by pid in ascending order, as this PID namespace numbers them:
// those that it does not see are left out. A group that is absent holds nobody.
Result<std::vector<pid_t>> group_processes(const CgroupPlace& place);

}  // namespace pinfold
