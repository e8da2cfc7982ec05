// What the process may do: capabilities, seccomp, limits, keyring, scheduling.
// All by system call where one exists, so that it works without a /proc.
#include <linux/capability.h>
#include <linux/keyctl.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>

#include "report.hpp"
#include "text.hpp"

namespace probe {

namespace {

constexpr std::array kCapabilityNames = {"CAP_CHOWN",
                                         "CAP_DAC_OVERRIDE",
                                         "CAP_DAC_READ_SEARCH",
                                         "CAP_FOWNER",
                                         "CAP_FSETID",
                                         "CAP_KILL",
                                         "CAP_SETGID",
                                         "CAP_SETUID",
                                         "CAP_SETPCAP",
                                         "CAP_LINUX_IMMUTABLE",
                                         "CAP_NET_BIND_SERVICE",
                                         "CAP_NET_BROADCAST",
                                         "CAP_NET_ADMIN",
                                         "CAP_NET_RAW",
                                         "CAP_IPC_LOCK",
                                         "CAP_IPC_OWNER",
                                         "CAP_SYS_MODULE",
                                         "CAP_SYS_RAWIO",
                                         "CAP_SYS_CHROOT",
                                         "CAP_SYS_PTRACE",
                                         "CAP_SYS_PACCT",
                                         "CAP_SYS_ADMIN",
                                         "CAP_SYS_BOOT",
                                         "CAP_SYS_NICE",
                                         "CAP_SYS_RESOURCE",
                                         "CAP_SYS_TIME",
                                         "CAP_SYS_TTY_CONFIG",
                                         "CAP_MKNOD",
                                         "CAP_LEASE",
                                         "CAP_AUDIT_WRITE",
                                         "CAP_AUDIT_CONTROL",
                                         "CAP_SETFCAP",
                                         "CAP_MAC_OVERRIDE",
                                         "CAP_MAC_ADMIN",
                                         "CAP_SYSLOG",
                                         "CAP_WAKE_ALARM",
                                         "CAP_BLOCK_SUSPEND",
                                         "CAP_AUDIT_READ",
                                         "CAP_PERFMON",
                                         "CAP_BPF",
                                         "CAP_CHECKPOINT_RESTORE"};

std::string capability_name(size_t bit) {
    return bit < kCapabilityNames.size() ? kCapabilityNames[bit] : "CAP_" + std::to_string(bit);
}

List names_of(uint64_t set) {
    List out;
    for (size_t bit = 0; bit < 64; ++bit) {
        if ((set >> bit & 1) != 0) out.add(capability_name(bit));
    }
    return out;
}

// One bit per capability for which the prctl answers 1.
uint64_t asked_by_prctl(int option, unsigned long argument_before_bit, bool has_argument) {
    uint64_t set = 0;
    for (unsigned long bit = 0; bit < 64; ++bit) {
        const int answer =
            has_argument ? ::prctl(option, argument_before_bit, bit, 0, 0) : ::prctl(option, bit, 0, 0, 0);
        if (answer < 0) break;  // beyond the kernel's last capability
        if (answer == 1) set |= uint64_t{1} << bit;
    }
    return set;
}

struct LimitName {
    const char* name;
    __rlimit_resource resource;
};

constexpr std::array kLimits = {LimitName{"RLIMIT_AS", RLIMIT_AS},
                                LimitName{"RLIMIT_CORE", RLIMIT_CORE},
                                LimitName{"RLIMIT_CPU", RLIMIT_CPU},
                                LimitName{"RLIMIT_DATA", RLIMIT_DATA},
                                LimitName{"RLIMIT_FSIZE", RLIMIT_FSIZE},
                                LimitName{"RLIMIT_LOCKS", RLIMIT_LOCKS},
                                LimitName{"RLIMIT_MEMLOCK", RLIMIT_MEMLOCK},
                                LimitName{"RLIMIT_MSGQUEUE", RLIMIT_MSGQUEUE},
                                LimitName{"RLIMIT_NICE", RLIMIT_NICE},
                                LimitName{"RLIMIT_NOFILE", RLIMIT_NOFILE},
                                LimitName{"RLIMIT_NPROC", RLIMIT_NPROC},
                                LimitName{"RLIMIT_RSS", RLIMIT_RSS},
                                LimitName{"RLIMIT_RTPRIO", RLIMIT_RTPRIO},
                                LimitName{"RLIMIT_RTTIME", RLIMIT_RTTIME},
                                LimitName{"RLIMIT_SIGPENDING", RLIMIT_SIGPENDING},
                                LimitName{"RLIMIT_STACK", RLIMIT_STACK}};

}  // namespace

Object capabilities() {
    __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
    std::array<__user_cap_data_struct, 2> data{};
    if (::syscall(SYS_capget, &header, data.data()) != 0) return {};
    const auto wide = [&](uint32_t __user_cap_data_struct::*set) {
        return uint64_t{data[0].*set} | uint64_t{data[1].*set} << 32;
    };
    Object out;
    out.add("effective", names_of(wide(&__user_cap_data_struct::effective)));
    out.add("permitted", names_of(wide(&__user_cap_data_struct::permitted)));
    out.add("inheritable", names_of(wide(&__user_cap_data_struct::inheritable)));
    out.add("bounding", names_of(asked_by_prctl(PR_CAPBSET_READ, 0, false)));
    out.add("ambient", names_of(asked_by_prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_IS_SET, true)));
    return out;
}

