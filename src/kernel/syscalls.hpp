// System calls that glibc 2.36 does not wrap.
#pragma once

#include <fcntl.h>
#include <linux/openat2.h>
#include <linux/sched.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>

namespace pinfold {

inline int sys_openat2(int dir, const char* path, const open_how& how) {
    return static_cast<int>(::syscall(SYS_openat2, dir, path, &how, sizeof how));
}

// Without a stack the child goes on where the parent is, as after fork().
inline pid_t sys_clone3(const clone_args& arguments) {
    return static_cast<pid_t>(::syscall(SYS_clone3, &arguments, sizeof arguments));
}

inline int sys_pivot_root(const char* new_root, const char* put_old) {
    return static_cast<int>(::syscall(SYS_pivot_root, new_root, put_old));
}

// Without a libc, for a thread that has no errno of its own: the result, or a negative error number.
#if defined(__x86_64__)
inline constexpr bool kHasRawCalls = true;
inline long raw_call(long number, long first = 0, long second = 0, long third = 0) {
    long result = number;
    asm volatile("syscall" : "+a"(result) : "D"(first), "S"(second), "d"(third) : "rcx", "r11", "memory");
    return result;
}
#elif defined(__aarch64__)
inline constexpr bool kHasRawCalls = true;
inline long raw_call(long number, long first = 0, long second = 0, long third = 0) {
    register long x8 asm("x8") = number;
    register long x0 asm("x0") = first;
    register long x1 asm("x1") = second;
    register long x2 asm("x2") = third;
    asm volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2) : "memory");
    return x0;
}
#else
inline constexpr bool kHasRawCalls = false;
inline long raw_call(long, long = 0, long = 0, long = 0) { return -ENOSYS; }
#endif

}  // namespace pinfold
