// How the payload is scheduled: CPU policy, I/O priority, memory policy, execution domain.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "pinfold/result.hpp"

namespace pinfold {

// struct sched_attr of sched_setattr(2); glibc 2.36 does not have it.
struct SchedulerRequest {
    uint32_t policy = 0;
    uint64_t flags = 0;
    int32_t nice = 0;
    uint32_t priority = 0;
    uint64_t runtime = 0;
    uint64_t deadline = 0;
    uint64_t period = 0;
};
Result<void> apply_scheduler(const SchedulerRequest& request);

struct IoPriorityRequest {
    int io_class = 0;
    int priority = 0;
};
Result<void> apply_io_priority(const IoPriorityRequest& request);

using BitMask = std::vector<unsigned long>;

// The CPUs of this process and of those that it starts.
Result<void> apply_cpu_affinity(const BitMask& cpus);

struct MemoryPolicyRequest {
    int mode = 0;  // MPOL_* with MPOL_F_* flags
    BitMask nodes;
};
Result<void> apply_memory_policy(const MemoryPolicyRequest& request);

Result<void> apply_personality(unsigned long persona);

}  // namespace pinfold
