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
} kRlimits[] = {
    {"RLIMIT_AS", RLIMIT_AS},           {"RLIMIT_CORE", RLIMIT_CORE},         {"RLIMIT_CPU", RLIMIT_CPU},
    {"RLIMIT_DATA", RLIMIT_DATA},       {"RLIMIT_FSIZE", RLIMIT_FSIZE},       {"RLIMIT_LOCKS", RLIMIT_LOCKS},
    {"RLIMIT_MEMLOCK", RLIMIT_MEMLOCK}, {"RLIMIT_MSGQUEUE", RLIMIT_MSGQUEUE}, {"RLIMIT_NICE", RLIMIT_NICE},
    {"RLIMIT_NOFILE", RLIMIT_NOFILE},   {"RLIMIT_NPROC", RLIMIT_NPROC},       {"RLIMIT_RSS", RLIMIT_RSS},
    {"RLIMIT_RTPRIO", RLIMIT_RTPRIO},   {"RLIMIT_RTTIME", RLIMIT_RTTIME},     {"RLIMIT_SIGPENDING", RLIMIT_SIGPENDING},
    {"RLIMIT_STACK", RLIMIT_STACK},
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
