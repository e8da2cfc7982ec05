// What is told of a container that ran out of memory, as it started or later.
#include "process/memory_report.hpp"

#include <signal.h>

#include <algorithm>

#include "base/strings.hpp"

namespace pinfold {

namespace {

// The numbers told are multiples of this. A start takes a little more or less each time.
constexpr uint64_t kGrain = 16 << 10;
// execve and the first pages of a small program.
constexpr uint64_t kFirstSteps = 8 * kGrain;
constexpr uint64_t kPlenty = 256 << 20;

// Of cgroup v2 or v1.
bool is_memory_limit(const CgroupWrite& write) {
    return write.file == "memory.max" || write.file == "memory.limit_in_bytes";
}

// Whose words set the limit; an update's are not known.
std::string limit_property(const Plan& plan) {
    std::vector<CgroupWrite> writes = plan.cgroup.writes;
    writes.insert(writes.end(), plan.cgroup.v1_writes.begin(), plan.cgroup.v1_writes.end());
    const auto found = std::find_if(writes.rbegin(), writes.rend(), is_memory_limit);
    return found == writes.rend() ? "linux.resources.memory.limit" : found->property;
}

}  // namespace

Plan with_memory_limit(Plan plan, uint64_t limit) {
    plan.hooks = {};
    plan.net_devices.clear();
    plan.sandbox_init.reset();
    plan.process.terminal = false;
    for (std::vector<CgroupWrite>* writes : {&plan.cgroup.writes, &plan.cgroup.v1_writes}) {
        for (CgroupWrite& write : *writes) {
            if (is_memory_limit(write)) write.value = std::to_string(limit);
        }
    }
    return plan;
}

std::string describe_oom(const OomCount& oom, const Plan& plan, pid_t init, int exit_code) {
    std::string text = concat("container ", quoted(plan.id), ": out of memory: the kernel killed ", oom.kills,
                              oom.kills == 1 ? " process" : " processes");
    if (exit_code == 128 + SIGKILL) {
        text += concat(oom.kills == 1 ? ", the container's first" : ", with the container's first", " (",
                       quoted(plan.process.args[0]), ", pid ", init, ")");
    }
    if (!oom.at_limit) return text + "; it was a limit above the container's group, or the host's memory";
    const std::string property = oom.with_swap ? "linux.resources.memory.swap" : limit_property(plan);
    return text + concat("; ", property, ", ", oom.limit, " bytes, was reached");
}

Error memory_limit_too_low(const OomCount& oom, const Plan& plan, std::optional<uint64_t> enough) {
    const std::string property = limit_property(plan);
    const std::string text =
        concat("memory limit too low: the container cannot start with ", property, " at ", oom.limit, " bytes");
    if (!enough) return plain_error(text).with_hint(concat("raise ", property));
    return plain_error(concat(text, "; it takes ", *enough))
        .with_hint(concat("set ", property, " to ", *enough, " and what the program needs"));
}

std::optional<uint64_t> find_enough_memory(uint64_t too_low, const std::function<bool(uint64_t limit)>& suffices) {
    uint64_t low = too_low / kGrain * kGrain;
    uint64_t high = std::max(low, kGrain);
    do {
        high *= 2;
        if (high > kPlenty) return std::nullopt;
    } while (!suffices(high));
    while (high - low > kGrain) {
        const uint64_t middle = low + (high - low) / kGrain / 2 * kGrain;
        (suffices(middle) ? high : low) = middle;
    }
    return high + kFirstSteps;
}

}  // namespace pinfold
