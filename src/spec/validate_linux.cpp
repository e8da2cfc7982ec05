// The rules for the linux section, but for namespaces, sysctl, resources and seccomp, which have files of their own.
#include <algorithm>
#include <array>
#include <set>

#include "spec/rules.hpp"
#include "spec/validate.hpp"

namespace pinfold {

namespace {

// The specification names the first four; callers also send the recursive forms that mount(8) knows.
constexpr auto kPropagations = std::to_array<std::string_view>(
    {"private", "shared", "slave", "unbindable", "rprivate", "rshared", "rslave", "runbindable"});

constexpr auto kPersonalities = std::to_array<std::string_view>({"LINUX", "LINUX32"});

constexpr auto kMemoryPolicies =
    std::to_array<std::string_view>({"MPOL_DEFAULT", "MPOL_BIND", "MPOL_INTERLEAVE", "MPOL_WEIGHTED_INTERLEAVE",
                                     "MPOL_PREFERRED", "MPOL_PREFERRED_MANY", "MPOL_LOCAL"});

constexpr auto kMemoryPolicyFlags =
    std::to_array<std::string_view>({"MPOL_F_NUMA_BALANCING", "MPOL_F_RELATIVE_NODES", "MPOL_F_STATIC_NODES"});

// dev_t, as the kernel has it: 12 bits and 20 bits.
constexpr int64_t kHighestMajor = (1 << 12) - 1;
constexpr int64_t kHighestMinor = (1 << 20) - 1;

constexpr size_t kLongestInterfaceName = 15;

bool is_one_component(std::string_view name) {
    return name.find('/') == std::string_view::npos && name != "." && name != "..";
}

void validate_devices(const std::vector<Device>& devices, Problems& problems) {
    for (size_t i = 0; i < devices.size(); ++i) {
        const Device& device = devices[i];
        const std::string at = element_path("linux.devices", i);
        require_absolute(member_path(at, "path"), device.path, problems);
        require_range(member_path(at, "major"), device.major, 0, kHighestMajor, problems);
        require_range(member_path(at, "minor"), device.minor, 0, kHighestMinor, problems);
        // Podman sends the whole st_mode, type included; the type is said elsewhere.
        if (device.file_mode) require_range(member_path(at, "fileMode"), *device.file_mode, 0, 0177777, problems);
    }
}

void validate_net_device_name(std::string path, std::string_view name, Problems& problems) {
    if (name.empty() || name.size() > kLongestInterfaceName || !is_one_component(name)) {
        problems.add(std::move(path), expected_but_found(name, "an interface name: 1 to 15 bytes, no '/'"));
    }
}

// In a network that the container does not have to itself, a move would take the device from the host and give it back
// under another name, or to others.
void validate_net_devices(const Linux& linux_, Problems& problems) {
    if (linux_.net_devices.empty()) return;
    if (find_namespace(linux_, NamespaceType::network) == nullptr) {
        problems.add("linux.netDevices", "needs a network namespace in linux.namespaces");
    }
    std::set<std::string_view> names;
    for (const auto& [host_name, device] : linux_.net_devices) {
        const std::string at = member_path("linux.netDevices", host_name);
        validate_net_device_name(at, host_name, problems);
        if (!device.name.empty()) validate_net_device_name(member_path(at, "name"), device.name, problems);
        const std::string& name = device.name.empty() ? host_name : device.name;
        if (!names.insert(name).second) problems.add(at, concat("a second device of the name ", name));
    }
}

void validate_cgroups_path(const std::string& path, Problems& problems) {
    const std::vector<std::string_view> components = split(path, '/');
    if (std::find(components.begin(), components.end(), "..") != components.end()) {
        problems.add("linux.cgroupsPath", expected_but_found(path, "a path without .."));
    }
}

void validate_memory_policy(const MemoryPolicy& policy, Problems& problems) {
    require_known("linux.memoryPolicy.mode", policy.mode, kMemoryPolicies, problems);
    require_all_known("linux.memoryPolicy.flags", policy.flags, kMemoryPolicyFlags, problems);
    const bool takes_none = policy.mode == "MPOL_DEFAULT" || policy.mode == "MPOL_LOCAL";
    const bool may_be_empty = takes_none || policy.mode == "MPOL_PREFERRED";
    require_index_list("linux.memoryPolicy.nodes", policy.nodes, problems);
    if (takes_none && !policy.nodes.empty()) {
        problems.add("linux.memoryPolicy.nodes", expected_but_found(policy.nodes, concat("none with ", policy.mode)));
    } else if (!may_be_empty && policy.nodes.empty()) {
        problems.add("linux.memoryPolicy.nodes", concat("missing, required: a list such as 0-3,7 with ", policy.mode));
    }
}

void validate_intel_rdt(const IntelRdt& rdt, Problems& problems) {
    if (!is_one_component(rdt.clos_id))
        problems.add("linux.intelRdt.closID", expected_but_found(rdt.clos_id, "a name without '/'"));
    const std::string& schema = rdt.mem_bw_schema;
    if (!schema.empty() && (!schema.starts_with("MB:") || schema.find('\n') != std::string::npos)) {
        problems.add("linux.intelRdt.memBwSchema", expected_but_found(schema, "one line that begins with MB:"));
    }
}

}  // namespace

Words memory_policy_modes() { return kMemoryPolicies; }
Words memory_policy_flags() { return kMemoryPolicyFlags; }

void validate_linux(const Linux& linux_, Problems& problems) {
    validate_namespaces(linux_, problems);
    validate_devices(linux_.devices, problems);
    validate_net_devices(linux_, problems);
    validate_cgroups_path(linux_.cgroups_path, problems);
    validate_resources(linux_.resources, "linux.resources", problems);
    if (!linux_.rootfs_propagation.empty()) {
        require_known("linux.rootfsPropagation", linux_.rootfs_propagation, kPropagations, problems);
    }
    if (linux_.seccomp) validate_seccomp(*linux_.seccomp, problems);
    validate_sysctl(linux_, problems);
    require_all_absolute("linux.maskedPaths", linux_.masked_paths, problems);
    require_all_absolute("linux.readonlyPaths", linux_.readonly_paths, problems);
    if (linux_.intel_rdt) validate_intel_rdt(*linux_.intel_rdt, problems);
    if (linux_.memory_policy) validate_memory_policy(*linux_.memory_policy, problems);
    if (linux_.personality) {
        require_known("linux.personality.domain", linux_.personality->domain, kPersonalities, problems);
        if (!linux_.personality->flags.empty()) {
            problems.add("linux.personality.flags", expected_but_found(linux_.personality->flags[0], "none"));
        }
    }
}

}  // namespace pinfold
