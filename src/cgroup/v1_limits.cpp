// linux.resources as writes to the control files of cgroup v1, whose units are the specification's own.
#include "cgroup/v1_limits.hpp"

#include <algorithm>

#include "base/strings.hpp"
#include "cgroup/control_files.hpp"
#include "cgroup/device_program.hpp"

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

void add_plain(std::initializer_list<PlainLimit> limits, WriteList& writes) {
    for (const PlainLimit& limit : limits) {
        if (limit.value.value_or(0) == 0) continue;
        writes.add(limit.property, limit.file, std::to_string(std::max<int64_t>(*limit.value, -1)));
    }
}

Result<void> add_memory(const MemoryLimits& memory, WriteList& writes) {
    TRY(check_swap(memory));
    // How the limits below count: it cannot change once there are groups below.
    if (memory.use_hierarchy.value_or(false)) writes.add("memory.useHierarchy", "memory.use_hierarchy", "1");
    add_plain({{memory.limit, "memory.limit_in_bytes", "memory.limit"},
               {memory.swap, "memory.memsw.limit_in_bytes", "memory.swap"},
               {memory.reservation, "memory.soft_limit_in_bytes", "memory.reservation"},
               {memory.kernel, "memory.kmem.limit_in_bytes", "memory.kernel"},
               {memory.kernel_tcp, "memory.kmem.tcp.limit_in_bytes", "memory.kernelTCP"}},
              writes);
    if (memory.swappiness) writes.add("memory.swappiness", "memory.swappiness", std::to_string(*memory.swappiness));
    if (memory.disable_oom_killer.value_or(false)) writes.add("memory.disableOOMKiller", "memory.oom_control", "1");
    return {};
}

void add_cpu(const CpuLimits& cpu, WriteList& writes) {
    add_plain({{as_signed(cpu.shares), "cpu.shares", "cpu.shares"},
               {as_signed(cpu.period), "cpu.cfs_period_us", "cpu.period"},
               {cpu.quota, "cpu.cfs_quota_us", "cpu.quota"},
               {as_signed(cpu.burst), "cpu.cfs_burst_us", "cpu.burst"},
               {as_signed(cpu.realtime_period), "cpu.rt_period_us", "cpu.realtimePeriod"},
               {cpu.realtime_runtime, "cpu.rt_runtime_us", "cpu.realtimeRuntime"},
               {cpu.idle, "cpu.idle", "cpu.idle"}},
              writes);
    if (!cpu.cpus.empty()) writes.add("cpu.cpus", "cpuset.cpus", cpu.cpus);
    if (!cpu.mems.empty()) writes.add("cpu.mems", "cpuset.mems", cpu.mems);
}

// The plain files went with the scheduler CFQ, in Linux 5.0; those of BFQ came before. A kernel may have both.
void add_weight(const std::string& property, std::string_view suffix, const std::string& value, WriteList& writes) {
    writes.add(property, {concat("blkio.weight", suffix), value, {}, concat("blkio.bfq.weight", suffix), value});
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
    add_plain({{io.leaf_weight, "blkio.leaf_weight", "blockIO.leafWeight"}}, writes);
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
        writes.add(concat("hugepageLimits[", i, ']'),
                   {file + ".limit_in_bytes", limit, {}, file + ".rsvd.limit_in_bytes", limit});
    }
}

void add_network(const NetworkLimits& network, WriteList& writes) {
    add_plain({{network.class_id, "net_cls.classid", "network.classID"}}, writes);
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
    for (CgroupWrite& write : TRY(v2_writes(common))) writes.add(std::move(write));
    return {};
}

// A group of cgroup v1 has one verdict for all devices, and a list of exceptions from it in which all entries count
// alike. So the rules, of which a later one outdoes those before it, are first brought into that form.
constexpr int64_t kAny = -1;

// Access is of read and write alone: making a node is always allowed, since using it is what counts.
struct Entry {
    char type = 'c';
    int64_t major = kAny;
    int64_t minor = kAny;
    std::string access = "rw";

    bool covers(const Entry& other) const {
        return type == other.type && (major == kAny || major == other.major) && (minor == kAny || minor == other.minor);
    }
    bool overlaps(const Entry& other) const {
        const auto meet = [](int64_t a, int64_t b) { return a == kAny || b == kAny || a == b; };
        return type == other.type && meet(major, other.major) && meet(minor, other.minor) &&
               access.find_first_of(other.access) != std::string::npos;
    }
    std::string text() const {
        const auto number = [](int64_t value) { return value == kAny ? std::string("*") : std::to_string(value); };
        return concat(type, ' ', number(major), ':', number(minor), ' ', access);
    }
};

