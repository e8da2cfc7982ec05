// What a container asks of cgroups, decided before anything is touched.
#include "cgroup/plan.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include "base/strings.hpp"
#include "cgroup/control_files.hpp"
#include "cgroup/device_program.hpp"
#include "cgroup/systemd.hpp"
#include "cgroup/v1_limits.hpp"

namespace pinfold {

namespace {

// Why no group can be made here, and what would help.
struct Obstacle {
    std::string why;
    std::string hint;
};

std::optional<Obstacle> find_systemd_obstacle(const CgroupHost& host) {
    std::string why;
    if (!has_scope_program())
        why = "the systemd cgroup manager is not supported by this build, which has no libsystemd";
    else if (!host.systemd.running)
        why = host.systemd.user ? "no systemd runs for this user" : "systemd does not run here";
    else if (host.mount.empty()) why = "cgroup v2 is not mounted, and the systemd cgroup manager needs it";
    else return std::nullopt;
    return Obstacle{std::move(why),
                    "use --cgroup-manager cgroupfs: for Docker, --exec-opt native.cgroupdriver=cgroupfs"};
}

std::optional<Obstacle> find_obstacle(const CgroupHost& host, CgroupManager manager, const std::string& path) {
    if (manager == CgroupManager::disabled) {
        return Obstacle{"--cgroup-manager disabled was asked for", "drop these limits, or use another cgroup manager"};
    }
    if (manager == CgroupManager::systemd) return find_systemd_obstacle(host);
    if (!host.mounts_any()) {
        return Obstacle{
            "neither cgroup v2 nor any controller of v1 is mounted at /sys/fs/cgroup",
            "boot with systemd.unified_cgroup_hierarchy=1, or mount cgroup2 there, or leave these limits out"};
    }
    if (!host.writable) {
        return Obstacle{
            concat(host.mount.empty() ? "/sys/fs/cgroup" : host.mount, " is not writable by this user"),
            "run as root, or in a unit with Delegate=yes (systemd-run --user --scope -p Delegate=yes ...), or leave "
            "these limits out of the config"};
    }
    if (!path.starts_with(host.home + "/")) {
        return Obstacle{concat("linux.cgroupsPath ", quoted(path), " is not below ", host.home,
                               ", which is all that this user may write to"),
                        "leave it out, or use a relative one"};
    }
    return std::nullopt;
}

// A plan without a group, where that leaves nothing unenforced.
Result<CgroupPlan> plan_without_group(const std::vector<CgroupWrite>& writes, const Obstacle& obstacle, bool harmless) {
    if (!writes.empty()) {
        return plain_error(concat(properties_of(writes), ": needs cgroups, but ", obstacle.why))
            .with_hint(obstacle.hint);
    }
    if (harmless) return CgroupPlan{};
    return plain_error(concat("linux.resources.devices: access to devices needs a cgroup, but ", obstacle.why))
        .with_hint(obstacle.hint);
}

// What cgroup v1 is to enforce.
Result<void> plan_v1_writes(const Resources& resources, const StringMap& mounts, CgroupPlan& plan) {
    plan.v1_writes = TRY(v1_writes(resources));
    std::erase_if(plan.v1_writes, is_v1_default);
    TRY(check_v1_controllers(plan.v1_writes, mounts));
    return {};
}

// Devices are filtered by a program on the group in cgroup v2, and only without one by cgroup v1.
Result<void> plan_device_access(const std::vector<DeviceRule>& rules, const CgroupHost& host, CgroupPlan& plan) {
    plan.device_rules = rules;
    if (allows_every_device(rules)) return {};
    plan.filter_devices = !host.mount.empty();
    if (plan.filter_devices) return {};
    plan.device_writes = TRY(v1_device_writes(rules));
    return check_v1_controllers(plan.device_writes, host.v1);
}

// Where groups in cgroup v1 are made: to enter them costs more than the rest of a start, so only for those who use
// them.
StringMap plan_v1_mounts(const Linux& config, const CgroupHost& host, const CgroupPlan& plan) {
    const bool limited = !plan.v1_writes.empty();
    const bool measured = !config.cgroups_path.empty();  // engines look for their statistics there
    return host.mount.empty() || limited || measured ? host.v1 : StringMap();
}

// A systemd triple (slice:prefix:name) without the systemd manager is a relative path like any other.
Result<std::string> group_path(const std::string& configured, const std::string& id, const std::string& home) {
    if (configured.starts_with('/')) return clean_cgroup_path(configured);
    return clean_cgroup_path(concat(home, kCgroupHome, '/', configured.empty() ? id : configured));
}

Result<void> plan_scope(const std::string& configured, const std::string& id, const SystemdHost& host,
                        CgroupPlan& plan) {
    const ScopeName name = TRY(parse_scope_name(configured, id, host.user ? "user.slice" : "system.slice"));
    plan.place.scope = name.unit;
    plan.place.path = host.top + scope_path(name);
    plan.scope_properties = scope_properties(name, id, plan.writes);
    return {};
}

}  // namespace

Result<CgroupPlan> plan_cgroup(const Linux& config, const std::string& id, const CgroupHost& host,
                               CgroupManager manager, bool new_user_namespace_or_rootless) {
    if (manager == CgroupManager::systemd && !host.v1.empty()) {
        CgroupHost v2_only = host;  // a scope limits by cgroup v2 alone
        v2_only.v1.clear();
        return plan_cgroup(config, id, v2_only, manager, new_user_namespace_or_rootless);
    }
    CgroupPlan plan;
    const DividedResources divided = divide_resources(config.resources, host);
    plan.writes = TRY(v2_writes(divided.v2));
    std::erase_if(plan.writes, is_v2_default);
    TRY(plan_v1_writes(divided.v1, host.v1, plan));
    const bool by_systemd = manager == CgroupManager::systemd;
    const std::string path =
        by_systemd ? "" : TRY_IN("linux.cgroupsPath", group_path(config.cgroups_path, id, host.home));
    if (const auto obstacle = find_obstacle(host, manager, path)) {
        const bool harmless = manager == CgroupManager::disabled || new_user_namespace_or_rootless;
        plan.writes.insert(plan.writes.end(), plan.v1_writes.begin(), plan.v1_writes.end());
        return plan_without_group(plan.writes, *obstacle, harmless);
    }
    plan.place.mount = host.mount;
    plan.hybrid = host.hybrid;
    if (by_systemd) {
        TRY_IN("linux.cgroupsPath", plan_scope(config.cgroups_path, id, host.systemd, plan));
    } else {
        plan.place.path = path;
        plan.place.v1 = plan_v1_mounts(config, host, plan);
    }
    plan.controllers = controllers_of(plan.writes);
    TRY(plan_device_access(config.resources.devices, host, plan));
    plan.filter_may_fail = new_user_namespace_or_rootless;
    return plan;
}

namespace {

constexpr uint64_t kDefaultPeriod = 100'000;

// Negative means unlimited everywhere in the specification.
std::string amount(int64_t value) { return value < 0 ? "max" : std::to_string(value); }

// The specification's swap is memory and swap together, the kernel's is swap alone.
Result<void> add_swap(const MemoryLimits& memory, WriteList& writes) {
    TRY(check_swap(memory));
    const int64_t swap = memory.swap.value_or(0);
    if (swap == 0) return {};
    writes.add("memory.swap", "memory.swap.max", swap < 0 ? "max" : amount(swap - *memory.limit));
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
uint64_t io_weight(uint64_t weight) { return 1 + (std::clamp<uint64_t>(weight, 10, 1000) - 10) * 9999 / 990; }

// A device obeys the one or the other: io.weight if io.cost.qos is enabled for it, io.bfq.weight, which has kept v1's
// unit, if its scheduler is bfq.
void add_weight(std::string_view property, std::string_view key, uint64_t weight, WriteList& writes) {
    writes.add(property, {"io.weight",
                          concat(key, ' ', io_weight(weight)),
                          {},
                          "io.bfq.weight",
                          concat(key, ' ', std::min<uint64_t>(weight, 1000))});
}

void add_throttles(const std::vector<BlockIoThrottle>& throttles, std::string_view name, std::string_view key,
                   WriteList& writes) {
    for (size_t i = 0; i < throttles.size(); ++i) {
        const BlockIoThrottle& device = throttles[i];
        const std::string rate = device.rate == 0 ? "max" : std::to_string(device.rate);
        writes.add(concat("blockIO.", name, '[', i, ']'), "io.max",
                   concat(device.major, ':', device.minor, ' ', key, '=', rate));
    }
}

void add_block_io(const BlockIoLimits& io, WriteList& writes) {
    if (io.weight.value_or(0) != 0) add_weight("blockIO.weight", "default", *io.weight, writes);
    for (size_t i = 0; i < io.weight_device.size(); ++i) {
        const BlockIoDeviceWeight& device = io.weight_device[i];
        if (device.weight.value_or(0) == 0) continue;
        add_weight(concat("blockIO.weightDevice[", i, ']'), concat(device.major, ':', device.minor), *device.weight,
                   writes);
    }
    add_throttles(io.throttle_read_bps_device, "throttleReadBpsDevice", "rbps", writes);
    add_throttles(io.throttle_write_bps_device, "throttleWriteBpsDevice", "wbps", writes);
    add_throttles(io.throttle_read_iops_device, "throttleReadIOPSDevice", "riops", writes);
    add_throttles(io.throttle_write_iops_device, "throttleWriteIOPSDevice", "wiops", writes);
}

// What is reserved is refused when it is asked for; what is not, when it is touched. Kernels before 5.7 know only the
// latter.
Result<void> add_hugepages(const std::vector<HugepageLimit>& limits, WriteList& writes) {
    for (size_t i = 0; i < limits.size(); ++i) {
        const std::string& size = limits[i].page_size;
        const std::string property = concat("hugepageLimits[", i, ']');
        if (size.empty() || size.find('/') != std::string::npos) {
            return plain_error(concat("linux.resources.", property, ": ", quoted(size), " is no page size"));
        }
        const std::string limit = std::to_string(limits[i].limit);
        writes.add(property,
                   {concat("hugetlb.", size, ".max"), limit, {}, concat("hugetlb.", size, ".rsvd.max"), limit});
    }
    return {};
}

void add_rdma(const std::map<std::string, RdmaLimit>& devices, WriteList& writes) {
    for (const auto& [device, limit] : devices) {
        std::string value = device;
        if (limit.hca_handles) value += concat(" hca_handle=", *limit.hca_handles);
        if (limit.hca_objects) value += concat(" hca_object=", *limit.hca_objects);
        writes.add(concat("rdma.", device), "rdma.max", value);
    }
}

// Last, so that what is said in the kernel's own words has the last word. Of a value with several lines, as io.max may
// have, the kernel takes one at a time.
Result<void> add_unified(const StringMap& unified, WriteList& writes) {
    for (const auto& [file, value] : unified) {
        if (file.find('/') != std::string::npos || file.find('.') == std::string::npos) {
            return plain_error(concat("linux.resources.unified: ", quoted(file), " is no control file's name"));
        }
        for (const std::string_view line : split(value, '\n')) {
            if (!line.empty()) writes.add(concat("unified.", file), file, std::string(line));
        }
    }
    return {};
}

bool has_leaf_weight(const BlockIoLimits& io) {
    return io.leaf_weight.value_or(0) != 0 || std::ranges::any_of(io.weight_device, [](const auto& device) {
               return device.leaf_weight.value_or(0) != 0;
           });
}

// Properties of v1 that nothing in v2 enforces. Leaving one out silently would be a limit that is not there.
Result<void> refuse_v1_only(const Resources& r) {
    struct Entry {
        bool asked;
        const char* name;
        const char* remedy;
    };
    const Entry table[] = {
        {r.memory.kernel.value_or(0) > 0, "memory.kernel", "memory.limit counts the kernel's memory as well"},
        {r.memory.kernel_tcp.value_or(0) > 0, "memory.kernelTCP", "memory.limit counts buffers of sockets as well"},
        {r.memory.swappiness.has_value(), "memory.swappiness",
         "limit swap with memory.swap, or set the host's vm.swappiness"},
        {r.memory.disable_oom_killer.value_or(false), "memory.disableOOMKiller",
         "spare the process with process.oomScoreAdj -1000"},
        {r.cpu.realtime_runtime.value_or(0) > 0, "cpu.realtimeRuntime", "use process.scheduler with SCHED_DEADLINE"},
        {r.cpu.realtime_period.value_or(0) > 0, "cpu.realtimePeriod", "use process.scheduler with SCHED_DEADLINE"},
        {has_leaf_weight(r.block_io), "blockIO.leafWeight", "use blockIO.weight, and weights of the groups below"},
        {r.network.class_id.value_or(0) != 0, "network.classID",
         "match the group's path in nftables (socket cgroupv2)"},
        {!r.network.priorities.empty(), "network.priorities", "set priorities in nftables (socket cgroupv2)"},
    };
    std::vector<std::string> refused;
    std::vector<std::string> remedies;
    for (const Entry& entry : table) {
        if (!entry.asked) continue;
        refused.push_back(concat("linux.resources.", entry.name));
        if (remedies.empty() || remedies.back() != entry.remedy) remedies.emplace_back(entry.remedy);
    }
    if (refused.empty()) return {};
    return plain_error(concat(join(refused, ", "), ": cgroup v2 has no such setting"))
        .with_hint(concat("leave it out; instead: ", join(remedies, "; ")));
}

// The kernel would kill processes until the rest fits.
Result<void> check_usage(const MemoryNow& now, const MemoryLimits& memory) {
    if (!memory.check_before_update.value_or(false)) return {};
    const auto refuse = [](std::string_view name, int64_t limit, int64_t usage) {
        return plain_error(concat("linux.resources.memory.", name, ": ", limit, " is less than the ", usage,
                                  " in use, and linux.resources.memory.checkBeforeUpdate is true"));
    };
    const int64_t limit = memory.limit.value_or(0);
    const int64_t swap = memory.swap.value_or(0);
    if (limit > 0 && limit < now.used) return refuse("limit", limit, now.used);
    if (swap > 0 && swap < now.used_with_swap) return refuse("swap", swap, now.used_with_swap);
    return {};
}

Result<void> complete_swap(const MemoryNow& now, MemoryLimits& memory) {
    const int64_t limit = memory.limit.value_or(0);
    if (limit == 0 || memory.swap.value_or(0) != 0) return {};
    if (limit < 0) memory.swap = kNoMaximum;
    if (limit < 0 || now.limit_with_swap == kNoMaximum) return {};
    if (limit > now.limit_with_swap) {
        return plain_error(concat("linux.resources.memory.limit: ", limit, " is more than the ", now.limit_with_swap,
                                  " that memory and swap together may have"))
            .with_hint("change linux.resources.memory.swap (--memory-swap) at the same time");
    }
    memory.swap = now.limit_with_swap;
    return {};
}

}  // namespace

void WriteList::add(std::string_view property, CgroupWrite write) {
    write.property = concat("linux.resources.", property);
    writes_.push_back(std::move(write));
}

void WriteList::add(std::string_view property, std::string file, std::string value) {
    add(property, CgroupWrite{std::move(file), std::move(value), {}});
}

Result<void> check_swap(const MemoryLimits& memory) {
    const int64_t limit = memory.limit.value_or(0);
    const int64_t swap = memory.swap.value_or(0);
    if (swap > 0 && limit <= 0) {
        return plain_error(
            "linux.resources.memory.swap: counts memory and swap together, so it needs "
            "linux.resources.memory.limit as well");
    }
    if (swap > 0 && swap < limit) {
        return plain_error(concat("linux.resources.memory.swap: ", swap, " is less than linux.resources.memory.limit ",
                                  limit, ", but counts memory and swap together"));
    }
    return {};
}

Result<std::vector<CgroupWrite>> v2_writes(const Resources& resources) {
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

bool is_v2_default(const CgroupWrite& write) {
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

Result<void> complete_memory(const MemoryNow& now, MemoryLimits& memory) {
    const bool swap_alone = memory.limit.value_or(0) == 0 && memory.swap.value_or(0) > 0;
    if (swap_alone && now.limit != kNoMaximum) memory.limit = now.limit;
    TRY(complete_swap(now, memory));
    return check_usage(now, memory);
}

}  // namespace pinfold
