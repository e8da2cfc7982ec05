// How cgroup v1 tells that a group has run out of memory. The group must have the memory controller.
#pragma once

#include "cgroup/oom.hpp"
#include "cgroup/place.hpp"
#include "pinfold/result.hpp"
#include "pinfold/unique_fd.hpp"

namespace pinfold {

struct LegacyOom {
    UniqueFd control;  // memory.oom_control, which counts the kills
    UniqueFd signal;   // readable when the kernel is about to kill, and when the group is removed
};
Result<LegacyOom> watch_legacy_oom(const CgroupPlace& place);

// What it has counted so far.
OomCount count_legacy_oom(const CgroupPlace& place);

}  // namespace pinfold
