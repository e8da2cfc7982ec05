// Why the program is changed and not the profile: which of two overlapping rules wins depends on their actions, so that
// rules of another action could make another program. Here the program that reports is the program that denies,
// instruction by instruction.
#include "seccomp/reporting.hpp"

#include <seccomp.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <memory>

#include "seccomp/bpf_eval.hpp"

namespace pinfold {

namespace {

// Among the flags, so that it is part of the cache's key. No config can hold it: validation knows the kernel's flags.
constexpr const char* kReportFlag = "PINFOLD_REPORT_DENIALS";

constexpr uint32_t action_of(uint32_t verdict) { return verdict & SECCOMP_RET_ACTION_FULL; }
constexpr int errno_of(uint32_t verdict) { return static_cast<int>(verdict & SECCOMP_RET_DATA); }

bool denies(const sock_filter& step) {
    return step.code == (BPF_RET | BPF_K) && action_of(step.k) == SECCOMP_RET_ERRNO && errno_of(step.k) != ENOSYS;
}

struct Free {
    void operator()(char* text) const { std::free(text); }
};

}  // namespace

Seccomp with_reporting(Seccomp profile) {
    if (!is_reporting(profile)) profile.flags.emplace_back(kReportFlag);
    return profile;
}

SeccompFilter with_reporting(SeccompFilter filter) {
    for (sock_filter& step : filter.program) {
        if (denies(step)) step.k = SECCOMP_RET_USER_NOTIF;
    }
    filter.flags = with_listener(filter.flags);
    return filter;
}

bool is_reporting(const Seccomp& profile) {
    return std::ranges::find(profile.flags, kReportFlag) != profile.flags.end();
}

Seccomp without_reporting(Seccomp profile) {
    std::erase(profile.flags, kReportFlag);
    return profile;
}

int denial_errno(std::span<const sock_filter> program, const seccomp_data& call) {
    const uint32_t verdict = evaluate(program, call);
    return action_of(verdict) == SECCOMP_RET_ERRNO ? errno_of(verdict) : EPERM;
}

std::string syscall_name(uint32_t arch, int number) {
    const std::unique_ptr<char, Free> name(seccomp_syscall_resolve_num_arch(arch, number));
    return name ? name.get() : std::to_string(number);
}

}  // namespace pinfold
