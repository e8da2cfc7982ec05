// What a container has used, in few numbers, and what it may use, whichever version of cgroups has the controller.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "cgroup/path.hpp"

namespace pinfold {

// Empty where no controller counts it.
struct GroupUsage {
    std::optional<uint64_t> cpu_usec;
    std::optional<uint64_t> peak_memory;     // bytes
    std::optional<uint64_t> peak_processes;  // threads count too
    std::optional<uint64_t> read_bytes;
    std::optional<uint64_t> written_bytes;
};
GroupUsage measure_usage(const CgroupPath& place);
std::optional<uint64_t> measure_cpu(const CgroupPath& place);

// A limit as the kernel has it now: memory, pids, or cpu ("max" where there is none).
struct GroupLimit {
    std::string value;
    bool v1 = false;  // of cgroup v1
};
std::optional<GroupLimit> read_limit(const CgroupPath& place, const std::string& v2_file, const std::string& v1_file);

// What the kernel has counted of a group that ran out of memory.
struct OomCount {
    uint64_t kills = 0;     // processes of the group that were killed
    bool at_limit = false;  // it was the group's own limit, not one above it nor the host's memory
    uint64_t limit = 0;     // in bytes; 0: none
};

// Zeros where the container has no group, or that no memory controller.
OomCount count_oom(const CgroupPath& place);

}  // namespace pinfold
