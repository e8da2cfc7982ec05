// The resources section of config.json, which is also a document of its own for update: how it is read, and its rules.
#include "spec/resources.hpp"

#include <algorithm>
#include <array>

namespace pinfold {

namespace {

constexpr auto kRuleTypes = std::to_array<Choice<char>>({{"a", 'a'}, {"b", 'b'}, {"c", 'c'}});

// Callers write -1 as well as nothing for "any number".
void drop_any(std::optional<int64_t>& number) {
    if (number == -1) number.reset();
}

struct Pids {
    std::optional<int64_t> limit;
};

}  // namespace

static void read(const Reader& object, DeviceRule& rule) {
    object.required("allow", rule.allow);
    object.optional_choice("type", rule.type, kRuleTypes);
    object.optional("major", rule.major);
    object.optional("minor", rule.minor);
    object.optional("access", rule.access);
    drop_any(rule.major);
    drop_any(rule.minor);
}

static void read(const Reader& object, MemoryLimits& memory) {
    object.optional("limit", memory.limit);
    object.optional("reservation", memory.reservation);
    object.optional("swap", memory.swap);
    object.optional("kernel", memory.kernel);
    object.optional("kernelTCP", memory.kernel_tcp);
    object.optional("swappiness", memory.swappiness);
    object.optional("disableOOMKiller", memory.disable_oom_killer);
    object.optional("useHierarchy", memory.use_hierarchy);
    object.optional("checkBeforeUpdate", memory.check_before_update);
}

static void read(const Reader& object, CpuLimits& cpu) {
    object.optional("shares", cpu.shares);
    object.optional("quota", cpu.quota);
    object.optional("burst", cpu.burst);
    object.optional("period", cpu.period);
    object.optional("realtimeRuntime", cpu.realtime_runtime);
    object.optional("realtimePeriod", cpu.realtime_period);
    object.optional("cpus", cpu.cpus);
    object.optional("mems", cpu.mems);
    object.optional("idle", cpu.idle);
}

// The schema requires the limit, but newer Go bindings write {} for "no limit".
static void read(const Reader& object, Pids& pids) { object.optional("limit", pids.limit); }

static void read(const Reader& object, BlockIoDeviceWeight& device) {
    object.required("major", device.major);
    object.required("minor", device.minor);
    object.optional("weight", device.weight);
    object.optional("leafWeight", device.leaf_weight);
}

static void read(const Reader& object, BlockIoThrottle& device) {
    object.required("major", device.major);
    object.required("minor", device.minor);
    object.required("rate", device.rate);
}

static void read(const Reader& object, BlockIoLimits& block_io) {
    object.optional("weight", block_io.weight);
    object.optional("leafWeight", block_io.leaf_weight);
    object.optional("weightDevice", block_io.weight_device);
    object.optional("throttleReadBpsDevice", block_io.throttle_read_bps_device);
    object.optional("throttleWriteBpsDevice", block_io.throttle_write_bps_device);
    object.optional("throttleReadIOPSDevice", block_io.throttle_read_iops_device);
    object.optional("throttleWriteIOPSDevice", block_io.throttle_write_iops_device);
}

static void read(const Reader& object, HugepageLimit& hugepage) {
    object.required("pageSize", hugepage.page_size);
    object.required("limit", hugepage.limit);
}

static void read(const Reader& object, NetworkPriority& priority) {
    object.required("name", priority.name);
    object.required("priority", priority.priority);
}

static void read(const Reader& object, NetworkLimits& network) {
    object.optional("classID", network.class_id);
    object.optional("priorities", network.priorities);
}

static void read(const Reader& object, RdmaLimit& rdma) {
    object.optional("hcaHandles", rdma.hca_handles);
    object.optional("hcaObjects", rdma.hca_objects);
}

void read(const Reader& object, Resources& resources) {
    object.optional("devices", resources.devices);
    object.optional("memory", resources.memory);
    object.optional("cpu", resources.cpu);
    object.optional("blockIO", resources.block_io);
    object.optional("hugepageLimits", resources.hugepage_limits);
    object.optional("network", resources.network);
    object.optional("rdma", resources.rdma);
    object.optional("unified", resources.unified);
    Pids pids;
    object.optional("pids", pids);
    resources.pids_limit = pids.limit;
}

Resources parse_resources(const Json& root, Problems& problems) {
    Resources resources;
    Reader(root, problems, nullptr).into(resources);
    return resources;
}

// The rules.

namespace {

void validate_rules(const std::vector<DeviceRule>& rules, std::string_view path, Problems& problems) {
    for (size_t i = 0; i < rules.size(); ++i) {
        const DeviceRule& rule = rules[i];
        const std::string at = element_path(path, i);
        if (rule.access.find_first_not_of("rwm") != std::string::npos) {
            problems.add(member_path(at, "access"), expected_but_found(rule.access, "letters of rwm"));
        }
        if (rule.major && *rule.major < 0)
            problems.add(member_path(at, "major"), expected_but_found(*rule.major, "0 or more"));
        if (rule.minor && *rule.minor < 0)
            problems.add(member_path(at, "minor"), expected_but_found(*rule.minor, "0 or more"));
    }
}

void validate_cpu(const CpuLimits& cpu, std::string_view at, Problems& problems) {
    const int64_t quota = cpu.quota.value_or(0);
    if (quota > 0 && cpu.burst && *cpu.burst > static_cast<uint64_t>(quota)) {
        problems.add(member_path(at, "burst"), expected_but_found(*cpu.burst, concat("at most the quota, ", quota)));
    }
    if (cpu.idle) require_range(member_path(at, "idle"), *cpu.idle, 0, 1, problems);
}

// 0 stands for "not set".
void require_weight(const std::string& path, std::optional<uint16_t> weight, Problems& problems) {
    if (weight.value_or(0) != 0) require_range(path, *weight, 10, 1000, problems);
}

void validate_block_io(const BlockIoLimits& block_io, std::string_view at, Problems& problems) {
    const std::string path = member_path(at, "weightDevice");
    require_weight(member_path(at, "weight"), block_io.weight, problems);
    require_weight(member_path(at, "leafWeight"), block_io.leaf_weight, problems);
    for (size_t i = 0; i < block_io.weight_device.size(); ++i) {
        const BlockIoDeviceWeight& device = block_io.weight_device[i];
        if (!device.weight && !device.leaf_weight) {
            problems.add(element_path(path, i), "missing, required: weight or leafWeight");
        }
        require_weight(member_path(element_path(path, i), "weight"), device.weight, problems);
        require_weight(member_path(element_path(path, i), "leafWeight"), device.leaf_weight, problems);
    }
}

// 64KB, 2MB, 1GB
bool is_page_size(std::string_view text) {
    if (text.size() < 3 || !text.ends_with('B') || text[0] == '0') return false;
    const std::string_view unit = text.substr(text.size() - 2, 1);
    const std::string_view number = text.substr(0, text.size() - 2);
    return unit.find_first_of("KMG") == 0 && number.find_first_not_of("0123456789") == number.npos;
}

void validate_hugepages(const std::vector<HugepageLimit>& limits, std::string_view path, Problems& problems) {
    for (size_t i = 0; i < limits.size(); ++i) {
        if (is_page_size(limits[i].page_size)) continue;
        problems.add(member_path(element_path(path, i), "pageSize"),
                     expected_but_found(limits[i].page_size, "a number and KB, MB or GB"));
    }
}

// Its own container's file, never one elsewhere; and a limit, not one of those that act on processes or on other
// groups.
void validate_unified(const StringMap& unified, std::string_view path, Problems& problems) {
    constexpr std::string_view kActions[] = {"cgroup.procs",  "cgroup.threads", "cgroup.kill",
                                             "cgroup.freeze", "cgroup.type",    "cgroup.subtree_control"};
    for (const auto& [file, value] : unified) {
        if (file.empty() || file == "." || file == ".." || file.find('/') != file.npos) {
            problems.add(member_path(path, file), "not the name of a cgroup file");
        } else if (std::ranges::find(kActions, file) != std::end(kActions)) {
            problems.add(member_path(path, file), "not a limit: it acts on processes or on other groups");
        }
    }
}

}  // namespace

void validate_resources(const Resources& resources, std::string_view at, Problems& problems) {
    validate_rules(resources.devices, member_path(at, "devices"), problems);
    if (resources.memory.swappiness) {
        require_range(member_path(member_path(at, "memory"), "swappiness"), *resources.memory.swappiness, 0, 100,
                      problems);
    }
    validate_cpu(resources.cpu, member_path(at, "cpu"), problems);
    validate_block_io(resources.block_io, member_path(at, "blockIO"), problems);
    validate_hugepages(resources.hugepage_limits, member_path(at, "hugepageLimits"), problems);
    for (const auto& [device, limit] : resources.rdma) {
        if (limit.hca_handles || limit.hca_objects) continue;
        problems.add(member_path(member_path(at, "rdma"), device), "missing, required: hcaHandles or hcaObjects");
    }
    validate_unified(resources.unified, member_path(at, "unified"), problems);
}

}  // namespace pinfold
