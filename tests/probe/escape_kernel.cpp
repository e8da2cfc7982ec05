// Ways out: calls that change the kernel, the machine or this process's rights, or that are a road into the kernel.
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/fanotify.h>
#include <linux/io_uring.h>
#include <linux/kexec.h>
#include <linux/keyctl.h>
#include <linux/perf_event.h>
#include <linux/reboot.h>
#include <linux/userfaultfd.h>
#include <sched.h>
#include <sys/quota.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timex.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "escape.hpp"

namespace probe {

namespace {

long bpf_map() {
    std::array<char, 128> attributes{};  // of the kernel's union: a map of one number
    const std::array<uint32_t, 4> map = {2 /* BPF_MAP_TYPE_ARRAY */, 4, 4, 1};
    std::memcpy(attributes.data(), map.data(), sizeof map);
    return ::syscall(SYS_bpf, 0 /* BPF_MAP_CREATE */, attributes.data(), attributes.size());
}

long perf_of_the_machine() {
    perf_event_attr attributes{};
    attributes.size = sizeof attributes;
    attributes.type = PERF_TYPE_SOFTWARE;
    attributes.config = PERF_COUNT_SW_CPU_CLOCK;
    return ::syscall(SYS_perf_event_open, &attributes, -1, 0, -1, 0);
}

long io_uring() {
    io_uring_params parameters{};
    return ::syscall(SYS_io_uring_setup, 1, &parameters);
}

// Of the root of the file system that / is on, by its number: paths and their ends do not matter to handles.
long open_by_handle() {
    struct {
        unsigned bytes = 8;
        int type = 1;  // FILEID_INO32_GEN
        std::array<uint32_t, 2> inode = {2, 0};
    } handle;
    const int root = ::open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return ::syscall(SYS_open_by_handle_at, root, &handle, O_RDONLY);
}

long host_key() {
    const char* name = std::getenv("HOST_KEY");
    if (name == nullptr) return kAbsent;
    return ::syscall(SYS_keyctl, KEYCTL_SEARCH, KEY_SPEC_SESSION_KEYRING, "user", name, 0);
}

long shift_clock() {
    timex nothing{};
    nothing.modes = ADJ_SETOFFSET;
    return ::adjtimex(&nothing);
}

long all_capabilities() {
    __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
    std::array<__user_cap_data_struct, 2> sets{};
    sets[0].effective = sets[0].permitted = 1u << CAP_SYS_ADMIN;
    return ::syscall(SYS_capset, &header, sets.data());
}

long real_time() {
    sched_param parameter{};
    parameter.sched_priority = 1;
    return ::sched_setscheduler(0, SCHED_FIFO, &parameter);
}

long raise_limit() {
    rlimit limit{};
    ::getrlimit(RLIMIT_NOFILE, &limit);
    ++limit.rlim_max;
    return ::setrlimit(RLIMIT_NOFILE, &limit);
}

// Numbers that no kernel of today gives anything for, and some beyond its table.
long odd_numbers() {
    for (const long number : {
#ifdef __x86_64__
             174, 177, 178, 180, 181, 182, 183, 184, 185, 236,  // create_module ... nfsservctl ... vserver
#endif
             700, 1000, 4096, 65535, 0x3fffffff}) {
        if (::syscall(number, 0, 0, 0, 0, 0, 0) >= 0 || (errno != ENOSYS && errno != EPERM)) return 0;
    }
    return -1;
}

template <class... Arguments>
std::function<long()> call(long number, Arguments... arguments) {
    return [=] { return ::syscall(number, arguments...); };
}

}  // namespace

Attempts kernel_attempts() {
    return {
        {"bpf", bpf_map},
        {"kexec_load", call(SYS_kexec_load, 0, 0, nullptr, 0)},
        {"kexec_file_load", call(SYS_kexec_file_load, -1, -1, 0, "", 0)},
        {"init_module", call(SYS_init_module, nullptr, 0, "")},
        {"finit_module", call(SYS_finit_module, -1, "", 0)},
        {"delete_module", call(SYS_delete_module, "pinfold_no_such_module", 0)},
        {"perf_event_open of the machine", perf_of_the_machine},
        {"userfaultfd", call(SYS_userfaultfd, O_CLOEXEC)},
        {"userfaultfd of user mode", call(SYS_userfaultfd, O_CLOEXEC | UFFD_USER_MODE_ONLY)},
        {"io_uring_setup", io_uring},
        {"open_by_handle_at", open_by_handle},
        {"fanotify_init", call(SYS_fanotify_init, FAN_CLASS_CONTENT, O_RDONLY)},
        {"keyctl", call(SYS_keyctl, KEYCTL_GET_KEYRING_ID, KEY_SPEC_SESSION_KEYRING, 0)},
        {"keyctl of the user's keys", call(SYS_keyctl, KEYCTL_GET_KEYRING_ID, KEY_SPEC_USER_KEYRING, 1)},
        {"add_key", call(SYS_add_key, "user", "pinfold-escape", "x", 1, KEY_SPEC_PROCESS_KEYRING)},
        {"request_key", call(SYS_request_key, "user", "pinfold-escape", nullptr, 0)},
        {"a key of the host's session", host_key, {ENOKEY}},
        {"reboot", call(SYS_reboot, LINUX_REBOOT_MAGIC1, LINUX_REBOOT_MAGIC2, LINUX_REBOOT_CMD_CAD_OFF, 0)},
        {"swapon", call(SYS_swapon, "/nowhere", 0)},
        {"swapoff", call(SYS_swapoff, "/nowhere")},
        {"acct", call(SYS_acct, "/nowhere")},
        {"quotactl", call(SYS_quotactl, QCMD(Q_QUOTAON, USRQUOTA), "/dev/null", 0, "/"), {ENOTBLK}},
        {"settimeofday", call(SYS_settimeofday, nullptr, nullptr)},
        {"adjtimex", shift_clock},
        {"syslog", call(SYS_syslog, 8 /* the console's level */, nullptr, 0)},
        {"sethostname", call(SYS_sethostname, "escaped", 7)},
        {"setdomainname", call(SYS_setdomainname, "escaped", 7)},
        {"vhangup", call(SYS_vhangup)},
        {"capset", [] { return in_child(all_capabilities); }},
        {"real-time priority", [] { return in_child(real_time); }},
        {"a higher priority", [] { return in_child([] { return ::setpriority(PRIO_PROCESS, 0, -20); }); }},
        {"a higher hard limit", [] { return in_child(raise_limit); }},
#ifdef __x86_64__
        {"iopl", [] { return in_child(call(SYS_iopl, 3)); }},
        {"ioperm", [] { return in_child(call(SYS_ioperm, 0x80, 1, 1)); }},
#endif
        {"calls of long ago, and of nowhere", odd_numbers},
    };
}

}  // namespace probe
