// How the payload is scheduled.
#include "kernel/scheduling.hpp"

#include <sys/personality.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <climits>

namespace pinfold {

namespace {

struct SchedAttr {
    uint32_t size;
    uint32_t policy;
    uint64_t flags;
    int32_t nice;
    uint32_t priority;
    uint64_t runtime;
    uint64_t deadline;
    uint64_t period;
};

constexpr int kIoprioWhoProcess = 1;
constexpr int kIoprioClassShift = 13;

}  // namespace

Result<void> apply_scheduler(const SchedulerRequest& request) {
    SchedAttr attributes{sizeof(SchedAttr), request.policy,  request.flags,    request.nice,
                         request.priority,  request.runtime, request.deadline, request.period};
    if (::syscall(SYS_sched_setattr, 0, &attributes, 0) != 0) return errno_error("sched_setattr");
    return {};
}

Result<void> apply_io_priority(const IoPriorityRequest& request) {
    const int value = request.io_class << kIoprioClassShift | request.priority;
    if (::syscall(SYS_ioprio_set, kIoprioWhoProcess, 0, value) != 0) return errno_error("ioprio_set");
    return {};
}

Result<void> apply_cpu_affinity(const BitMask& cpus) {
    if (::syscall(SYS_sched_setaffinity, 0, cpus.size() * sizeof(unsigned long), cpus.data()) == 0) return {};
    Error error = errno_error("sched_setaffinity");
    if (error.code == EINVAL) error.hint = "name at least one CPU that is online and in the container's cpuset";
    return error;
}

Result<void> apply_memory_policy(const MemoryPolicyRequest& request) {
    const unsigned long bits = request.nodes.size() * sizeof(unsigned long) * CHAR_BIT;
    // The kernel reads one bit less than it is told.
    const unsigned long length = bits == 0 ? 0 : bits + 1;
    if (::syscall(SYS_set_mempolicy, request.mode, bits == 0 ? nullptr : request.nodes.data(), length) != 0) {
        return errno_error("set_mempolicy");
    }
    return {};
}

Result<void> apply_personality(unsigned long persona) {
    if (::personality(persona) < 0) return errno_error("personality");
    return {};
}

}  // namespace pinfold
