// ResourceLimits: what a job may use, in the numbers that its owner has.
#pragma once

#include <cstdint>
#include <string_view>

#include "pinfold/result.hpp"

namespace pinfold {

struct ResourceLimits {
    double cpu_cores = 1.0;
    uint64_t memory_mb = 512;
    uint64_t disk_mb = 100;  // of all that it writes
    bool network_enabled = false;
    uint64_t max_processes = 50;  // threads count too
    double timeout_seconds = 60;
};

// From JSON with these very names; what is absent keeps its default. The error tells all that is wrong at once, also
// names that are no limit; `name` is the file's.
Result<ResourceLimits> parse_resource_limits(std::string_view json, std::string_view name);

// The same rules for numbers from elsewhere.
Result<void> check_resource_limits(const ResourceLimits& limits);

}  // namespace pinfold
