// New memory limits, seen together with those that a group has.
#pragma once

#include <cstdint>

#include "pinfold/result.hpp"
#include "pinfold/spec.hpp"

namespace pinfold {

inline constexpr int64_t kUnlimited = -1;

// What a group has, in bytes. The specification counts swap together with memory.
struct MemoryNow {
    int64_t limit = kUnlimited;
    int64_t limit_with_swap = kUnlimited;
    int64_t used = 0;
    int64_t used_with_swap = 0;
};

// Where only one of memory and swap changes, the sum stays. Limits that contradict what is there are refused, and with
// memory.checkBeforeUpdate also those for which the kernel would kill.
Result<void> complete_memory(const MemoryNow& now, MemoryLimits& memory);

}  // namespace pinfold
