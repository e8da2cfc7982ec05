// What a container's groups in cgroup v1 have used, each as a part of what stats.hpp tells.
#pragma once

#include <string>

#include "cgroup/legacy_groups.hpp"

namespace pinfold {

std::string legacy_cpu(const LegacyGroups& groups);
std::string legacy_memory(const LegacyGroups& groups);
std::string legacy_block_io(const LegacyGroups& groups);
std::string legacy_huge_pages(const LegacyGroups& groups);

}  // namespace pinfold
