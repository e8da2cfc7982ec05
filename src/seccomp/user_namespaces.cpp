// The filter is asked, not the profile: it is what the kernel will go by.
#include "seccomp/user_namespaces.hpp"

#include <sched.h>
#include <seccomp.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>

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

bool is_denial(uint32_t action) {
    return action == SECCOMP_RET_ERRNO || action == SECCOMP_RET_TRAP || action == SECCOMP_RET_KILL_THREAD ||
           action == SECCOMP_RET_KILL_PROCESS;
}

// With these flags, whatever else is asked for with them.
bool denies_everywhere(std::span<const sock_filter> program, const char* name, uint64_t flags) {
    return !std::empty(kTables) && std::ranges::all_of(kTables, [&](const CallTable& table) {
        PartlyKnownCall calls;
        calls.call.nr = ::seccomp_syscall_resolve_name_arch(table.numbers, name);
        calls.call.arch = table.arch;
        calls.call.args[0] = flags;
        calls.known.nr = ~0;
        calls.known.arch = ~0U;
        calls.known.args[0] = flags;
        return always_answers(program, calls, is_denial);
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
    return denies_everywhere(program, "unshare", CLONE_NEWUSER) && denies_everywhere(program, "clone", CLONE_NEWUSER) &&
           denies_clone3(program);
}

bool denies_clone3(std::span<const sock_filter> program) { return denies_everywhere(program, "clone3", 0); }

}  // namespace pinfold
