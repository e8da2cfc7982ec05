// The filter is asked, not the profile: which of several rules wins is libseccomp's to say.
#include "seccomp/user_namespaces.hpp"

#include <sched.h>
#include <seccomp.h>
#include <signal.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <vector>

#include "seccomp/bpf_eval.hpp"

namespace pinfold {

namespace {

// Where the numbers of calls come from, and what the kernel says of a caller that uses them.
struct CallTable {
    uint32_t numbers;
    uint32_t arch;
};

#if defined(__x86_64__)
constexpr CallTable kTables[] = {
    {SCMP_ARCH_X86_64, SCMP_ARCH_X86_64}, {SCMP_ARCH_X86, SCMP_ARCH_X86}, {SCMP_ARCH_X32, SCMP_ARCH_X86_64}};
constexpr const char* kOtherArchitectures[] = {"SCMP_ARCH_X86", "SCMP_ARCH_X32"};
#elif defined(__aarch64__)
constexpr CallTable kTables[] = {{SCMP_ARCH_AARCH64, SCMP_ARCH_AARCH64}, {SCMP_ARCH_ARM, SCMP_ARCH_ARM}};
constexpr const char* kOtherArchitectures[] = {"SCMP_ARCH_ARM"};
#else
constexpr std::span<const CallTable> kTables;
constexpr std::span<const char* const> kOtherArchitectures;
#endif

bool denies(std::span<const sock_filter> program, const CallTable& table, const char* name, uint64_t flags) {
    seccomp_data call{};
    call.nr = ::seccomp_syscall_resolve_name_arch(table.numbers, name);
    call.arch = table.arch;
    call.args[0] = flags;
    const auto action = evaluate(program, call) & SECCOMP_RET_ACTION_FULL;
    return action == SECCOMP_RET_ERRNO || action == SECCOMP_RET_TRAP || action == SECCOMP_RET_KILL_THREAD ||
           action == SECCOMP_RET_KILL_PROCESS;
}

// A profile may forbid the flag alone and overlook it among others, or above the 32 bits that clone(2) looks at.
std::vector<uint64_t> ways_to_ask() {
    constexpr uint64_t kOthers[] = {CLONE_NEWNS,  CLONE_NEWCGROUP, CLONE_NEWUTS,           CLONE_NEWIPC, CLONE_NEWPID,
                                    CLONE_NEWNET, SIGCHLD,         CLONE_VM | CLONE_VFORK, CLONE_FS,     1ULL << 32};
    std::vector<uint64_t> ways = {CLONE_NEWUSER};
    for (const uint64_t other : kOthers) {
        const size_t before = ways.size();
        for (size_t i = 0; i < before; ++i) ways.push_back(ways[i] | other);
    }
    return ways;
}

bool denies_everywhere(std::span<const sock_filter> program, const char* name, const std::vector<uint64_t>& ways) {
    return !std::empty(kTables) && std::ranges::all_of(kTables, [&](const CallTable& table) {
        return std::ranges::all_of(ways, [&](uint64_t flags) { return denies(program, table, name, flags); });
    });
}

}  // namespace

Seccomp profile_without_user_namespaces() {
    constexpr const char* kDeny = "SCMP_ACT_ERRNO";
    Seccomp profile;
    profile.default_action = "SCMP_ACT_ALLOW";
    profile.architectures.assign(std::begin(kOtherArchitectures), std::end(kOtherArchitectures));
    profile.syscalls = {{{"unshare", "clone"}, kDeny, EPERM, {{0, CLONE_NEWUSER, CLONE_NEWUSER, "SCMP_CMP_MASKED_EQ"}}},
                        {{"clone3"}, kDeny, ENOSYS, {}},  // its flags lie in memory; C libraries then use clone
                        {{"setns"}, kDeny, EPERM, {}}};   // what others in the container have made
    return profile;
}

bool denies_user_namespaces(std::span<const sock_filter> program) {
    const std::vector<uint64_t> ways = ways_to_ask();
    return denies_everywhere(program, "unshare", ways) && denies_everywhere(program, "clone", ways) &&
           denies_clone3(program);
}

bool denies_clone3(std::span<const sock_filter> program) { return denies_everywhere(program, "clone3", {0}); }

}  // namespace pinfold
