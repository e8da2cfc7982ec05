// Resource limits of the payload.
#pragma once

#include <sys/resource.h>
#include <sys/types.h>

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "pinfold/result.hpp"

namespace pinfold {

struct ResourceLimit {
    int resource = 0;  // RLIMIT_*
    std::string name;  // "RLIMIT_NOFILE"
    rlimit limit{};
};

std::optional<int> rlimit_number(std::string_view name);

// What it is called in /proc/PID/limits.
std::string_view rlimit_title(int number);

// Parent side: lifts the hard limits that a child in a user namespace could not lift itself.
void raise_hard_limits(pid_t pid, std::span<const ResourceLimit> limits);

// Child side, late: a low RLIMIT_NOFILE must not break the set-up itself. A hard limit that cannot be raised is
// set as high as it goes, with a warning.
Result<void> apply_rlimits(std::span<const ResourceLimit> limits);

}  // namespace pinfold
