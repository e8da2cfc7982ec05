// Reading back one limit of a group: whether the kernel has taken what was written.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cgroup/limits.hpp"

namespace pinfold {

struct LimitFound {
    std::string file;
    std::string planned;
    std::string found;
    bool holds;
};

// Of a group, named by its directory. Nothing for files that can only be written to, and for limits that are met
// without their file.
std::optional<LimitFound> read_limit(const std::string& directory, const CgroupWrite& write);

// Without those whose effect a later one replaces.
std::vector<CgroupWrite> lasting_writes(const std::vector<CgroupWrite>& writes);

// Whether a control file that was written `planned` to and says `found` now has taken it. The kernel rounds numbers,
// and adds lines of its own.
bool has_taken(std::string_view file, std::string_view planned, std::string_view found);

}  // namespace pinfold
