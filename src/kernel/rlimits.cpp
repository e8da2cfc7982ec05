// Resource limits of the payload.
#include "kernel/rlimits.hpp"

#include <algorithm>
#include <cerrno>

#include "base/log.hpp"
#include "base/strings.hpp"

namespace pinfold {

namespace {

constexpr struct {
    std::string_view name;
    int number;
    std::string_view title;
} kRlimits[] = {
    {"RLIMIT_AS", RLIMIT_AS, "Max address space"},
    {"RLIMIT_CORE", RLIMIT_CORE, "Max core file size"},
    {"RLIMIT_CPU", RLIMIT_CPU, "Max cpu time"},
    {"RLIMIT_DATA", RLIMIT_DATA, "Max data size"},
    {"RLIMIT_FSIZE", RLIMIT_FSIZE, "Max file size"},
    {"RLIMIT_LOCKS", RLIMIT_LOCKS, "Max file locks"},
    {"RLIMIT_MEMLOCK", RLIMIT_MEMLOCK, "Max locked memory"},
    {"RLIMIT_MSGQUEUE", RLIMIT_MSGQUEUE, "Max msgqueue size"},
    {"RLIMIT_NICE", RLIMIT_NICE, "Max nice priority"},
    {"RLIMIT_NOFILE", RLIMIT_NOFILE, "Max open files"},
    {"RLIMIT_NPROC", RLIMIT_NPROC, "Max processes"},
    {"RLIMIT_RSS", RLIMIT_RSS, "Max resident set"},
    {"RLIMIT_RTPRIO", RLIMIT_RTPRIO, "Max realtime priority"},
    {"RLIMIT_RTTIME", RLIMIT_RTTIME, "Max realtime timeout"},
    {"RLIMIT_SIGPENDING", RLIMIT_SIGPENDING, "Max pending signals"},
    {"RLIMIT_STACK", RLIMIT_STACK, "Max stack size"},
};

Result<void> apply(const ResourceLimit& wanted) {
    if (::prlimit(0, __rlimit_resource(wanted.resource), &wanted.limit, nullptr) == 0) return {};
    if (errno != EPERM) return errno_error(wanted.name);
    rlimit current{};
    ::getrlimit(__rlimit_resource(wanted.resource), &current);
    const rlimit possible{std::min(wanted.limit.rlim_cur, current.rlim_max),
                          std::min(wanted.limit.rlim_max, current.rlim_max)};
    if (::prlimit(0, __rlimit_resource(wanted.resource), &possible, nullptr) != 0 && errno != EPERM)
        return errno_error(wanted.name);
    log_warning(concat(wanted.name, ": raising the hard limit from ", current.rlim_max, " to ", wanted.limit.rlim_max,
                       " needs CAP_SYS_RESOURCE on the host; it stays at ", current.rlim_max));
    return {};
}

}  // namespace

std::optional<int> rlimit_number(std::string_view name) {
    for (const auto& entry : kRlimits) {
        if (entry.name == name) return entry.number;
    }
    return std::nullopt;
}

std::string_view rlimit_title(int number) {
    for (const auto& entry : kRlimits) {
        if (entry.number == number) return entry.title;
    }
    return {};
}

void raise_hard_limits(pid_t pid, std::span<const ResourceLimit> limits) {
    for (const ResourceLimit& wanted : limits) {
        rlimit current{};
        if (::prlimit(pid, __rlimit_resource(wanted.resource), nullptr, &current) != 0) continue;
        if (wanted.limit.rlim_max <= current.rlim_max) continue;
        current.rlim_max = wanted.limit.rlim_max;
        // Where even the parent may not, the child warns.
        ::prlimit(pid, __rlimit_resource(wanted.resource), &current, nullptr);
    }
}

Result<void> apply_rlimits(std::span<const ResourceLimit> limits) {
    for (const ResourceLimit& wanted : limits) TRY(apply(wanted));
    return {};
}

}  // namespace pinfold
