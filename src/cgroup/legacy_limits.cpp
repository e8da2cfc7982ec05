// linux.resources as writes to the control files of cgroup v1, whose units are the specification's own.
#include "cgroup/legacy_limits.hpp"

#include <algorithm>

#include "base/strings.hpp"
#include "cgroup/control_files.hpp"

namespace pinfold {

namespace {

// A number and the file that takes it as it is. 0 is "not set", and all that is negative is "unlimited".
struct PlainLimit {
    std::optional<int64_t> value;
    const char* file;
    const char* property;
};

std::optional<int64_t> as_signed(std::optional<uint64_t> value) {
    if (!value) return std::nullopt;
    return static_cast<int64_t>(std::min<uint64_t>(*value, INT64_MAX));
}

class WriteList {
public:
    void add(CgroupWrite write) { writes_.push_back(std::move(write)); }
    void add(std::string_view property, std::string file, std::string value) {
        add_twins(property, {std::move(file), std::move(value), {}});
    }
    void add_twins(std::string_view property, CgroupWrite write) {
        write.property = concat("linux.resources.", property);
        add(std::move(write));
    }
    void add_plain(std::initializer_list<PlainLimit> limits) {
        for (const PlainLimit& limit : limits) {
            if (limit.value.value_or(0) == 0) continue;
            add(limit.property, limit.file, std::to_string(std::max<int64_t>(*limit.value, -1)));
        }
    }
    std::vector<CgroupWrite> take() { return std::move(writes_); }

private:
    std::vector<CgroupWrite> writes_;
};

Result<void> add_memory(const MemoryLimits& memory, WriteList& writes) {
    TRY(check_swap(memory));
    // How the limits below count: it cannot change once there are groups below.
    if (memory.use_hierarchy.value_or(false)) writes.add("memory.useHierarchy", "memory.use_hierarchy", "1");
    writes.add_plain({{memory.limit, "memory.limit_in_bytes", "memory.limit"},
                      {memory.swap, "memory.memsw.limit_in_bytes", "memory.swap"},
                      {memory.reservation, "memory.soft_limit_in_bytes", "memory.reservation"},
                      {memory.kernel, "memory.kmem.limit_in_bytes", "memory.kernel"},
                      {memory.kernel_tcp, "memory.kmem.tcp.limit_in_bytes", "memory.kernelTCP"}});
    if (memory.swappiness) writes.add("memory.swappiness", "memory.swappiness", std::to_string(*memory.swappiness));
    if (memory.disable_oom_killer.value_or(false)) writes.add("memory.disableOOMKiller", "memory.oom_control", "1");
    return {};
}

void add_cpu(const CpuLimits& cpu, WriteList& writes) {
    writes.add_plain({{as_signed(cpu.shares), "cpu.shares", "cpu.shares"},
                      {as_signed(cpu.period), "cpu.cfs_period_us", "cpu.period"},
                      {cpu.quota, "cpu.cfs_quota_us", "cpu.quota"},
                      {as_signed(cpu.burst), "cpu.cfs_burst_us", "cpu.burst"},
                      {as_signed(cpu.realtime_period), "cpu.rt_period_us", "cpu.realtimePeriod"},
                      {cpu.realtime_runtime, "cpu.rt_runtime_us", "cpu.realtimeRuntime"},
                      {cpu.idle, "cpu.idle", "cpu.idle"}});
    if (!cpu.cpus.empty()) writes.add("cpu.cpus", "cpuset.cpus", cpu.cpus);
    if (!cpu.mems.empty()) writes.add("cpu.mems", "cpuset.mems", cpu.mems);
}

// The plain files went with the scheduler CFQ, in Linux 5.0; those of BFQ came before. A kernel may have both.
void add_weight(const std::string& property, std::string_view suffix, const std::string& value, WriteList& writes) {
    writes.add_twins(property, {concat("blkio.weight", suffix), value, {}, concat("blkio.bfq.weight", suffix), value});
}

void add_device_weight(const BlockIoDeviceWeight& device, const std::string& property, WriteList& writes) {
    const std::string numbers = concat(device.major, ':', device.minor, ' ');
    if (device.weight.value_or(0) != 0) add_weight(property, "_device", concat(numbers, *device.weight), writes);
    if (device.leaf_weight.value_or(0) != 0) {
        writes.add(property, "blkio.leaf_weight_device", concat(numbers, *device.leaf_weight));
    }
}

void add_throttles(const std::vector<BlockIoThrottle>& throttles, std::string_view name, std::string_view file,
                   WriteList& writes) {
    for (size_t i = 0; i < throttles.size(); ++i) {
        const BlockIoThrottle& device = throttles[i];
        writes.add(concat("blockIO.", name, '[', i, ']'), concat("blkio.throttle.", file),
                   concat(device.major, ':', device.minor, ' ', device.rate));
    }
}

void add_block_io(const BlockIoLimits& io, WriteList& writes) {
    if (io.weight.value_or(0) != 0) add_weight("blockIO.weight", "", std::to_string(*io.weight), writes);
    writes.add_plain({{io.leaf_weight, "blkio.leaf_weight", "blockIO.leafWeight"}});
    for (size_t i = 0; i < io.weight_device.size(); ++i) {
        add_device_weight(io.weight_device[i], concat("blockIO.weightDevice[", i, ']'), writes);
    }
    add_throttles(io.throttle_read_bps_device, "throttleReadBpsDevice", "read_bps_device", writes);
    add_throttles(io.throttle_write_bps_device, "throttleWriteBpsDevice", "write_bps_device", writes);
    add_throttles(io.throttle_read_iops_device, "throttleReadIOPSDevice", "read_iops_device", writes);
    add_throttles(io.throttle_write_iops_device, "throttleWriteIOPSDevice", "write_iops_device", writes);
}

void add_hugepages(const std::vector<HugepageLimit>& limits, WriteList& writes) {
    for (size_t i = 0; i < limits.size(); ++i) {
        const std::string limit = std::to_string(limits[i].limit);
        const std::string file = concat("hugetlb.", limits[i].page_size);
        writes.add_twins(concat("hugepageLimits[", i, ']'),
                         {file + ".limit_in_bytes", limit, {}, file + ".rsvd.limit_in_bytes", limit});
    }
}

void add_network(const NetworkLimits& network, WriteList& writes) {
    writes.add_plain({{network.class_id, "net_cls.classid", "network.classID"}});
    for (size_t i = 0; i < network.priorities.size(); ++i) {
        writes.add(concat("network.priorities[", i, ']'), "net_prio.ifpriomap",
                   concat(network.priorities[i].name, ' ', network.priorities[i].priority));
    }
}

// What both versions of cgroups have in the same words.
Result<void> add_common(const Resources& resources, WriteList& writes) {
    Resources common;
    common.pids_limit = resources.pids_limit;
    common.rdma = resources.rdma;
    for (CgroupWrite& write : TRY(cgroup_writes(common))) writes.add(std::move(write));
    return {};
}

}  // namespace

DividedResources divide_resources(const Resources& resources, const CgroupHost& host) {
    DividedResources divided;
    const auto side = [&](std::string_view unified, const char* legacy) -> Resources& {
        const bool is_legacy = host.mount.empty()
                                   ? !host.legacy.empty()
                                   : host.legacy.contains(legacy) && !has_word(host.controllers, unified);
        return is_legacy ? divided.legacy : divided.unified;
    };
    side("memory", "memory").memory = resources.memory;
    side("pids", "pids").pids_limit = resources.pids_limit;
    side("io", "blkio").block_io = resources.block_io;
    side("hugetlb", "hugetlb").hugepage_limits = resources.hugepage_limits;
    side("rdma", "rdma").rdma = resources.rdma;
    side("net_cls", "net_cls").network.class_id = resources.network.class_id;
    side("net_prio", "net_prio").network.priorities = resources.network.priorities;
    CpuLimits time = resources.cpu;
    time.cpus.clear();
    time.mems.clear();
    side("cpu", "cpu").cpu = time;
    Resources& cpuset = side("cpuset", "cpuset");
    cpuset.cpu.cpus = resources.cpu.cpus;
    cpuset.cpu.mems = resources.cpu.mems;
    Resources& others = host.mount.empty() && !host.legacy.empty() ? divided.legacy : divided.unified;
    others.devices = resources.devices;
    others.unified = resources.unified;
    return divided;
}

Result<std::vector<CgroupWrite>> legacy_writes(const Resources& resources) {
    if (!resources.unified.empty()) {
        return plain_error(concat("linux.resources.unified.", resources.unified.begin()->first,
                                  ": needs cgroup v2, and this host mounts only v1"))
            .with_hint(
                "say it in the specification's own properties, or boot with "
                "systemd.unified_cgroup_hierarchy=1");
    }
    WriteList writes;
    TRY(add_memory(resources.memory, writes));
    add_cpu(resources.cpu, writes);
    add_block_io(resources.block_io, writes);
    add_hugepages(resources.hugepage_limits, writes);
    add_network(resources.network, writes);
    TRY(add_common(resources, writes));
    return writes.take();
}

bool is_legacy_default(const CgroupWrite& write) {
    static constexpr std::pair<std::string_view, std::string_view> kDefaults[] = {
        {"memory.limit_in_bytes", "-1"},
        {"memory.memsw.limit_in_bytes", "-1"},
        {"memory.soft_limit_in_bytes", "-1"},
        {"memory.kmem.limit_in_bytes", "-1"},
        {"cpu.cfs_quota_us", "-1"},
        {"memory.kmem.tcp.limit_in_bytes", "-1"},
        {"cpu.cfs_period_us", "100000"},
        {"cpu.cfs_burst_us", "0"},
        {"cpu.idle", "0"},
        {"pids.max", "max"},
    };
    return std::ranges::find(kDefaults, std::pair<std::string_view, std::string_view>(write.file, write.value)) !=
           std::end(kDefaults);
}

bool is_legacy_unlimited(std::string_view text) {
    constexpr int64_t kLargestPage = 1 << 16;
    const int64_t number = parse_number<int64_t>(text.substr(0, text.find('\n'))).value_or(0);
    return number < 0 || number > INT64_MAX - kLargestPage;
}

Result<void> check_legacy_controllers(const std::vector<CgroupWrite>& writes, const StringMap& legacy) {
    std::vector<CgroupWrite> missing;
    std::ranges::copy_if(writes, std::back_inserter(missing), [&](const CgroupWrite& write) {
        return !legacy.contains(std::string(controller_of(write.file)));
    });
    if (missing.empty()) return {};
    const std::vector<std::string> names = controllers_of(missing);
    return plain_error(concat(properties_of(missing), ": no cgroup v1 hierarchy with '", join(names, "', '"),
                              "' is mounted below /sys/fs/cgroup"))
        .with_hint(concat("mount it: mount -t cgroup -o ", names[0], " cgroup /sys/fs/cgroup/", names[0],
                          "; or drop the limit"));
}

}  // namespace pinfold
