// What the kernel has counted of a group that ran out of memory.
#pragma once

#include <cstdint>
#include <string_view>

#include "cgroup/place.hpp"

namespace pinfold {

struct OomCount {
    uint64_t kills = 0;     // processes of the group that were killed
    bool at_limit = false;  // it was the group's own limit, not one above it nor the host's memory
    uint64_t limit = 0;     // in bytes; 0: none
};

// Zeros where the group has no memory controller. By place: in cgroup v1, if the container has a group there.
OomCount count_oom(int group);
OomCount count_oom(const CgroupPlace& place);

// Of the line "key N" in a file such as memory.events; 0 where there is none.
uint64_t event_count(std::string_view events, std::string_view key);

}  // namespace pinfold
