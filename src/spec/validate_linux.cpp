// The rules for the linux section, but for resources and seccomp, which have files of their own.
#include <algorithm>
#include <array>
#include <bitset>
#include <set>

#include "spec/resources.hpp"
#include "spec/validate.hpp"
#include "spec/words.hpp"

namespace pinfold {

const Namespace* find_namespace(const Linux& linux_, NamespaceType type) {
    const auto it = std::find_if(linux_.namespaces.begin(), linux_.namespaces.end(),
                                 [&](const Namespace& ns) { return ns.type == type; });
    return it == linux_.namespaces.end() ? nullptr : &*it;
}

// Namespaces and what belongs to one: id mappings and clock offsets.

namespace {

constexpr size_t kMostMappings = 340;        // user_namespaces(7)
constexpr uint64_t kIdsInAll = 0xffff'ffff;  // the last 32-bit number is no id
constexpr uint32_t kLastNanosecond = 999'999'999;

bool overlap(uint64_t first, uint64_t second, uint64_t first_size, uint64_t second_size) {
    return first < second + second_size && second < first + first_size;
}

void validate_id_mapping(const IdMapping& mapping, std::string_view at, Problems& problems) {
    if (mapping.size == 0) problems.add(member_path(at, "size"), expected_but_found(0, "1 or more"));
    for (const uint64_t first : {mapping.container_id, mapping.host_id}) {
        if (first + mapping.size > kIdsInAll) {
            problems.add(std::string(at), concat(mapping.size, " ids from ", first, " on go beyond the last id"));
        }
    }
}

void require_no_overlap(std::string_view path, const std::vector<IdMapping>& mappings, size_t index,
                        Problems& problems) {
    const IdMapping& later = mappings[index];
    for (size_t i = 0; i < index; ++i) {
        const IdMapping& earlier = mappings[i];
        const bool inside = overlap(earlier.container_id, later.container_id, earlier.size, later.size);
        const bool outside = overlap(earlier.host_id, later.host_id, earlier.size, later.size);
        if (inside || outside) {
            problems.add(element_path(path, index),
                         concat(inside ? "container" : "host", " ids overlap those of ", element_path(path, i)));
            return;
        }
    }
}

// A joined namespace has its mappings already; callers may repeat them.
void validate_user_namespace(std::string_view path, const std::vector<IdMapping>& mappings, const Namespace* user,
                             Problems& problems) {
    if (!user && !mappings.empty()) {
        problems.add(std::string(path), "needs a user namespace in linux.namespaces");
    } else if (user && user->path.empty() && mappings.empty()) {
        problems.add(std::string(path), "missing, required: at least one range for the new user namespace");
    }
    validate_id_mappings(path, mappings, problems);
}

void validate_time_offsets(const Linux& linux_, Problems& problems) {
    if (linux_.time_offsets.empty()) return;
    const Namespace* time = find_namespace(linux_, NamespaceType::time);
    if (!time || !time->path.empty()) {
        problems.add("linux.timeOffsets", "needs a new time namespace in linux.namespaces");
    }
    for (const auto& [clock, offset] : linux_.time_offsets) {
        const std::string at = member_path("linux.timeOffsets", clock);
        if (clock != "boottime" && clock != "monotonic") {
            problems.add(at, "no such clock, allowed: boottime, monotonic");
        }
        require_range(member_path(at, "nanosecs"), offset.nanosecs, 0, kLastNanosecond, problems);
    }
}

}  // namespace

void validate_id_mappings(std::string_view path, const std::vector<IdMapping>& mappings, Problems& problems) {
    if (mappings.size() > kMostMappings) {
        return problems.add(std::string(path),
                            concat("found ", mappings.size(), " ranges, allowed: at most ", kMostMappings));
    }
    for (size_t i = 0; i < mappings.size(); ++i) {
        validate_id_mapping(mappings[i], element_path(path, i), problems);
        require_no_overlap(path, mappings, i, problems);
    }
}

static void validate_namespaces(const Linux& linux_, Problems& problems) {
    std::bitset<8> seen;
    const Namespace* user = find_namespace(linux_, NamespaceType::user);
    for (size_t i = 0; i < linux_.namespaces.size(); ++i) {
        const Namespace& ns = linux_.namespaces[i];
        const std::string at = element_path("linux.namespaces", i);
        const auto type = static_cast<size_t>(ns.type);
        // A type that could not be read is no namespace at all.
        if (problems.has(member_path(at, "type"))) continue;
        if (seen[type]) problems.add(member_path(at, "type"), "this type is given twice");
        seen.set(type);
        if (!ns.path.empty()) require_absolute(member_path(at, "path"), ns.path, problems);
        // Members of a new one have no rights over the pid namespace, and must not be seen there half made.
        if (ns.type == NamespaceType::pid && !ns.path.empty() && user != nullptr && user->path.empty())
            problems.add(member_path(at, "path"), "is joined with the user namespace that owns it, not with a new one");
    }
    validate_user_namespace("linux.uidMappings", linux_.uid_mappings, user, problems);
    validate_user_namespace("linux.gidMappings", linux_.gid_mappings, user, problems);
    validate_time_offsets(linux_, problems);
}

// Sysctl: only settings that belong to a namespace of the container; all others are the host's.

namespace {

struct SysctlOwner {
    std::string_view prefix;
    NamespaceType type;
    std::string_view what;  // with its article
};

constexpr auto kOwners = std::to_array<SysctlOwner>({{"net/", NamespaceType::network, "a network"},
                                                     {"kernel/msg", NamespaceType::ipc, "an ipc"},
                                                     {"kernel/shm", NamespaceType::ipc, "an ipc"},
                                                     {"kernel/sem", NamespaceType::ipc, "an ipc"},
                                                     {"fs/mqueue/", NamespaceType::ipc, "an ipc"},
                                                     {"kernel/domainname", NamespaceType::uts, "a uts"}});

// As sysctl(8) reads a name: its first separator says which of '.' and '/' is the separator, and the other one is a
// part of names ("net/ipv4/conf/eth0.1/forwarding").
std::string sysctl_file(std::string name) {
    const size_t separator = name.find_first_of("./");
    if (separator == name.npos || name[separator] == '/') return name;
    for (char& c : name) c = c == '.' ? '/' : c == '/' ? '.' : c;
    return name;
}

// Nothing that leaves /proc/sys or goes back up in it: "net/../kernel/core_pattern" is no setting of the network.
bool is_plain_path(std::string_view file) {
    const std::vector<std::string_view> components = split(file, '/');
    return std::none_of(components.begin(), components.end(),
                        [](std::string_view part) { return part.empty() || part == "." || part == ".."; });
}

std::string refusal(const std::string& file, const Linux& linux_) {
    if (!is_plain_path(file)) return "not the name of a setting";
    if (file == "kernel/hostname") return "to be set with the property hostname";
    const auto owner = std::find_if(kOwners.begin(), kOwners.end(),
                                    [&](const SysctlOwner& candidate) { return file.starts_with(candidate.prefix); });
    if (owner == kOwners.end()) return "belongs to no namespace: it would change the host";
    if (!find_namespace(linux_, owner->type)) {
        return concat("needs ", owner->what, " namespace: it would change the host");
    }
    return {};
}

}  // namespace

static void validate_sysctl(const Linux& linux_, Problems& problems) {
    for (const auto& [name, value] : linux_.sysctl) {
        std::string message = refusal(sysctl_file(name), linux_);
        if (!message.empty()) problems.add(member_path("linux.sysctl", name), std::move(message));
    }
}

// The rest of the section.

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
