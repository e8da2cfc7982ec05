// What a group has used so far, in the words of `runc events`.
#pragma once

#include <string>

#include "cgroup/v1.hpp"

namespace pinfold {

// The object that callers know as "data": cpu, memory, pids, blkio, hugetlb, with the kernel's pressure figures where
// it keeps some. What has no controller here is zero or empty. Controllers that are in cgroup v1 are asked there.
std::string stats_to_json(int group, const V1GroupFds& v1 = {});

}  // namespace pinfold
