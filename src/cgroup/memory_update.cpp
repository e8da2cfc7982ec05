// New memory limits, seen together with those that a group has.
#include "cgroup/memory_update.hpp"

#include "base/strings.hpp"

namespace pinfold {

namespace {

// The kernel would kill processes until the rest fits.
Result<void> check_usage(const MemoryNow& now, const MemoryLimits& memory) {
    if (!memory.check_before_update.value_or(false)) return {};
    const auto refuse = [](std::string_view name, int64_t limit, int64_t usage) {
        return plain_error(concat("linux.resources.memory.", name, ": ", limit, " is less than the ", usage,
                                  " in use, and linux.resources.memory.checkBeforeUpdate is true"));
    };
    const int64_t limit = memory.limit.value_or(0);
    const int64_t swap = memory.swap.value_or(0);
    if (limit > 0 && limit < now.used) return refuse("limit", limit, now.used);
    if (swap > 0 && swap < now.used_with_swap) return refuse("swap", swap, now.used_with_swap);
    return {};
}

Result<void> complete_swap(const MemoryNow& now, MemoryLimits& memory) {
    const int64_t limit = memory.limit.value_or(0);
    if (limit == 0 || memory.swap.value_or(0) != 0) return {};
    if (limit < 0) memory.swap = kUnlimited;
    if (limit < 0 || now.limit_with_swap == kUnlimited) return {};
    if (limit > now.limit_with_swap) {
        return plain_error(concat("linux.resources.memory.limit: ", limit, " is more than the ", now.limit_with_swap,
                                  " that memory and swap together may have"))
            .with_hint("change linux.resources.memory.swap (--memory-swap) at the same time");
    }
    memory.swap = now.limit_with_swap;
    return {};
}

}  // namespace

Result<void> complete_memory(const MemoryNow& now, MemoryLimits& memory) {
    const bool swap_alone = memory.limit.value_or(0) == 0 && memory.swap.value_or(0) > 0;
    if (swap_alone && now.limit != kUnlimited) memory.limit = now.limit;
    TRY(complete_swap(now, memory));
    return check_usage(now, memory);
}

}  // namespace pinfold
