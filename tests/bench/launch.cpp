// The launcher: runs one command, times it and writes a LaunchReport to descriptor 3.
// It is a program of its own because the kernel counts the memory of whoever calls execve towards the command's peak:
// this one is smaller than anything that is measured.
//
//   launch [--pretend-memlock] [--user UID] [--times N --at-once N] PROGRAM [ARGUMENT...]
//
// --pretend-memlock answers setrlimit(RLIMIT_MEMLOCK) with success. crun asks for it before it loads a device program
// and gives up where CAP_SYS_RESOURCE is missing, although no kernel since 5.11 needs the limit for that.
// --times runs it that often, --at-once keeps that many of them running; the argument "@" is another name each time.
#include "launch.hpp"

#include <fcntl.h>
#include <grp.h>
#include <linux/filter.h>
#include <linux/perf_event.h>
#include <linux/seccomp.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>

namespace pinfold::bench {

namespace {

struct Request {
    bool pretend_memlock = false;
    uid_t user = 0;
    int times = 1;
    int at_once = 1;
    char** command = nullptr;
};

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

// Counts for this process and for all that it will start. Virtual machines often have no such counter.
int open_instruction_counter() {
    perf_event_attr wanted{};
    wanted.type = PERF_TYPE_HARDWARE;
    wanted.size = sizeof wanted;
    wanted.config = PERF_COUNT_HW_INSTRUCTIONS;
    wanted.inherit = 1;
    wanted.exclude_kernel = 1;
    wanted.exclude_hv = 1;
    return static_cast<int>(::syscall(SYS_perf_event_open, &wanted, 0, -1, -1, PERF_FLAG_FD_CLOEXEC));
}

int64_t now_ns() {
    timespec now{};
    ::clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1'000'000'000LL + now.tv_nsec;
}

int64_t microseconds(const timeval& time) { return time.tv_sec * 1'000'000LL + time.tv_usec; }

bool start(const Request& request, int number) {
    static char name[32];  // the child of vfork(2) has executed its program before it is written again
    std::snprintf(name, sizeof name, "bench-%d-%d", ::getpid(), number);
    char* argv[256];
    int count = 0;
    for (char** word = request.command; *word != nullptr && count < 255; word++) {
        argv[count++] = strcmp(*word, "@") == 0 ? name : *word;
    }
    argv[count] = nullptr;
    const pid_t child = ::vfork();
    if (child == 0) {
        ::execv(argv[0], argv);
        ::_exit(kCannotExecute);
    }
    return child > 0;
}

bool await_one(LaunchReport& report) {
    rusage usage{};
    int status = 0;
    if (::wait4(-1, &status, 0, &usage) < 0) return false;
    if (report.wait_status == 0) report.wait_status = status;
    report.cpu_us += microseconds(usage.ru_utime) + microseconds(usage.ru_stime);
    report.max_rss_kb = std::max<int64_t>(report.max_rss_kb, usage.ru_maxrss);
    return true;
}

bool run(const Request& request, LaunchReport& report) {
    const int counter = open_instruction_counter();
    const int64_t begin = now_ns();
    int started = 0;
    for (int ended = 0; ended < request.times; ended++) {
        while (started < request.times && started - ended < request.at_once) {
            if (!start(request, started++)) return false;
        }
        if (!await_one(report)) return false;
    }
    report.wall_ns = now_ns() - begin;
    if (counter >= 0 && ::read(counter, &report.instructions, sizeof report.instructions) < 0) report.instructions = -1;
    return true;
}

bool become(uid_t user) {
    return user == 0 ||
           (::setgroups(0, nullptr) == 0 && ::setresgid(user, user, user) == 0 && ::setresuid(user, user, user) == 0);
}

Request parse(char** argv) {
    Request request;
    for (argv++; *argv != nullptr && strncmp(*argv, "--", 2) == 0; argv++) {
        if (strcmp(*argv, "--pretend-memlock") == 0) request.pretend_memlock = true;
        else if (argv[1] == nullptr) break;
        else if (strcmp(*argv, "--user") == 0) request.user = static_cast<uid_t>(atoi(*++argv));
        else if (strcmp(*argv, "--times") == 0) request.times = atoi(*++argv);
        else if (strcmp(*argv, "--at-once") == 0) request.at_once = atoi(*++argv);
    }
    request.command = argv;
    return request;
}

}  // namespace

}  // namespace pinfold::bench

int main(int, char** argv) {
    using namespace pinfold::bench;
    const Request request = parse(argv);
    if (*request.command == nullptr || ::fcntl(kLaunchReportFd, F_SETFD, FD_CLOEXEC) != 0) return 2;
    if (request.pretend_memlock && !install_memlock_filter()) return 2;
    if (!become(request.user)) return 2;
    LaunchReport report;
    if (!run(request, report)) return 2;
    return ::write(kLaunchReportFd, &report, sizeof(report)) == sizeof(report) ? 0 : 2;
}
