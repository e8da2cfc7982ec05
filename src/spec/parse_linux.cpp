// The linux section of config.json; resources and seccomp have files of their own.
#include <array>

#include "spec/parse.hpp"
#include "spec/words.hpp"

namespace pinfold {

namespace {

constexpr auto kNamespaceTypes = std::to_array<Choice<NamespaceType>>({{"mount", NamespaceType::mount},
                                                                       {"pid", NamespaceType::pid},
                                                                       {"network", NamespaceType::network},
                                                                       {"uts", NamespaceType::uts},
                                                                       {"ipc", NamespaceType::ipc},
                                                                       {"user", NamespaceType::user},
                                                                       {"cgroup", NamespaceType::cgroup},
                                                                       {"time", NamespaceType::time}});

constexpr auto kDeviceTypes = std::to_array<Choice<char>>({{"c", 'c'}, {"b", 'b'}, {"u", 'u'}, {"p", 'p'}});

}  // namespace

static void read(const Reader& object, Namespace& ns) {
    object.required_choice("type", ns.type, kNamespaceTypes);
    object.optional("path", ns.path);
}

static void read(const Reader& object, TimeOffset& offset) {
    object.optional("secs", offset.secs);
    object.optional("nanosecs", offset.nanosecs);
}

static void read(const Reader& object, Device& device) {
    object.required("path", device.path);
    object.required_choice("type", device.type, kDeviceTypes);
    if (device.type != 'p') {  // a FIFO has no numbers
        object.required("major", device.major);
        object.required("minor", device.minor);
    }
    object.optional("fileMode", device.file_mode);
    object.optional("uid", device.uid);
    object.optional("gid", device.gid);
}

static void read(const Reader& object, NetDevice& device) { object.optional("name", device.name); }

static void read(const Reader& object, IntelRdt& rdt) {
    object.optional("closID", rdt.clos_id);
    object.optional("schemata", rdt.schemata);
    object.optional("l3CacheSchema", rdt.l3_cache_schema);
    object.optional("memBwSchema", rdt.mem_bw_schema);
    object.optional("enableMonitoring", rdt.enable_monitoring);
}

static void read(const Reader& object, MemoryPolicy& policy) {
    object.required("mode", policy.mode);
    object.optional("nodes", policy.nodes);
    object.optional("flags", policy.flags);
}

static void read(const Reader& object, Personality& personality) {
    object.required("domain", personality.domain);
    object.optional("flags", personality.flags);
}

void read(const Reader& object, Linux& linux_) {
    object.optional("namespaces", linux_.namespaces);
    object.optional("uidMappings", linux_.uid_mappings);
    object.optional("gidMappings", linux_.gid_mappings);
    object.optional("timeOffsets", linux_.time_offsets);
    object.optional("devices", linux_.devices);
    object.optional("netDevices", linux_.net_devices);
    object.optional("cgroupsPath", linux_.cgroups_path);
    object.optional("resources", linux_.resources);
    object.optional("rootfsPropagation", linux_.rootfs_propagation);
    object.optional("seccomp", linux_.seccomp);
    object.optional("sysctl", linux_.sysctl);
    object.optional("maskedPaths", linux_.masked_paths);
    object.optional("readonlyPaths", linux_.readonly_paths);
    object.optional("mountLabel", linux_.mount_label);
    object.optional("intelRdt", linux_.intel_rdt);
    object.optional("memoryPolicy", linux_.memory_policy);
    object.optional("personality", linux_.personality);
}

std::vector<std::string_view> namespace_types() {
    std::vector<std::string_view> words;
    for (const Choice<NamespaceType>& type : kNamespaceTypes) words.push_back(type.word);
    return words;
}

}  // namespace pinfold
