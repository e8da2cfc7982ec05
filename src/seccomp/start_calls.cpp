// Whether a filter can be loaded before the last steps of a start.
#include "seccomp/start_calls.hpp"

#include <linux/seccomp.h>
#include <sched.h>
#include <seccomp.h>

#include <algorithm>

#include "seccomp/bpf_eval.hpp"

namespace pinfold {

namespace {

struct Call {
    const char* name;
    uint64_t first = 0;  // argument
};

// Of the C library's functions the calls that it makes for them on one architecture or another.
constexpr Call kCalls[] = {
    {"clone", CLONE_PARENT | CLONE_PIDFD},
    {"close"},
    {"close_range"},
    {"sendmsg"},
    {"recvmsg"},
    {"write"},
    {"poll"},
    {"ppoll"},
    {"prctl"},
    {"setsid"},
    {"ioctl"},
    {"getrlimit"},
    {"setrlimit"},
    {"prlimit64"},
    {"sched_setattr"},
    {"rt_sigaction"},
    {"rt_sigprocmask"},
    {"capget"},
    {"capset"},
    {"stat"},
    {"newfstatat"},
    {"faccessat"},
    {"faccessat2"},
    {"brk"},
    {"mmap"},
    {"munmap"},
    {"futex"},
    {"execve"},
    {"exit"},
    {"exit_group"},
};

}  // namespace

bool allows_end_of_start(std::span<const sock_filter> program) {
    return std::ranges::all_of(kCalls, [&](const Call& one) {
        seccomp_data call{};
        call.arch = ::seccomp_arch_native();
        call.nr = ::seccomp_syscall_resolve_name_arch(call.arch, one.name);
        call.args[0] = one.first;
        if (call.nr < 0) return true;  // there is no such call here
        const auto action = evaluate(program, call) & SECCOMP_RET_ACTION_FULL;
        return action == SECCOMP_RET_ALLOW || action == SECCOMP_RET_LOG;
    });
}

}  // namespace pinfold
