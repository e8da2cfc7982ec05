// What is told of a container that ran out of memory, as it started or later.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "cgroup/control_files.hpp"
#include "pinfold/result.hpp"
#include "plan/plan.hpp"

namespace pinfold {

// The plan for a trial with another limit: without hooks, devices, a sandbox init or a terminal.
Plan with_memory_limit(Plan plan, uint64_t limit);

// Of a container that has ended and had something killed, with what is known of its first process.
std::string describe_oom(const OomCount& oom, const Plan& plan, pid_t init, int exit_code);

// For a container that could not be started; `enough` is the limit that would do, if that is known.
Error memory_limit_too_low(const OomCount& oom, const Plan& plan, std::optional<uint64_t> enough);

// The smallest limit above one that is too low, by trying; rounded up, with what a small program takes to begin.
// Nothing where even a lot is not enough.
std::optional<uint64_t> find_enough_memory(uint64_t too_low, const std::function<bool(uint64_t limit)>& suffices);

}  // namespace pinfold
