// The resources section of config.json, which is also a document of its own for update.
#include <array>

#include "spec/parse.hpp"

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

}  // namespace pinfold
