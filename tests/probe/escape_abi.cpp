// Ways out: the same calls by another door, by which a filter that knows only one would not see them.
#include <fcntl.h>
#include <linux/sched.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>

#include "escape.hpp"

namespace probe {

#ifdef __x86_64__

namespace {

long x32(long number, long first = 0) {
    constexpr long kX32 = 0x40000000;
    return ::syscall(kX32 | number, first, 0, 0, 0, 0);
}

// The door of 32-bit programs, open to those of 64 bits too; it has numbers of its own, and sees half of an address.
long int80(long number, long first = 0, long second = 0, long third = 0, long fourth = 0) {
    long result = number;
    asm volatile("int $0x80" : "+a"(result) : "b"(first), "c"(second), "d"(third), "S"(fourth), "D"(0) : "memory");
    if (result >= 0 || result < -4095) return 0;
    errno = static_cast<int>(-result);
    return -1;
}

constexpr long kMount = 21, kUmount2 = 52, kPtrace = 26, kSetns = 346, kUnshare = 310, kBpf = 357, kKeyctl = 288;

long address(const void* data) { return reinterpret_cast<long>(data); }  // a static program's are small

long bpf_map() {
    static const std::array<uint32_t, 32> map = {2 /* BPF_MAP_TYPE_ARRAY */, 4, 4, 1};
    return int80(kBpf, 0 /* BPF_MAP_CREATE */, address(map.data()), sizeof map);
}

long join_mounts() {
    const int target = ::open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC);
    return int80(kSetns, target);
}

}  // namespace

Attempts x32_attempts() {
    return {
        {"mount by x32", [] { return x32(SYS_mount); }},
        {"unshare by x32", [] { return x32(SYS_unshare, CLONE_NEWUSER); }},
        {"ptrace by x32", [] { return x32(SYS_ptrace); }},
    };
}

Attempts int80_attempts() {
    return {
        {"mount by int 0x80", [] { return int80(kMount, 0, address("/"), 0, MS_PRIVATE); }},
        {"umount2 by int 0x80", [] { return int80(kUmount2, address("/proc"), MNT_EXPIRE); }},
        {"setns by int 0x80", [] { return in_child(join_mounts); }},
        {"bpf by int 0x80", bpf_map},
        {"keyctl by int 0x80", [] { return int80(kKeyctl, 0, -3); }},
        {"unshare by int 0x80", [] { return in_child([] { return int80(kUnshare, CLONE_NEWUSER); }); }},
        {"ptrace by int 0x80", [] { return in_child([] { return int80(kPtrace); }); }},
    };
}

#else

Attempts x32_attempts() { return {}; }
Attempts int80_attempts() { return {}; }

#endif

}  // namespace probe
