// Whether a filter can be loaded before the last steps of a start.
#include "seccomp/start_calls.hpp"

#include <linux/seccomp.h>
#include <sched.h>
#include <seccomp.h>
#include <signal.h>

#include <algorithm>
#include <optional>

#include "seccomp/bpf_eval.hpp"

namespace pinfold {

namespace {

struct Call {
    const char* name;
    std::optional<uint64_t> first{};  // argument; empty: whatever it is
};

// Of the C library's functions the calls that it makes for them on one architecture or another.
constexpr Call kAlways[] = {
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

constexpr Call kToWait[] = {{"fcntl"}, {"dup2"}, {"dup3"}, {"accept"}, {"accept4"}};

constexpr Call kForTrampoline[] = {{"fcntl"}, {"read"}, {"execveat"}};

constexpr Call kForHooks[] = {
    {"clone", CLONE_CHILD_SETTID | CLONE_CHILD_CLEARTID | SIGCHLD},
    {"set_robust_list"},
    {"memfd_create"},
    {"lseek"},
    {"pipe2"},
    {"fcntl"},
    {"dup2"},
    {"dup3"},
    {"pidfd_open"},
    {"read"},
    {"clock_gettime"},
    {"kill"},
    {"waitid"},
    {"wait4"},
    {"getpid"},
    {"gettid"},
};

// Whatever its other arguments are: a filter that answers "done" to some would have a step leave out what it does.
bool allows(std::span<const sock_filter> program, const Call& one) {
    PartlyKnownCall calls;
    calls.call.arch = ::seccomp_arch_native();
    calls.call.nr = ::seccomp_syscall_resolve_name_arch(calls.call.arch, one.name);
    calls.known.arch = ~0U;
    calls.known.nr = ~0;
    if (one.first) {
        calls.call.args[0] = *one.first;
        calls.known.args[0] = ~uint64_t{0};
    }
    if (calls.call.nr < 0) return true;  // there is no such call here
    return always_answers(program, calls,
                          [](uint32_t action) { return action == SECCOMP_RET_ALLOW || action == SECCOMP_RET_LOG; });
}

}  // namespace

bool allows_end_of_start(std::span<const sock_filter> program, EndOfStart end) {
    const auto allows_all = [&](std::span<const Call> calls) {
        return std::ranges::all_of(calls, [&](const Call& call) { return allows(program, call); });
    };
    return allows_all(kAlways) && (!end.waits || allows_all(kToWait)) && (!end.hooks || allows_all(kForHooks)) &&
           (!end.trampoline || allows_all(kForTrampoline));
}

}  // namespace pinfold
