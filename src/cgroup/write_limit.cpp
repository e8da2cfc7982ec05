// Setting one limit of a group: the files that a kernel may lack, and the kernel's refusals in words.
#include "cgroup/write_limit.hpp"

#include <unistd.h>

#include <cerrno>

#include "base/fs.hpp"
#include "base/strings.hpp"

namespace pinfold {

namespace {

struct Remedy {
    std::string_view file;  // its beginning
    int code;
    const char* hint;
};

// The first that matches.
constexpr Remedy kRemedies[] = {
    {"io.max", ENODEV, "the numbers must be those of a whole disk of this host, as in /sys/block/*/dev"},
    {"io.weight", ENODEV, "the numbers must be those of a whole disk of this host, as in /sys/block/*/dev"},
    {"io.weight", EOPNOTSUPP, "let the device's scheduler be bfq, or enable io.cost.qos for it"},
    {"io.weight", ENOENT, "load the kernel's module bfq"},
    {"hugetlb.", ENOENT, "/sys/kernel/mm/hugepages lists the sizes that this host has"},
    {"rdma.", ENODEV, "/sys/class/infiniband lists the devices that this host has"},
    {"memory.swap.", ENOENT, "this kernel does not count swap: boot with swapaccount=1, or drop the limit"},
    {"cpuset.cpus", EINVAL, "/sys/devices/system/cpu/online lists the processors of this host"},
    {"cpuset.cpus", ERANGE, "/sys/devices/system/cpu/online lists the processors of this host"},
    {"cpuset.mems", EINVAL, "/sys/devices/system/node/online lists the memory nodes of this host"},
    {"cpuset.mems", ERANGE, "/sys/devices/system/node/online lists the memory nodes of this host"},
    {"cpu.max", EINVAL, "a quota is at least 1000, a period 1000 to 1000000, a burst at most the quota"},
    {"blkio.leaf_weight", ENOENT, "leaf weights went with the scheduler CFQ in Linux 5.0: use blockIO.weight"},
    {"blkio.weight", ENOENT, "load the kernel's module bfq"},
    {"blkio.", ENODEV, "the numbers must be those of a whole disk of this host, as in /sys/block/*/dev"},
    {"blkio.weight_device", EOPNOTSUPP, "let the device's scheduler be bfq"},
    {"memory.kmem.limit", EOPNOTSUPP, "leave it out: memory.limit counts the kernel's memory as well"},
    {"memory.memsw.", ENOENT, "this kernel does not count swap: boot with swapaccount=1, or drop the limit"},
    {"memory.swappiness", EINVAL, "cgroup v1 takes 0 to 100"},
    {"cpuset.", EACCES, "the group above has no more than its own cpuset.cpus and cpuset.mems list"},
    {"cpu.cfs_", EINVAL, "a quota is at least 1000, a period 1000 to 1000000, a burst at most the quota"},
    {"cpu.rt_", EINVAL, "the group above must have as much: give it cpu.rt_runtime_us, or set linux.cgroupsPath"},
    {"net_prio.", ENODEV, "the interface must be one of this host, as in /sys/class/net"},
    {"net_prio.", EINVAL, "the interface must be one of this host, as in /sys/class/net"},
    {"cgroup.", ENOENT, "this kernel has no such file"},
    {"", ENOENT, "this kernel's controller has no such file"},
};

Error explain(Error error, const CgroupWrite& write) {
    for (const Remedy& remedy : kRemedies) {
        if (error.code != remedy.code || !write.file.starts_with(remedy.file)) continue;
        error.hint = remedy.hint;
        break;
    }
    return std::move(error).within(write.property);
}

// The kernel has no such file, or nothing here that obeys it.
bool is_of_no_use(const Result<void>& written) {
    return !written && (written.error().code == ENOENT || written.error().code == EOPNOTSUPP);
}

}  // namespace

bool is_met_without_swap(const CgroupWrite& write) {
    return write.file == "memory.swap.max" && write.value == "0" && ::access("/proc/swaps", F_OK) != 0;
}

Result<void> write_limit(int group, const CgroupWrite& write) {
    Result<void> written = write_file_at(group, write.file, write.value);
    if (!write.twin_file.empty() && (written || is_of_no_use(written))) {
        const Result<void> twin = write_file_at(group, write.twin_file, write.twin_value);
        if (twin) return {};
        if (!is_of_no_use(twin)) return explain(twin.error(), write);
    }
    if (written || (written.error().code == ENOENT && is_met_without_swap(write))) return {};
    return explain(std::move(written).error(), write);
}

}  // namespace pinfold