// The mode and, from /proc, the number of filters: PR_GET_SECCOMP itself may be filtered.
Object seccomp() {
    Object out;
    const auto status = read_file("/proc/self/status");
    if (!status) return out.add("mode", ::prctl(PR_GET_SECCOMP, 0, 0, 0, 0));
    for (const std::string& line : words(*status, '\n')) {
        const auto parts = words(line, '\t');
        if (parts.size() != 2) continue;
        if (parts[0] == "Seccomp:") out.add("mode", std::stoi(parts[1]));
        if (parts[0] == "Seccomp_filters:") out.add("filters", std::stoi(parts[1]));
    }
    return out;
}

Object rlimits() {
    Object out;
    for (const LimitName& limit : kLimits) {
        rlimit value{};
        if (::getrlimit(limit.resource, &value) == 0)
            out.add(limit.name, List().add(value.rlim_cur).add(value.rlim_max));
    }
    return out;
}

Object keyring() {
    Object out;
    const long id = ::syscall(SYS_keyctl, KEYCTL_GET_KEYRING_ID, KEY_SPEC_SESSION_KEYRING, 0);
    if (id < 0) return out.add("error", strerrorname_np(errno));
    std::array<char, 256> description{};
    ::syscall(SYS_keyctl, KEYCTL_DESCRIBE, id, description.data(), description.size() - 1);
    return out.add("id", id).add("description", description.data());
}

Object scheduling() {
    sched_param parameter{};
    ::sched_getparam(0, &parameter);
    constexpr int kWhoProcess = 1;
    List cpus;
    cpu_set_t affinity;
    CPU_ZERO(&affinity);
    if (::sched_getaffinity(0, sizeof affinity, &affinity) == 0) {
        for (size_t cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
            if (CPU_ISSET(cpu, &affinity)) cpus.add(cpu);
        }
    }
    Object out;
    out.add("policy", ::sched_getscheduler(0)).add("priority", parameter.sched_priority);
    out.add("nice", ::getpriority(PRIO_PROCESS, 0)).add("ioprio", ::syscall(SYS_ioprio_get, kWhoProcess, 0));
    int memory_policy = -1;
    unsigned long nodes = 0;
    ::syscall(SYS_get_mempolicy, &memory_policy, &nodes, sizeof nodes * 8, nullptr, 0);
    out.add("memory_policy", memory_policy).add("memory_nodes", nodes);
    return out.add("cpus", cpus);
}

}  // namespace probe
