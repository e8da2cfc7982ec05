// seccomp(2) itself. Called raw: libseccomp's own loader would compile again, and allocate.
#include "seccomp/load.hpp"

#include <linux/bpf_common.h>
#include <linux/seccomp.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

namespace pinfold {

Result<int> load_seccomp(const SeccompFilter& filter) {
    // sock_fprog counts in 16 bits: a longer program would be cut, and a cut filter may allow what the whole denies.
    if (filter.program.size() > BPF_MAXINSNS) return plain_error("load seccomp filter: the program is too long");
    // The kernel copies the program and does not write to it; its interface only lacks the const.
    sock_fprog program{static_cast<unsigned short>(filter.program.size()),
                       const_cast<sock_filter*>(filter.program.data())};
    const long loaded = ::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, filter.flags, &program);
    if (loaded >= 0) return static_cast<int>(loaded);
    Error error = errno_error("load seccomp filter");
    if (error.code == EBUSY) error.hint = "a process has one listener only, and pinfold is itself under one";
    if (error.code != EACCES) return error;
    return std::move(error).with_hint("a filter needs process.noNewPrivileges, or CAP_SYS_ADMIN while it is loaded");
}

bool kernel_takes_seccomp_flag(unsigned flag) {
    if (flag == SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV) flag |= SECCOMP_FILTER_FLAG_NEW_LISTENER;  // never without
    // Flags come first, then the program is read: where it cannot be, the flags were good (seccomp(2)).
    return ::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flag, nullptr) == -1 && errno == EFAULT;
}

}  // namespace pinfold
