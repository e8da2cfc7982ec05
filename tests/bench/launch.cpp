// The launcher: runs one command, times it and writes a LaunchReport to descriptor 3.
// It is a program of its own because the kernel counts the memory of whoever calls execve towards the command's peak:
// this one is smaller than anything that is measured.
//
//   launch [--pretend-memlock] PROGRAM [ARGUMENT...]
//
// --pretend-memlock answers setrlimit(RLIMIT_MEMLOCK) with success. crun asks for it before it loads a device program
// and gives up where CAP_SYS_RESOURCE is missing, although no kernel since 5.11 needs the limit for that.
#include "launch.hpp"

#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstddef>
#include <cstring>
#include <ctime>

namespace pinfold::bench {

namespace {

// By CAP_SYS_ADMIN, not by no_new_privs, which would change what the command does.
bool install_memlock_filter() {
    sock_filter rules[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_prlimit64, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, args[1])),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, RLIMIT_MEMLOCK, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const sock_fprog program{sizeof(rules) / sizeof(rules[0]), rules};
    return ::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) == 0;
}

int64_t now_ns() {
    timespec now{};
    ::clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1'000'000'000LL + now.tv_nsec;
}

int64_t microseconds(const timeval& time) { return time.tv_sec * 1'000'000LL + time.tv_usec; }

bool run(char** command, LaunchReport& report) {
    const int64_t begin = now_ns();
    const pid_t child = ::vfork();
    if (child == 0) {
        ::execv(command[0], command);
        ::_exit(kCannotExecute);
    }
    rusage usage{};
    if (child < 0 || ::wait4(child, &report.wait_status, 0, &usage) != child) return false;
    report.wall_ns = now_ns() - begin;
    report.cpu_us = microseconds(usage.ru_utime) + microseconds(usage.ru_stime);
    report.max_rss_kb = usage.ru_maxrss;
    return true;
}

}  // namespace

}  // namespace pinfold::bench

int main(int argc, char** argv) {
    using namespace pinfold::bench;
    const bool pretend_memlock = argc > 1 && strcmp(argv[1], "--pretend-memlock") == 0;
    char** command = argv + (pretend_memlock ? 2 : 1);
    if (*command == nullptr || ::fcntl(kLaunchReportFd, F_SETFD, FD_CLOEXEC) != 0) return 2;
    if (pretend_memlock && !install_memlock_filter()) return 2;
    LaunchReport report;
    if (!run(command, report)) return 2;
    return ::write(kLaunchReportFd, &report, sizeof(report)) == sizeof(report) ? 0 : 2;
}
