// Who is in a group.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "cgroup/place.hpp"
#include "pinfold/result.hpp"

namespace pinfold {

// Every process in the group and in the groups below it, by pid in ascending order, as this PID namespace numbers them:
// those that it does not see are left out. A group that is absent holds nobody.
Result<std::vector<pid_t>> group_processes(const CgroupPlace& place);

// The group that a process is in, as cgroup v2 has it.
Result<std::string> group_of(pid_t pid);

}  // namespace pinfold
