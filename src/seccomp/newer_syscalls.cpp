// Why ENOSYS: a C library tries a new system call (clone3, faccessat2, ...) and falls back to the old one when it
// hears ENOSYS. EPERM, the usual answer of an allow list, it takes for a final refusal, and programs break whenever
// the C library in the image is newer than the profile. An author who lists what is allowed cannot have judged calls
// that did not exist yet. Numbers are given out in rising order, so what lies above the highest number that the
// profile names is taken for newer than the profile. ENOSYS denies as surely as EPERM does.
#include "seccomp/newer_syscalls.hpp"

#include <linux/seccomp.h>
#include <seccomp.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>

namespace pinfold {

namespace {

// An x32 call carries the audit architecture of x86_64, and this bit in its number.
constexpr uint32_t kX32Bit = 0x40000000;

// A profile with another default (ENOSYS itself, kill, trap, ...) says what it wants for unknown calls.
bool answers_eperm(const Seccomp& profile) {
    return profile.default_action == "SCMP_ACT_ERRNO" && profile.default_errno_ret.value_or(EPERM) == EPERM;
}

// Negative where nothing is named that this architecture has: libseccomp numbers other architectures' calls below zero.
int highest_named(const Seccomp& profile) {
    int highest = -1;
    for (const SyscallRule& rule : profile.syscalls) {
        for (const std::string& name : rule.names) {
            highest = std::max(highest, seccomp_syscall_resolve_name(name.c_str()));
        }
    }
    return highest;
}

}  // namespace

std::vector<sock_filter> newer_syscalls_prelude(const Seccomp& profile) {
    if (!answers_eperm(profile)) return {};
    const int highest = highest_named(profile);
    if (highest < 0) return {};
    // The common case first: two instructions for a call that the profile may know. Jump targets past the end are the
    // profile's own program. Numbers of other architectures mean other calls: only the native one is judged here.
    return {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, uint32_t(highest), 0, 4),
        BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, kX32Bit, 3, 0),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, arch)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, seccomp_arch_native(), 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
    };
}

}  // namespace pinfold