class Verdicts {
public:
    Result<void> decide(bool allow, const Entry& entry) {
        if (allow != otherwise_) {
            add(entry);
            return {};
        }
        for (Entry& exception : exceptions_) {
            if (!entry.overlaps(exception)) continue;
            if (!entry.covers(exception)) {
                return plain_error(concat("linux.resources.devices: cgroup v1 cannot ", allow ? "allow" : "deny", " '",
                                          entry.text(), "' and ", allow ? "deny" : "allow", " the rest of '",
                                          exception.text(), "'"))
                    .with_hint("name the devices one by one");
            }
            std::erase_if(exception.access, [&](char c) { return entry.access.find(c) != std::string::npos; });
        }
        std::erase_if(exceptions_, [](const Entry& exception) { return exception.access.empty(); });
        return {};
    }
    void decide_all(bool allow) {
        otherwise_ = allow;
        exceptions_.clear();
    }

    // The kernel forgets a group's exceptions when it is told "a".
    std::vector<CgroupWrite> writes() const {
        const char* all = otherwise_ ? "devices.allow" : "devices.deny";
        const char* some = otherwise_ ? "devices.deny" : "devices.allow";
        std::vector<CgroupWrite> writes = {write(all, "a")};
        for (const Entry& entry : exceptions_) writes.push_back(write(some, entry.text()));
        if (otherwise_) return writes;
        for (const char* node : {"c *:* m", "b *:* m"}) writes.push_back(write(some, node));
        return writes;
    }

private:
    // Engines list the standard devices as well.
    void add(const Entry& entry) {
        const bool known = std::ranges::any_of(exceptions_, [&](const Entry& other) {
            return other.covers(entry) && entry.access.find_first_not_of(other.access) == std::string::npos;
        });
        if (!known) exceptions_.push_back(entry);
    }

    static CgroupWrite write(const char* file, std::string value) {
        return {file, std::move(value), "linux.resources.devices"};
    }

    bool otherwise_ = false;
    std::vector<Entry> exceptions_;
};

std::string access_of(const DeviceRule& rule) {
    std::string access;
    for (const char c : {'r', 'w'}) {
        if (rule.access.empty() || rule.access.find(c) != std::string::npos) access += c;
    }
    return access;
}

// Engines write -1 for "any".
Result<void> decide(const DeviceRule& rule, Verdicts& verdicts) {
    Entry entry{rule.type, std::max(rule.major.value_or(kAny), kAny), std::max(rule.minor.value_or(kAny), kAny),
                access_of(rule)};
    if (entry.access.empty()) return {};
    const bool any_type = rule.type != 'b' && rule.type != 'c';
    const bool any_access = entry.access.size() == 2;
    if (any_type && any_access && entry.major == kAny && entry.minor == kAny) {
        verdicts.decide_all(rule.allow);
        return {};
    }
    for (const char type : {'c', 'b'}) {
        entry.type = type;
        if (any_type || rule.type == type) TRY(verdicts.decide(rule.allow, entry));
    }
    return {};
}

}  // namespace

DividedResources divide_resources(const Resources& resources, const CgroupHost& host) {
    DividedResources divided;
    const auto side = [&](std::string_view v2, const char* v1) -> Resources& {
        const bool is_v1 =
            host.mount.empty() ? !host.v1.empty() : host.v1.contains(v1) && !has_word(host.controllers, v2);
        return is_v1 ? divided.v1 : divided.v2;
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
    Resources& others = host.mount.empty() && !host.v1.empty() ? divided.v1 : divided.v2;
    others.devices = resources.devices;
    others.unified = resources.unified;
    return divided;
}

Result<std::vector<CgroupWrite>> v1_writes(const Resources& resources) {
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

bool is_v1_default(const CgroupWrite& write) {
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

bool is_v1_unlimited(std::string_view text) {
    constexpr int64_t kLargestPage = 1 << 16;
    const int64_t number = parse_number<int64_t>(text.substr(0, text.find('\n'))).value_or(0);
    return number < 0 || number > INT64_MAX - kLargestPage;
}

Result<void> check_v1_controllers(const std::vector<CgroupWrite>& writes, const StringMap& mounts) {
    std::vector<CgroupWrite> missing;
    std::ranges::copy_if(writes, std::back_inserter(missing), [&](const CgroupWrite& write) {
        return !mounts.contains(std::string(controller_of(write.file)));
    });
    if (missing.empty()) return {};
    const std::vector<std::string> names = controllers_of(missing);
    return plain_error(concat(properties_of(missing), ": no cgroup v1 hierarchy with '", join(names, "', '"),
                              "' is mounted below /sys/fs/cgroup"))
        .with_hint(concat("mount it: mount -t cgroup -o ", names[0], " cgroup /sys/fs/cgroup/", names[0],
                          "; or drop the limit"));
}

Result<std::vector<CgroupWrite>> v1_device_writes(std::span<const DeviceRule> rules) {
    Verdicts verdicts;
    for (const DeviceRule& rule : rules) TRY(decide(rule, verdicts));
    for (const StandardDevice& device : kStandardDevices) {
        TRY(verdicts.decide(true, {'c', device.major, device.minor}));
    }
    return verdicts.writes();
}

}  // namespace pinfold
