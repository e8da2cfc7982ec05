// What a container has used, in few numbers; and the end of all that runs in it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "cgroup/place.hpp"

namespace pinfold {

// Empty where no controller counts it.
struct GroupUsage {
    std::optional<uint64_t> cpu_usec;
    std::optional<uint64_t> peak_memory;     // bytes
    std::optional<uint64_t> peak_processes;  // threads count too
    std::optional<uint64_t> read_bytes;
    std::optional<uint64_t> written_bytes;
};
GroupUsage measure_usage(const CgroupPlace& place);
std::optional<uint64_t> measure_cpu(const CgroupPlace& place);

// A limit as the kernel has it now: memory, pids, or cpu ("max" where there is none).
struct GroupLimit {
    std::string value;
    bool legacy = false;  // of cgroup v1
};
std::optional<GroupLimit> read_limit(const CgroupPlace& place, const std::string& unified_file,
                                     const std::string& legacy_file);

// SIGKILL to all of it at once. False where that takes a newer kernel, or there is no group.
bool kill_group(const CgroupPlace& place);

}  // namespace pinfold
