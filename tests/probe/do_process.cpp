// Trying things on processes: system calls by number, signals, memory, children, processor time.
#include <fcntl.h>
#include <linux/sched.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <future>
#include <thread>

#include "commands.hpp"

namespace probe {

namespace {

long milliseconds(clockid_t clock) {
    timespec now{};
    ::clock_gettime(clock, &now);
    return now.tv_sec * 1000 + now.tv_nsec / 1'000'000;
}

}  // namespace

Object syscall_command(const Arguments& arguments) {
    std::array<long, 7> values{};
    for (size_t i = 0; i < values.size() && i < arguments.size(); ++i) {
        values[i] = static_cast<long>(std::stoull(arguments[i], nullptr, 0));
    }
    const long result = ::syscall(values[0], values[1], values[2], values[3], values[4], values[5], values[6]);
    return result >= 0 ? success().add("result", result) : failure();
}

Object exit_command(const Arguments& arguments) { ::exit(std::stoi(arguments[0])); }

Object signal_command(const Arguments& arguments) {
    // Spared where the process is the first of a pid namespace: tests of this one go without.
    const int number = std::stoi(arguments[0]);
    ::signal(number, SIG_DFL);
    return success_if(::kill(::getpid(), number) == 0);
}

Object wait_signal_command(const Arguments& /*arguments*/) {
    sigset_t all;
    ::sigfillset(&all);
    ::sigprocmask(SIG_BLOCK, &all, nullptr);
    std::printf("READY\n");
    std::fflush(stdout);
    int number = 0;
    while (number != SIGTERM && ::sigwait(&all, &number) == 0) {
        std::printf("%s\n", sigabbrev_np(number));
        std::fflush(stdout);
    }
    return success();
}

Object alloc_command(const Arguments& arguments) {
    const size_t bytes = std::stoul(arguments[0]) << 20;
    const bool shared = arguments.size() > 1 && arguments[1] == "shared";
    const int flags = MAP_ANONYMOUS | (shared ? MAP_SHARED : MAP_PRIVATE);
    void* memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, flags, -1, 0);
    if (memory == MAP_FAILED) return failure();
    volatile char* pages = static_cast<char*>(memory);
    for (size_t offset = 0; offset < bytes; offset += 4096) pages[offset] = 1;
    return success();
}

Object fork_command(const Arguments& arguments) {
    const int wanted = std::stoi(arguments[0]);
    std::vector<pid_t> children;
    int error = 0;
    for (int i = 0; i < wanted; ++i) {
        const pid_t child = ::fork();
        if (child == 0) {
            ::pause();
            ::_exit(0);
        }
        if (child < 0) {
            error = errno;
            break;
        }
        children.push_back(child);
    }
    for (const pid_t child : children) {
        ::kill(child, SIGKILL);
        ::waitpid(child, nullptr, 0);
    }
    Object out = success();
    out.add("children", children.size());
    if (error != 0) out.add("errno", strerrorname_np(error));
    return out;
}

Object threads_command(const Arguments& arguments) {
    const auto wait = [](void* nothing) {
        ::pause();
        return nothing;
    };
    const int wanted = std::stoi(arguments[0]);
    int count = 0;
    pthread_t ignored{};
    while (count < wanted && (errno = ::pthread_create(&ignored, nullptr, wait, nullptr)) == 0) ++count;
    Object out = success().add("threads", count);
    if (count < wanted) out.add("errno", strerrorname_np(errno));
    return out;
}

Object bomb_command(const Arguments& /*arguments*/) {
    std::printf("READY\n");
    std::fflush(stdout);
    for (;;) ::fork();
}

Object orphan_command(const Arguments& /*arguments*/) {
    const pid_t child = ::fork();
    if (child == 0) {
        ::setsid();
        for (;;) ::pause();
    }
    return success_if(child > 0);
}

void outlive_first_thread(const std::function<void()>& work) {
    std::thread([work] {
        work();
        for (;;) ::pause();
    }).detach();
    for (;;) ::syscall(SYS_exit, 0);
}

// Each thread lives for no longer than it takes to start the next.
static void relay() { std::thread(relay).detach(); }

Object hold_thread_command(const Arguments& /*arguments*/) {
    std::promise<pid_t> started;
    std::thread([&started] {
        started.set_value(::gettid());
        for (;;) ::pause();
    }).detach();
    const pid_t thread = started.get_future().get();
    ::prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);  // unknown where only its absence allows as much
    if (::fork() == 0) {
        if (::ptrace(PTRACE_SEIZE, thread, 0, 0) != 0) ::_exit(1);
        std::printf("READY\n");
        std::fflush(stdout);
    }
    for (;;) ::pause();
}

Object flee_command(const Arguments& arguments) {
    const std::string& way = arguments[0];
    bool fled = false;
    pid_t child = -1;
    if (way == "namespaces") fled = ::unshare(CLONE_NEWUSER) == 0 && ::unshare(CLONE_NEWCGROUP) == 0;
    if (way == "write") {
        const int members = ::open((arguments[1] + "/cgroup.procs").c_str(), O_WRONLY | O_CLOEXEC);
        fled = ::write(members, "0", 1) == 1;
    }
    if (way == "clone3") {
        clone_args wanted{};
        wanted.flags = CLONE_INTO_CGROUP;
        wanted.exit_signal = SIGCHLD;
        wanted.cgroup = uint64_t(::open(arguments[1].c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
        child = static_cast<pid_t>(::syscall(SYS_clone3, &wanted, sizeof wanted));
        fled = child >= 0;
    }
    if (child < 0) child = ::fork();
    if (child == 0) {
        ::setsid();
        if (way == "threads") outlive_first_thread([] {});
        if (way == "relay") relay();
        if (way == "relay") ::syscall(SYS_exit, 0);
        for (;;) ::pause();
    }
    return success_if(child > 0).add("fled", fled);
}

Object burn_command(const Arguments& arguments) {
    const long wanted = std::stol(arguments[0]);
    const long begin = milliseconds(CLOCK_MONOTONIC);
    const long used_before = milliseconds(CLOCK_PROCESS_CPUTIME_ID);
    while (milliseconds(CLOCK_PROCESS_CPUTIME_ID) - used_before < wanted) {
    }
    return success().add("wall_ms", milliseconds(CLOCK_MONOTONIC) - begin);
}

Object count_command(const Arguments& arguments) {
    const int file = ::open(arguments[0].c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    for (long number = 1; file >= 0; ++number) {
        const std::string text = std::to_string(number);
        if (::pwrite(file, text.data(), text.size(), 0) < 0) break;
    }
    return failure();
}

Object sleep_forever_command(const Arguments& /*arguments*/) {
    std::printf("READY\n");
    std::fflush(stdout);
    for (;;) ::pause();
}

Object print_command(const Arguments& arguments) {
    std::fprintf(stderr, "%s\n", arguments[0].c_str());
    return success();
}

}  // namespace probe
