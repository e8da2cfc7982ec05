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

#include "seccomp/as_written.hpp"

namespace pinfold {

namespace {

// What libseccomp does not know. Such numbers mean the same on all architectures.
struct NewCall {
    std::string_view name;
    uint32_t number;
};
constexpr NewCall kNewCalls[] = {
    {"setxattrat", 463},     {"getxattrat", 464},   {"listxattrat", 465},  {"removexattrat", 466},
    {"open_tree_attr", 467}, {"file_getattr", 468}, {"file_setattr", 469},
};

// A rule that denies such calls by name would be left out, and so would they be allowed.
void deny_by_number(const SyscallRule& rule, std::vector<sock_filter>& program) {
    if (rule.action != "SCMP_ACT_ERRNO" || !rule.args.empty()) return;
    for (const NewCall& call : kNewCalls) {
        if (std::ranges::find(rule.names, call.name) == rule.names.end()) continue;
        program.insert(program.end(),
                       {BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call.number, 1, 0),
                        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call.number | kX32Bit, 0, 1),
                        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (rule.errno_ret.value_or(EPERM) & 0xffff))});
    }
}

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

static bool denies(std::string_view action) {
    return action == "SCMP_ACT_ERRNO" || action == "SCMP_ACT_TRAP" || action.starts_with("SCMP_ACT_KILL");
}

bool is_denied_by_number(std::string_view name) {
    return std::ranges::find(kNewCalls, name, &NewCall::name) != std::end(kNewCalls);
}

std::vector<sock_filter> newer_syscalls_prelude(const Seccomp& profile) {
    if (!denies(profile.default_action)) {
        std::vector<sock_filter> program = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr))};
        for (const SyscallRule& rule : profile.syscalls) deny_by_number(rule, program);
        return program.size() > 1 ? program : std::vector<sock_filter>();
    }
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
