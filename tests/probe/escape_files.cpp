// Ways out: files of the kernel and of the host, and devices. Files are opened for writing and left as they are.
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <system_error>

#include "escape.hpp"
#include "text.hpp"

namespace probe {

namespace {

const std::vector<int> kNotThere = {ENOENT, EROFS, ENXIO, ENODEV, ENOTDIR};

constexpr const char* kWritten[] = {
    "/proc/sys/kernel/core_pattern",
    "/proc/sys/kernel/modprobe",
    "/proc/sys/kernel/hotplug",
    "/proc/sys/kernel/sysrq",
    "/proc/sys/kernel/randomize_va_space",
    "/proc/sys/kernel/ns_last_pid",
    "/proc/sys/vm/panic_on_oom",
    "/proc/sys/vm/drop_caches",
    "/proc/sys/fs/file-max",
    "/proc/sys/fs/protected_symlinks",
    "/proc/sys/fs/binfmt_misc/register",
    "/proc/sys/net/ipv4/ip_forward",
    "/proc/sysrq-trigger",
    "/proc/irq/default_smp_affinity",
    "/proc/mtrr",
    "/proc/fs/nfsd/threads",
    "/proc/scsi/scsi",
    "/sys/kernel/uevent_helper",
    "/sys/kernel/mm/transparent_hugepage/enabled",
    "/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages",
    "/sys/kernel/security/apparmor/.load",
    "/sys/kernel/debug/tracing/tracing_on",
    "/sys/kernel/tracing/tracing_on",
    "/sys/kernel/config",
    "/sys/power/state",
    "/sys/power/disk",
    "/sys/bus/pci/rescan",
    "/sys/devices/system/cpu/cpu0/uevent",
    "/sys/firmware/efi/vars/new_var",
    "/sys/module/kernel/parameters/panic",
    "/sys/fs/bpf/escape",
};

constexpr const char* kRead[] = {
    "/proc/kcore",
    "/proc/kmsg",
    "/proc/kpagecount",
    "/proc/kpageflags",
    "/proc/kpagecgroup",
    "/proc/pagetypeinfo",
    "/proc/slabinfo",
    "/proc/vmallocinfo",
    "/proc/timer_list",
    "/proc/sched_debug",
    "/proc/latency_stats",
    "/proc/vmcore",
    "/sys/firmware/acpi/tables/DSDT",
    "/sys/firmware/dmi/tables/DMI",
    "/sys/kernel/debug/sched/debug",
    "/proc/self/stack",
};

struct Device {
    const char* path;
    mode_t type;
    unsigned major;
    unsigned minor;
};
constexpr Device kDevices[] = {
    {"/dev/mem", S_IFCHR, 1, 1},
    {"/dev/port", S_IFCHR, 1, 4},
    {"/dev/kmsg", S_IFCHR, 1, 11},
    {"/dev/tty0", S_IFCHR, 4, 0},
    {"/dev/ttyS0", S_IFCHR, 4, 64},
    {"/dev/fuse", S_IFCHR, 10, 229},
    {"/dev/net/tun", S_IFCHR, 10, 200},
    {"/dev/kvm", S_IFCHR, 10, 232},
    {"/dev/loop-control", S_IFCHR, 10, 237},
    {"/dev/loop0", S_IFBLK, 7, 0},
    {"/dev/mapper/control", S_IFCHR, 10, 236},
    {"/dev/vhost-net", S_IFCHR, 10, 238},
    {"/dev/vsock", S_IFCHR, 10, 121},
    {"/dev/uinput", S_IFCHR, 10, 223},
    {"/dev/cpu/0/msr", S_IFCHR, 202, 0},
    {"/dev/sda", S_IFBLK, 8, 0},
    {"/dev/vda", S_IFBLK, 254, 0},
};

long open_file(const std::string& path, int flags) {
    const int file = ::open(path.c_str(), flags | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (file >= 0) ::close(file);
    return file;
}

long read_something(const std::string& path) {
    const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (file < 0) return -1;
    std::array<char, 64> text{};
    const ssize_t size = ::read(file, text.data(), text.size());
    ::close(file);
    return size == 0 ? confined() : size;
}

// With the addresses that a payload without rights is not shown.
long kernel_addresses() {
    const std::optional<std::string> symbols = read_file("/proc/kallsyms");
    if (!symbols) return -1;
    return symbols->find("\nffff") != std::string::npos ? 0 : confined();
}

// A node of one's own, wherever it can be made: what counts is whether it opens.
long open_made_node(mode_t type, dev_t device) {
    int error = ENOENT;
    for (const std::string directory : {"/dev", "/dev/shm", "/tmp", "/workspace", "/data", "."}) {
        const std::string node = directory + "/escape-node";
        if (::mknod(node.c_str(), type | 0600, device) != 0) {
            error = errno;
            continue;
        }
        const long result = open_file(node, O_RDONLY);
        error = errno;
        ::unlink(node.c_str());
        if (result >= 0) return result;
    }
    errno = error;
    return -1;
}

// Zero for what is none: the head of a table.
unsigned number(const std::string& word) { return static_cast<unsigned>(std::strtoul(word.c_str(), nullptr, 10)); }

// The first disk of the machine: its numbers are told to everybody.
long machines_disk() {
    for (const std::string& line : words(read_file("/proc/partitions").value_or(""), '\n')) {
        const std::vector<std::string> fields = words(line);
        const unsigned major = fields.size() == 4 ? number(fields[0]) : 0;
        if (major > 0) return open_made_node(S_IFBLK, ::makedev(major, number(fields[1])));
    }
    return kAbsent;
}

// What the groups of the host are ruled by. A group of the payload's own is made for it to be seen, not to be written.
long group_files() {
    std::error_code error;
    std::filesystem::recursive_directory_iterator entry("/sys/fs/cgroup", error), end;
    int refusal = ENOENT;
    for (; !error && entry != end; entry.increment(error)) {
        if (entry.depth() >= 2) entry.disable_recursion_pending();
        if (open_file(entry->path(), O_WRONLY) >= 0) return 0;
        if (errno != EISDIR) refusal = errno;
    }
    errno = refusal;
    return -1;
}

long new_group() {
    const std::string group = "/sys/fs/cgroup/escape";
    const int result = ::mkdir(group.c_str(), 0755);
    if (result == 0) ::rmdir(group.c_str());
    return result;
}

long secret_of_host() {
    const char* path = std::getenv("SECRET");
    return path == nullptr ? kAbsent : read_something(path);
}

}  // namespace

Attempts file_attempts() {
    Attempts out;
    for (const std::string path : kWritten) {
        out.push_back({"write to " + path, [=] { return open_file(path, O_WRONLY); }, kNotThere});
    }
    for (const std::string path : kRead) {
        out.push_back({"read " + path, [=] { return read_something(path); }, {ENOENT, EXDEV, EINVAL, ENODATA}});
    }
    out.push_back({"addresses in /proc/kallsyms", kernel_addresses, {ENOENT, EXDEV}});
    out.push_back({"release_agent and other files of groups", group_files, kNotThere});
    out.push_back({"a new group", new_group, kNotThere});
    out.push_back({"a file of the host", secret_of_host, kNotThere});
    return out;
}

Attempts device_attempts() {
    Attempts out;
    for (const Device& device : kDevices) {
        const dev_t number = ::makedev(device.major, device.minor);
        out.push_back({device.path, [=] { return open_file(device.path, O_RDONLY); }, kNotThere});
        out.push_back({std::string("mknod of ") + device.path,
                       [=] { return open_made_node(device.type, number); },
                       {ENOENT, EROFS, ENXIO, ENODEV}});
    }
    out.push_back({"mknod of the machine's disk", machines_disk, {ENOENT, EROFS}});
    return out;
}

}  // namespace probe
