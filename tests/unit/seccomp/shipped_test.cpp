// The profiles that come with pinfold, call by call, on every architecture that they name.
#include "seccomp/shipped.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>

#include "calls.hpp"
#include "seccomp/cache.hpp"
#include "seccomp/profiles.hpp"
#include "seccomp/reporting.hpp"

namespace pinfold::testing {

namespace {

constexpr uint32_t kEperm = SECCOMP_RET_ERRNO | EPERM;
constexpr uint32_t kEnosys = SECCOMP_RET_ERRNO | ENOSYS;
constexpr uint64_t kHigh = 0x1'0000'0000;   // what the kernel cuts off an int
constexpr uint64_t kThread = 0x3d0f00;      // what a C library passes for a thread
constexpr uint64_t kForked = 0x1200011;     // and for fork()
constexpr uint64_t kNewUser = 0x1000'0000;  // CLONE_NEWUSER
constexpr uint32_t kArchitectures[] = {SCMP_ARCH_X86_64, SCMP_ARCH_X86, SCMP_ARCH_AARCH64, SCMP_ARCH_ARM};

Seccomp shipped(std::string_view name) {
    Result<Seccomp> found = find_profile(name);
    REQUIRE_MESSAGE(found, found.error().message);
    return std::move(found).value();
}

// For all architectures, those that this machine never sees included.
const SeccompFilter& filter(const std::string& name) {
    static std::map<std::string, SeccompFilter> filters;
    const auto known = filters.find(name);
    if (known != filters.end()) return known->second;
    Seccomp section = shipped(name);
    section.architectures = {"SCMP_ARCH_X86_64", "SCMP_ARCH_X86", "SCMP_ARCH_AARCH64", "SCMP_ARCH_ARM"};
    return filters.emplace(name, compiled(section)).first->second;
}

// For x86, libseccomp gives calls that can also be made by socketcall or ipc numbers below zero: here are their own.
int number_of(uint32_t arch, std::string_view name) {
    constexpr std::pair<std::string_view, int> kOwn[] = {{"socket", 359},  {"socketpair", 360}, {"connect", 362},
                                                         {"sendmsg", 370}, {"shmget", 395},     {"msgsnd", 400}};
    const auto* own = std::ranges::find(kOwn, name, &std::pair<std::string_view, int>::first);
    if (arch == SCMP_ARCH_X86 && own != std::end(kOwn)) return own->second;
    return seccomp_syscall_resolve_name_arch(arch, std::string(name).c_str());
}

bool has_call(uint32_t arch, std::string_view name) { return number_of(arch, name) >= 0; }

bool has_arguments(uint32_t arch, const Arguments& args) {
    const bool wide = arch == SCMP_ARCH_X86_64 || arch == SCMP_ARCH_AARCH64;
    return wide || std::ranges::all_of(args, [](uint64_t arg) { return arg <= 0xffffffff; });
}

uint32_t answer(const std::string& profile, uint32_t arch, std::string_view name, const Arguments& args = {}) {
    return verdict(filter(profile), call_number(number_of(arch, name), arch, args));
}

// A letter per profile: A allowed, P EPERM, S ENOSYS.
struct Row {
    std::string name;
    Arguments args;
    const char* strict_default_network_build;
};

const Row kRows[] = {
    {"read", {}, "AAAA"},
    {"openat", {}, "AAAA"},
    {"execve", {}, "AAAA"},
    {"exit_group", {}, "AAAA"},
    {"mmap", {}, "AAAA"},
    {"mmap2", {}, "AAAA"},
    {"futex", {}, "AAAA"},
    {"futex_waitv", {}, "AAAA"},
    {"epoll_wait", {}, "AAAA"},
    {"epoll_pwait", {}, "AAAA"},
    {"timerfd_create", {}, "AAAA"},
    {"eventfd2", {}, "AAAA"},
    {"memfd_secret", {}, "AAAA"},
    {"unlinkat", {}, "AAAA"},
    {"set_thread_area", {}, "AAAA"},
    {"clock_gettime64", {}, "AAAA"},
    {"capset", {}, "AAAA"},

    {"clone", {kThread}, "AAAA"},
    {"clone", {kForked}, "PAAA"},
    {"clone", {17}, "PAAA"},
    {"clone", {kThread | kNewUser}, "PPPP"},
    {"clone", {kForked | kNewUser}, "PPPP"},
    {"clone", {kNewUser | kHigh}, "PPPP"},
    {"clone", {kForked | 0x20000}, "PPPP"},     // CLONE_NEWNS
    {"clone", {kForked | 0x2000000}, "PPPP"},   // CLONE_NEWCGROUP
    {"clone", {kForked | 0x40000000}, "PPPP"},  // CLONE_NEWNET
    {"clone", {0x80}, "PPPP"},                  // CLONE_NEWTIME
    {"clone3", {}, "SSSS"},
    {"fork", {}, "PAAA"},
    {"vfork", {}, "PAAA"},
    {"wait4", {}, "PAAA"},
    {"waitpid", {}, "PAAA"},
    {"setsid", {}, "PAAA"},

    {"socket", {1, 1, 0}, "PAAA"},  // AF_UNIX
    {"socket", {1 | kHigh, 1, 0}, "PAAA"},
    {"socket", {2, 1, 6}, "PAAA"},  // AF_INET
    {"socket", {2, 0x80801, 0}, "PAAA"},
    {"socket", {2, 2, 17}, "PAAA"},
    {"socket", {10, 1, 6}, "PAAA"},  // AF_INET6
    {"socket", {10, 2, 58}, "PAAA"},
    {"socket", {2, 3, 1}, "PPPP"},    // SOCK_RAW
    {"socket", {2, 1, 132}, "PPPP"},  // SCTP
    {"socket", {2, 5, 0}, "PPPP"},    // SOCK_SEQPACKET
    {"socket", {2, 1, 6 | kHigh}, "PPPP"},
    {"socket", {16, 3, 0}, "PPAP"},  // NETLINK_ROUTE
    {"socket", {16, 3, 9}, "PPPP"},  // NETLINK_AUDIT
    {"socket", {17, 3, 0}, "PPPP"},  // AF_PACKET
    {"socket", {38, 5, 0}, "PPPP"},  // AF_ALG
    {"socket", {40, 1, 0}, "PPPP"},  // AF_VSOCK
    {"socketpair", {1, 1, 0}, "PAAA"},
    {"socketpair", {2, 1, 0}, "PPPP"},
    {"connect", {}, "PAAA"},
    {"sendmsg", {}, "PAAA"},
    {"socketcall", {1}, "SSSS"},  // would hide the family
    {"socketcall", {8}, "SSSS"},
    {"socketcall", {16}, "SSSS"},

    {"ioctl", {0, 0x5401}, "AAAA"},              // TCGETS
    {"ioctl", {0, 0x5410}, "AAAA"},              // TIOCSPGRP
    {"ioctl", {0, 0x5413}, "AAAA"},              // TIOCGWINSZ
    {"ioctl", {0, 0x541b}, "AAAA"},              // FIONREAD
    {"ioctl", {0, 0x5421}, "AAAA"},              // FIONBIO
    {"ioctl", {0, 0x5451}, "AAAA"},              // FIOCLEX
    {"ioctl", {0, 0x80045430}, "AAAA"},          // TIOCGPTN
    {"ioctl", {0, 0xffffffff80045430}, "AAAA"},  // as a C library that takes it for an int passes it
    {"ioctl", {0, 0x40049409}, "AAAA"},          // FICLONE
    {"ioctl", {0, 0x80086601}, "AAAA"},          // FS_IOC_GETFLAGS
    {"ioctl", {0, 0x8912}, "AAAA"},              // SIOCGIFCONF
    {"ioctl", {0, 0x5412}, "PPPP"},              // TIOCSTI
    {"ioctl", {0, 0x5412 | kHigh}, "PPPP"},      // CVE-2019-10063
    {"ioctl", {0, 0x541c}, "PPPP"},              // TIOCLINUX, CVE-2023-28100
    {"ioctl", {0, 0x541c | kHigh}, "PPPP"},
    {"ioctl", {0, 0x541d}, "PPPP"},  // TIOCCONS

    {"mknod", {0, 0644}, "PAAA"},
    {"mknod", {0, 0010644}, "PAAA"},
    {"mknod", {0, 0020644}, "PPPP"},  // a character device
    {"mknodat", {0, 0, 0010644}, "PAAA"},
    {"mknodat", {0, 0, 0060644}, "PPPP"},  // a block device
    {"personality", {0}, "PAAA"},
    {"personality", {8}, "PAAA"},
    {"personality", {0xffffffff}, "PAAA"},
    {"personality", {~uint64_t{0}}, "PAAA"},
    {"personality", {0x40000}, "PPPA"},   // ADDR_NO_RANDOMIZE
    {"personality", {0x400000}, "PPPP"},  // READ_IMPLIES_EXEC

    {"setresuid", {}, "PAAA"},
    {"chown", {}, "PAAA"},
    {"seccomp", {}, "PAAA"},
    {"landlock_restrict_self", {}, "PAAA"},
    {"shmget", {}, "PPPA"},
    {"msgsnd", {}, "PPPA"},
    {"ipc", {2}, "PPPA"},
    {"mq_open", {}, "PPPA"},
};

const std::string kNeverAllowed[] = {
    "mount",
    "umount2",
    "pivot_root",
    "chroot",
    "move_mount",
    "open_tree",
    "fsopen",
    "mount_setattr",
    "unshare",
    "setns",
    "ptrace",
    "process_vm_readv",
    "process_vm_writev",
    "kcmp",
    "pidfd_getfd",
    "bpf",
    "perf_event_open",
    "keyctl",
    "add_key",
    "request_key",
    "userfaultfd",
    "io_uring_setup",
    "io_uring_enter",
    "io_uring_register",
    "open_by_handle_at",
    "name_to_handle_at",
    "kexec_load",
    "kexec_file_load",
    "init_module",
    "finit_module",
    "delete_module",
    "reboot",
    "swapon",
    "swapoff",
    "quotactl",
    "acct",
    "settimeofday",
    "stime",
    "clock_settime",
    "clock_settime64",
    "adjtimex",
    "clock_adjtime",
    "vmsplice",
    "mbind",
    "set_mempolicy",
    "move_pages",
    "migrate_pages",
    "syslog",
    "iopl",
    "ioperm",
    "lookup_dcookie",
    "nfsservctl",
    "fanotify_init",
    "fanotify_mark",
    "modify_ldt",
    "vm86",
    "vhangup",
    "sethostname",
    "uselib",
    "_sysctl",
};

const std::string kProfiles[] = {"strict", "default", "network", "build"};

uint32_t meaning(char letter) { return letter == 'A' ? kAllow : letter == 'P' ? kEperm : kEnosys; }

// Every number that a call can have, with arguments among which are those that rules look at.
template <class Visit>
void for_many_calls(Visit visit) {
    const Arguments arguments[] = {
        {},         {1, 1, 1, 1, 1, 1},         {kNewUser, 0x5412},    {17, 0010000, 0010000},
        {2, 2, 17}, {kThread, 0x541c, 0060000}, {~0ULL, ~0ULL, ~0ULL}, {0x40000, 0x5413},
        {16, 3}};
    for (const uint32_t arch : kArchitectures) {
        for (int number = 0; number < 520; ++number) {
            for (const Arguments& args : arguments) visit(call_number(number, arch, args));
        }
    }
}

}  // namespace

TEST_CASE("shipped profiles: call by call") {
    for (const Row& row : kRows) {
        for (const uint32_t arch : kArchitectures) {
            if (!has_call(arch, row.name) || !has_arguments(arch, row.args)) continue;
            for (size_t i = 0; i < std::size(kProfiles); ++i) {
                CAPTURE(kProfiles[i]);
                CAPTURE(arch);
                CAPTURE(row.name);
                CAPTURE(row.args[0]);
                CAPTURE(row.args[1]);
                CHECK(answer(kProfiles[i], arch, row.name, row.args) == meaning(row.strict_default_network_build[i]));
            }
        }
    }
}

TEST_CASE("shipped profiles: what none of them allows") {
    for (const std::string& name : kNeverAllowed) {
        size_t architectures = 0;
        for (const uint32_t arch : kArchitectures) {
            if (!has_call(arch, name)) continue;
            ++architectures;
            for (const std::string& profile : kProfiles) {
                CAPTURE(profile);
                CAPTURE(arch);
                CAPTURE(name);
                CHECK(answer(profile, arch, name) == kEperm);
            }
        }
        CAPTURE(name);
        CHECK(architectures > 0);
    }
}

TEST_CASE("shipped profiles: every request of ioctl but five") {
    for (uint64_t request = 0; request < 0x10000; ++request) {
        const bool denied =
            request == 0x5412 || (request >= 0x541c && request <= 0x541f) || (request >= 0x5460 && request <= 0x54ff);
        for (const uint64_t high : {0ULL, 0x80040000ULL, 0xffffffff'80040000ULL}) {
            if (answer("default", seccomp_arch_native(), "ioctl", {0, high | request}) == (denied ? kEperm : kAllow)) {
                continue;
            }
            CAPTURE(request);
            CAPTURE(high);
            FAIL_CHECK("the other answer");
        }
    }
}

TEST_CASE("shipped profiles: x32, other architectures and newer calls") {
    for (const std::string& profile : kProfiles) {
        CAPTURE(profile);
        const SeccompFilter& all = filter(profile);
        CHECK(verdict(all, call_number(0x40000000, SCMP_ARCH_X86_64)) == SECCOMP_RET_KILL_THREAD);
        CHECK(verdict(all, call_number(0x40000000 + 165, SCMP_ARCH_X86_64)) == SECCOMP_RET_KILL_THREAD);
        CHECK(verdict(all, call_number(0, SCMP_ARCH_RISCV64)) == SECCOMP_RET_KILL_THREAD);
        CHECK(verdict(all, call_number(100'000)) == kEnosys);
    }
}

TEST_CASE("shipped profiles: each allows all that the one that it extends allows") {
    struct Pair {
        std::string wide, narrow;
    };
    for (const Pair& pair : {Pair{"default", "strict"}, Pair{"network", "default"}, Pair{"build", "default"}}) {
        CAPTURE(pair.wide);
        size_t allowed = 0;
        for_many_calls([&](const seccomp_data& data) {
            if (verdict(filter(pair.narrow), data) != kAllow) return;
            ++allowed;
            if (verdict(filter(pair.wide), data) != kAllow) FAIL_CHECK(data.nr << " of architecture " << data.arch);
        });
        CHECK(allowed > 5000);
    }
}

TEST_CASE("shipped profiles: reporting differs by notifications alone") {
    for (const ShippedProfile& profile : shipped_table()) {
        CAPTURE(profile.name);
        const SeccompFilter& plain = filter(std::string(profile.name));
        const SeccompFilter reporting = with_reporting(plain);
        size_t reported = 0;
        for_many_calls([&](const seccomp_data& data) {
            const uint32_t before = verdict(plain, data);
            const uint32_t after = verdict(reporting, data);
            if (before == after && (before & SECCOMP_RET_ACTION_FULL) != SECCOMP_RET_ERRNO) return;
            if (before == kEnosys && after == kEnosys) return;
            ++reported;
            const bool right = (before & SECCOMP_RET_ACTION_FULL) == SECCOMP_RET_ERRNO &&
                               after == SECCOMP_RET_USER_NOTIF && answers(denial_errno(plain.program, data)) == before;
            if (!right) FAIL_CHECK(data.nr << " of architecture " << data.arch);
        });
        CHECK(reported > 1000);
    }
}

TEST_CASE("shipped profiles: learn sees all but a program's start and what happens many times a second") {
    const SeccompFilter reporting = with_reporting(filter("learn"));
    for (const char* name : {"execve", "read", "write", "futex", "mmap", "exit_group", "rt_sigreturn"}) {
        CHECK(verdict(reporting, call(name)) == kAllow);
    }
    for (const char* name : {"execveat", "openat", "socket", "clone", "mount", "statx", "futex_waitv", "ioctl"}) {
        CHECK(verdict(reporting, call(name)) == SECCOMP_RET_USER_NOTIF);
    }
    CHECK(verdict(reporting, call("clone3")) == kEnosys);
    CHECK(verdict(reporting, call_number(480)) == SECCOMP_RET_USER_NOTIF);  // newer than libseccomp
}

TEST_CASE("shipped profiles: the table holds what compiling gives, and is where the cache looks first") {
    CHECK(shipped_table().size() == 5);
    for (const ShippedProfile& profile : shipped_table()) {
        CAPTURE(profile.name);
        const Seccomp section = unpack(profile).seccomp;
        const SeccompFilter direct = compiled(section);
        CHECK(direct.flags == 0);
        const auto same = [](const sock_filter& a, const sock_filter& b) { return std::memcmp(&a, &b, sizeof a) == 0; };
        CHECK(std::ranges::equal(direct.program, profile.program, same));
        const Result<SeccompFilter> cached = compile_seccomp_cached(section, "/nowhere/at/all");
        REQUIRE(cached);
        CHECK(std::ranges::equal(cached->program, profile.program, same));
    }
}

// Whatever is changed in one, it is not taken for the one that was shipped.
TEST_CASE("shipped profiles: one that differs in anything is compiled") {
    const Seccomp section = shipped("default");
    const auto changed = [&](auto change) {
        Seccomp other = section;
        change(other);
        const Result<SeccompFilter> cached = compile_seccomp_cached(other, "/nowhere/at/all");
        const SeccompFilter direct = compiled(other);
        return cached && cached->flags == direct.flags &&
               std::ranges::equal(cached->program, direct.program, [](const sock_filter& a, const sock_filter& b) {
                   return std::memcmp(&a, &b, sizeof a) == 0;
               });
    };
    const auto with_args =
        std::ranges::find_if(section.syscalls, [](const SyscallRule& one) { return !one.args.empty(); });
    const auto index = size_t(with_args - section.syscalls.begin());
    CHECK(changed([](Seccomp& s) { s.default_errno_ret = EACCES; }));
    CHECK(changed([](Seccomp& s) {
        s.default_action = "SCMP_ACT_KILL_PROCESS";
        s.default_errno_ret.reset();
    }));
    CHECK(changed([](Seccomp& s) { s.flags = {"SECCOMP_FILTER_FLAG_LOG"}; }));
    CHECK(changed([](Seccomp& s) { s.architectures.pop_back(); }));
    CHECK(changed([](Seccomp& s) { s.syscalls.pop_back(); }));
    CHECK(changed([](Seccomp& s) { s.syscalls[0].names.pop_back(); }));
    CHECK(changed([](Seccomp& s) { s.syscalls[0].names.erase(s.syscalls[0].names.begin()); }));
    CHECK(changed([](Seccomp& s) { s.syscalls[0].names.push_back("mount"); }));
    CHECK(changed([](Seccomp& s) {
        std::vector<std::string>& names = s.syscalls[0].names;
        names[0] += " " + names[1];
        names.erase(names.begin() + 1);
    }));
    CHECK(changed([](Seccomp& s) { s.syscalls[0].action = "SCMP_ACT_LOG"; }));
    CHECK(changed([&](Seccomp& s) { s.syscalls[index].args.clear(); }));
    CHECK(changed([&](Seccomp& s) { s.syscalls[index].args[0].value ^= 1; }));
    CHECK(changed([&](Seccomp& s) { s.syscalls[index].args[0].value_two ^= 1; }));
    CHECK(changed([&](Seccomp& s) { s.syscalls[index].args[0].index += 1; }));
}

TEST_CASE("shipped profiles: a call takes few steps") {
    for (const std::string& profile : kProfiles) {
        const Result<SeccompFilter> own = compile_seccomp_cached(shipped(profile), "");
        REQUIRE(own);
        for (const char* name : {"read", "write", "openat", "futex", "clone", "statx", "mount", "epoll_wait"}) {
            CAPTURE(name);
            size_t steps = 0;
            evaluate(own->program, call(name, {kThread}), &steps);
            CHECK(steps <= 30);
        }
    }
}

}  // namespace pinfold::testing
