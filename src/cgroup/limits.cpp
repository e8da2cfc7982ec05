// linux.resources as writes to the control files of a cgroup v2 group.
// The specification speaks of v1's units; what differs is converted here.
#include "cgroup/limits.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/strings.hpp"

namespace pinfold {

namespace {

constexpr uint64_t kDefaultPeriod = 100'000;

class WriteList {
public:
    void add(std::string_view property, std::string file, std::string value) {
        writes_.push_back({std::move(file), std::move(value), concat("linux.resources.", property)});
    }
    std::vector<CgroupWrite> take() { return std::move(writes_); }

private:
    std::vector<CgroupWrite> writes_;
};

// Negative means unlimited everywhere in the specification.
std::string amount(int64_t value) { return value < 0 ? "max" : std::to_string(value); }

// The specification's swap is memory and swap together, the kernel's is swap alone.
Result<void> add_swap(const MemoryLimits& memory, WriteList& writes) {
    const int64_t limit = memory.limit.value_or(0);
    const int64_t swap = memory.swap.value_or(0);
    if (swap == 0) return {};
    if (swap > 0 && limit <= 0) {
        return plain_error(
            "linux.resources.memory.swap: counts memory and swap together, so it needs "
            "linux.resources.memory.limit as well");
    }
    if (swap > 0 && swap < limit) {
        return plain_error(concat("linux.resources.memory.swap: ", swap, " is less than linux.resources.memory.limit ",
                                  limit, ", but counts memory and swap together"));
    }
    writes.add("memory.swap", "memory.swap.max", swap < 0 ? "max" : amount(swap - limit));
    return {};
}

Result<void> add_memory(const MemoryLimits& memory, WriteList& writes) {
    if (memory.limit.value_or(0) != 0) writes.add("memory.limit", "memory.max", amount(*memory.limit));
    if (memory.reservation.value_or(0) != 0) {
        writes.add("memory.reservation", "memory.low", amount(*memory.reservation));
    }
    return add_swap(memory, writes);
}

// v1's 2..262144 with 1024 as the middle, to v2's 1..10000 with 100 as the middle.
uint64_t cpu_weight(uint64_t shares) {
    const double l = std::log2(double(std::clamp<uint64_t>(shares, 2, 262'144)));
    return uint64_t(std::ceil(std::pow(10.0, (l * l + 125 * l) / 612 - 7.0 / 34)));
}

std::string cpu_max(const CpuLimits& cpu) {
    const std::string quota = cpu.quota.value_or(0) > 0 ? std::to_string(*cpu.quota) : "max";
    const uint64_t period = cpu.period.value_or(0) != 0 ? *cpu.period : kDefaultPeriod;
    return concat(quota, ' ', period);
}

void add_cpu(const CpuLimits& cpu, WriteList& writes) {
    if (cpu.shares.value_or(0) != 0) writes.add("cpu.shares", "cpu.weight", std::to_string(cpu_weight(*cpu.shares)));
    if (cpu.quota.value_or(0) != 0) writes.add("cpu.quota", "cpu.max", cpu_max(cpu));
    else if (cpu.period.value_or(0) != 0) writes.add("cpu.period", "cpu.max", cpu_max(cpu));
    // The kernel compares the burst with the quota, and refuses a weight for an idle group: both come after.
    if (cpu.burst.value_or(0) != 0) writes.add("cpu.burst", "cpu.max.burst", std::to_string(*cpu.burst));
    if (cpu.idle.value_or(0) != 0) writes.add("cpu.idle", "cpu.idle", std::to_string(*cpu.idle));
    if (!cpu.cpus.empty()) writes.add("cpu.cpus", "cpuset.cpus", cpu.cpus);
    if (!cpu.mems.empty()) writes.add("cpu.mems", "cpuset.mems", cpu.mems);
}

// v1's 10..1000 to v2's 1..10000, linearly.
uint64_t io_weight(uint16_t weight) { return 1 + (std::clamp<uint64_t>(weight, 10, 1000) - 10) * 9999 / 990; }

void add_throttles(const std::vector<BlockIoThrottle>& throttles, std::string_view name, std::string_view key,
                   WriteList& writes) {
    for (const BlockIoThrottle& throttle : throttles) {
        const std::string rate = throttle.rate == 0 ? "max" : std::to_string(throttle.rate);
        writes.add(concat("blockIO.", name), "io.max",
                   concat(throttle.major, ':', throttle.minor, ' ', key, '=', rate));
    }
}

void add_block_io(const BlockIoLimits& io, WriteList& writes) {
    if (io.weight.value_or(0) != 0) {
        writes.add("blockIO.weight", "io.weight", concat("default ", io_weight(*io.weight)));
    }
    for (const BlockIoDeviceWeight& device : io.weight_device) {
        if (device.weight.value_or(0) == 0) continue;
        writes.add("blockIO.weightDevice", "io.weight",
                   concat(device.major, ':', device.minor, ' ', io_weight(*device.weight)));
    }
    add_throttles(io.throttle_read_bps_device, "throttleReadBpsDevice", "rbps", writes);
    add_throttles(io.throttle_write_bps_device, "throttleWriteBpsDevice", "wbps", writes);
    add_throttles(io.throttle_read_iops_device, "throttleReadIOPSDevice", "riops", writes);
    add_throttles(io.throttle_write_iops_device, "throttleWriteIOPSDevice", "wiops", writes);
}

Result<void> add_hugepages(const std::vector<HugepageLimit>& limits, WriteList& writes) {
    for (const HugepageLimit& limit : limits) {
        if (limit.page_size.empty() || limit.page_size.find('/') != std::string::npos) {
            return plain_error(concat("linux.resources.hugepageLimits: ", quoted(limit.page_size), " is no page size"));
        }
        writes.add("hugepageLimits", concat("hugetlb.", limit.page_size, ".max"), std::to_string(limit.limit));
    }
    return {};
}

void add_rdma(const std::map<std::string, RdmaLimit>& devices, WriteList& writes) {
    for (const auto& [device, limit] : devices) {
        std::string value = device;
        if (limit.hca_handles) value += concat(" hca_handle=", *limit.hca_handles);
        if (limit.hca_objects) value += concat(" hca_object=", *limit.hca_objects);
        writes.add("rdma", "rdma.max", value);
    }
}

// Last, so that what is said in the kernel's own words has the last word.
Result<void> add_unified(const StringMap& unified, WriteList& writes) {
    for (const auto& [file, value] : unified) {
        if (file.find('/') != std::string::npos || file.find('.') == std::string::npos) {
            return plain_error(concat("linux.resources.unified: ", quoted(file), " is no control file's name"));
        }
        writes.add(concat("unified.", file), file, value);
    }
    return {};
}

// Properties of v1 that nothing in v2 enforces. Leaving one out silently would be a limit that is not there.
Result<void> refuse_v1_only(const Resources& r) {
    const std::pair<bool, const char*> table[] = {
        {r.memory.kernel.value_or(0) > 0, "memory.kernel"},
        {r.memory.kernel_tcp.value_or(0) > 0, "memory.kernelTCP"},
        {r.memory.swappiness.has_value(), "memory.swappiness"},
        {r.memory.disable_oom_killer.value_or(false), "memory.disableOOMKiller"},
        {r.cpu.realtime_runtime.value_or(0) > 0, "cpu.realtimeRuntime"},
        {r.cpu.realtime_period.value_or(0) > 0, "cpu.realtimePeriod"},
        {r.block_io.leaf_weight.value_or(0) != 0, "blockIO.leafWeight"},
        {r.network.class_id.value_or(0) != 0, "network.classID"},
        {!r.network.priorities.empty(), "network.priorities"},
    };
    std::vector<std::string> refused;
    for (const auto& [asked, name] : table) {
        if (asked) refused.push_back(concat("linux.resources.", name));
    }
    if (refused.empty()) return {};
    return plain_error(concat(join(refused, ", "), ": cgroup v2 has no such setting"));
}

}  // namespace

Result<std::vector<CgroupWrite>> cgroup_writes(const Resources& resources) {
    WriteList writes;
    TRY(refuse_v1_only(resources));
    TRY(add_memory(resources.memory, writes));
    add_cpu(resources.cpu, writes);
    if (const auto pids = resources.pids_limit) {
        // The container's first process is there in any case, so 0 and 1 forbid the same.
        writes.add("pids.limit", "pids.max", amount(*pids == 0 ? 1 : *pids));
    }
    add_block_io(resources.block_io, writes);
    TRY(add_hugepages(resources.hugepage_limits, writes));
    add_rdma(resources.rdma, writes);
    TRY(add_unified(resources.unified, writes));
    return writes.take();
}

bool is_kernel_default(const CgroupWrite& write) {
    static const std::pair<std::string_view, std::string> kDefaults[] = {
        {"memory.max", "max"}, {"memory.swap.max", "max"}, {"pids.max", "max"},
        {"cpu.idle", "0"},     {"cpu.max.burst", "0"},     {"cpu.max", concat("max ", kDefaultPeriod)},
    };
    return std::ranges::find(kDefaults, std::pair(std::string_view(write.file), write.value)) != std::end(kDefaults);
}

std::string_view controller_of(std::string_view file) {
    const std::string_view controller = file.substr(0, file.find('.'));
    return controller == "cgroup" ? std::string_view() : controller;
}

std::vector<std::string> controllers_of(const std::vector<CgroupWrite>& writes) {
    std::vector<std::string> controllers;
    for (const CgroupWrite& write : writes) {
        const std::string_view controller = controller_of(write.file);
        const bool known = std::ranges::find(controllers, controller) != controllers.end();
        if (!controller.empty() && !known) controllers.emplace_back(controller);
    }
    return controllers;
}

std::string properties_of(const std::vector<CgroupWrite>& writes) {
    std::vector<std::string> names;
    for (const CgroupWrite& write : writes) {
        if (names.empty() || names.back() != write.property) names.push_back(write.property);
    }
    return join(names, ", ");
}

}  // namespace pinfold
