// System calls that glibc 2.36 does not wrap.
#pragma once

#include <fcntl.h>
#include <linux/openat2.h>
#include <linux/sched.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

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

}  // namespace pinfold
