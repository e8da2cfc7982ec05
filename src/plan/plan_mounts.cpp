// Mount options, as the specification and mount(8) name them, to mount attributes; the devices and links of /dev.
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <algorithm>
#include <string_view>

#include "base/strings.hpp"
#include "cgroup/path.hpp"
#include "plan/plan.hpp"

namespace pinfold {

namespace {

enum class Effect : uint8_t {
    set,            // attribute on
    clear,          // attribute off
    recursive_set,  // on the whole tree
    recursive_clear,
    propagation,
    recursive_propagation,
    bind,
    recursive_bind,
    remount,
    copy_up,
    id_map,
    recursive_id_map,
    ignore,  // no meaning for the mount API
};

struct Option {
    std::string_view name;
    Effect effect;
    uint64_t value = 0;
};

constexpr Option kOptions[] = {
    {"ro", Effect::set, MOUNT_ATTR_RDONLY},
    {"rw", Effect::clear, MOUNT_ATTR_RDONLY},
    {"nosuid", Effect::set, MOUNT_ATTR_NOSUID},
    {"suid", Effect::clear, MOUNT_ATTR_NOSUID},
    {"nodev", Effect::set, MOUNT_ATTR_NODEV},
    {"dev", Effect::clear, MOUNT_ATTR_NODEV},
    {"noexec", Effect::set, MOUNT_ATTR_NOEXEC},
    {"exec", Effect::clear, MOUNT_ATTR_NOEXEC},
    {"nodiratime", Effect::set, MOUNT_ATTR_NODIRATIME},
    {"diratime", Effect::clear, MOUNT_ATTR_NODIRATIME},
    {"nosymfollow", Effect::set, MOUNT_ATTR_NOSYMFOLLOW},
    {"symfollow", Effect::clear, MOUNT_ATTR_NOSYMFOLLOW},
    // Access times are one field of the attributes: setting one clears the others.
    {"noatime", Effect::set, MOUNT_ATTR_NOATIME},
    {"atime", Effect::clear, MOUNT_ATTR__ATIME},
    {"strictatime", Effect::set, MOUNT_ATTR_STRICTATIME},
    {"nostrictatime", Effect::clear, MOUNT_ATTR__ATIME},
    {"relatime", Effect::clear, MOUNT_ATTR__ATIME},
    {"norelatime", Effect::ignore},
    {"rro", Effect::recursive_set, MOUNT_ATTR_RDONLY},
    {"rrw", Effect::recursive_clear, MOUNT_ATTR_RDONLY},
    {"rnosuid", Effect::recursive_set, MOUNT_ATTR_NOSUID},
    {"rsuid", Effect::recursive_clear, MOUNT_ATTR_NOSUID},
    {"rnodev", Effect::recursive_set, MOUNT_ATTR_NODEV},
    {"rdev", Effect::recursive_clear, MOUNT_ATTR_NODEV},
    {"rnoexec", Effect::recursive_set, MOUNT_ATTR_NOEXEC},
    {"rexec", Effect::recursive_clear, MOUNT_ATTR_NOEXEC},
    {"rnodiratime", Effect::recursive_set, MOUNT_ATTR_NODIRATIME},
    {"rdiratime", Effect::recursive_clear, MOUNT_ATTR_NODIRATIME},
    {"rnosymfollow", Effect::recursive_set, MOUNT_ATTR_NOSYMFOLLOW},
    {"rsymfollow", Effect::recursive_clear, MOUNT_ATTR_NOSYMFOLLOW},
    {"rnoatime", Effect::recursive_set, MOUNT_ATTR_NOATIME},
    {"ratime", Effect::recursive_clear, MOUNT_ATTR__ATIME},
    {"rstrictatime", Effect::recursive_set, MOUNT_ATTR_STRICTATIME},
    {"rnostrictatime", Effect::recursive_clear, MOUNT_ATTR__ATIME},
    {"rrelatime", Effect::recursive_clear, MOUNT_ATTR__ATIME},
    {"rnorelatime", Effect::ignore},
    {"private", Effect::propagation, MS_PRIVATE},
    {"rprivate", Effect::recursive_propagation, MS_PRIVATE},
    {"shared", Effect::propagation, MS_SHARED},
    {"rshared", Effect::recursive_propagation, MS_SHARED},
    {"slave", Effect::propagation, MS_SLAVE},
    {"rslave", Effect::recursive_propagation, MS_SLAVE},
    {"unbindable", Effect::propagation, MS_UNBINDABLE},
    {"runbindable", Effect::recursive_propagation, MS_UNBINDABLE},
    {"bind", Effect::bind},
    {"rbind", Effect::recursive_bind},
    {"remount", Effect::remount},
    {"tmpcopyup", Effect::copy_up},
    {"idmap", Effect::id_map},
    {"ridmap", Effect::recursive_id_map},
    {"defaults", Effect::ignore},
    {"silent", Effect::ignore},
    {"loud", Effect::ignore},
};

// Attributes, with the field of access times treated as one value.
void set_attribute(MountChange& change, uint64_t value) {
    if (value & MOUNT_ATTR__ATIME) {
        change.set &= ~uint64_t{MOUNT_ATTR__ATIME};
        change.clear |= MOUNT_ATTR__ATIME;
    }
    change.set |= value;
    if (!(value & MOUNT_ATTR__ATIME)) change.clear &= ~value;
}

void clear_attribute(MountChange& change, uint64_t value) {
    change.set &= ~value;
    change.clear |= value;
}

void apply_effect(MountRequest& request, const Option& option) {
    using Kind = MountRequest::Kind;
    switch (option.effect) {
        case Effect::set: set_attribute(request.change, option.value); break;
        case Effect::clear: clear_attribute(request.change, option.value); break;
        case Effect::recursive_set: set_attribute(request.recursive_change, option.value); break;
        case Effect::recursive_clear: clear_attribute(request.recursive_change, option.value); break;
        case Effect::propagation: request.change.propagation = option.value; break;
        case Effect::recursive_propagation: request.recursive_change.propagation = option.value; break;
        case Effect::bind:
        case Effect::recursive_bind:
            if (request.kind != Kind::remount) request.kind = Kind::bind;  // "remount,bind": of this mount alone
            request.recursive |= option.effect == Effect::recursive_bind;
            break;
        case Effect::remount: request.kind = Kind::remount; break;
        case Effect::copy_up: request.copy_up = true; break;
        case Effect::id_map: request.id_maps.emplace(); break;
        case Effect::recursive_id_map:
            request.id_maps.emplace();
            request.recursive_id_maps = true;
            break;
        case Effect::ignore: break;
    }
}

void read_option(MountRequest& request, const std::string& text) {
    const auto known = std::find_if(std::begin(kOptions), std::end(kOptions),
                                    [&](const Option& option) { return option.name == text; });
    if (known != std::end(kOptions)) {
        apply_effect(request, *known);
        return;
    }
    const size_t equals = text.find('=');
    if (equals == std::string::npos) request.filesystem.options.push_back({text, "", true});
    else request.filesystem.options.push_back({text.substr(0, equals), text.substr(equals + 1)});
}

Result<void> finish_bind(MountRequest& request, const Mount& mount, const Spec& spec, const PlanOptions& options) {
    request.filesystem.source =
        mount.source.starts_with('/') ? mount.source : concat(options.bundle, "/", mount.source);
    request.filesystem.options.clear();  // a bind has no file system of its own to take them
    if (!mount.uid_mappings.empty() || !mount.gid_mappings.empty()) {
        if (!request.id_maps) request.recursive_id_maps = request.recursive;
        request.id_maps.emplace();
    }
    if (!request.id_maps) return {};
    const bool own = !mount.uid_mappings.empty();
    const HostFacts as_root;  // an id-mapped mount takes root anyway
    *request.id_maps = plan_id_maps(own ? mount.uid_mappings : spec.linux_.uid_mappings,
                                    own ? mount.gid_mappings : spec.linux_.gid_mappings, as_root);
    if (!request.id_maps->uids.empty()) return {};
    return plain_error(
        concat(request.label, ": idmap needs uidMappings and gidMappings of the mount or of the container"));
}

// Those of the kernel's own have one instance for all, or labels that only the policy knows.
bool takes_label(std::string_view type) { return type != "proc" && type != "sysfs" && type != "mqueue"; }

void finish_filesystem(MountRequest& request, const Mount& mount, const std::string& label) {
    request.filesystem.type = mount.type;
    request.filesystem.source = mount.source;
    // What starts with files becomes read-only when they are there.
    const uint64_t late = request.copy_up ? request.change.set & MOUNT_ATTR_RDONLY : 0;
    request.filesystem.attributes = request.change.set & ~late;
    if (request.filesystem.attributes & MOUNT_ATTR_RDONLY) request.filesystem.options.push_back({"ro", "", true});
    if (!label.empty() && takes_label(mount.type)) request.filesystem.options.push_back({"context", label});
    request.change.set = late;
    request.change.clear = 0;
    const bool in_dev = mount.destination == "/dev" || mount.destination.starts_with("/dev/");
    request.plain_destination = mount.type == "proc" || mount.type == "sysfs" || in_dev;
}

// The host's layout, with the container's own groups: what programs look for where there is cgroup v1.
void finish_cgroup_tree(MountRequest& request, const CgroupPath& place) {
    const auto name_of = [](const std::string& mount) { return mount.substr(mount.rfind('/') + 1); };
    request.kind = MountRequest::Kind::cgroup_tree;
    request.filesystem.type = "tmpfs";
    request.filesystem.options = {{"mode", "755"}};
    for (const std::string& mount : v1_mounts(place)) {
        request.hierarchies.push_back({name_of(mount), mount + place.path});
    }
    if (!place.mount.empty()) request.hierarchies.push_back({name_of(place.mount), place.mount + place.path});
    for (const auto& [controller, mount] : place.v1) {
        if (controller != name_of(mount)) request.hierarchy_links.push_back({controller, name_of(mount)});
    }
}

bool has_namespace(const Linux& config, NamespaceType type) {
    return std::any_of(config.namespaces.begin(), config.namespaces.end(),
                       [type](const Namespace& one) { return one.type == type; });
}

// Mounting cgroup2 anew, outside of a cgroup namespace, would give its options to the host's own mount as well: what is
// there already is bound instead, or in a user namespace, which is not to see it all, the container's part of it.
void choose_cgroup_source(MountRequest& request, const Linux& config, const CgroupPath& place) {
    const bool own_part = has_namespace(config, NamespaceType::cgroup) || has_namespace(config, NamespaceType::user);
    if (own_part) request.cgroup_source = place.exists() ? place.mount + place.path : "";
    else request.cgroup_source = place.exists() ? place.mount : "/sys/fs/cgroup";
    request.bind_cgroup = !has_namespace(config, NamespaceType::cgroup) && !request.cgroup_source.empty();
}

void finish_cgroup(MountRequest& request, const Linux& config, const CgroupPlan& cgroup) {
    request.kind = MountRequest::Kind::cgroup;
    request.filesystem.type = "cgroup2";
    request.filesystem.source = "cgroup";
    request.filesystem.attributes = request.change.set;
    request.change.set = request.change.clear = 0;
    if (!cgroup.place.v1.empty()) finish_cgroup_tree(request, cgroup.place);
    else choose_cgroup_source(request, config, cgroup.place);
}

}  // namespace

std::vector<std::string_view> mount_option_names() {
    std::vector<std::string_view> names;
    for (const Option& option : kOptions) names.push_back(option.name);
    return names;
}

Result<std::vector<MountRequest>> plan_mounts(const Spec& spec, const PlanOptions& options, const CgroupPlan& cgroup) {
    std::vector<MountRequest> requests;
    for (size_t index = 0; index < spec.mounts.size(); ++index) {
        const Mount& mount = spec.mounts[index];
        MountRequest request;
        request.label = concat("mounts[", index, "] ", mount.destination);
        request.destination = mount.destination;
        request.kind = mount.type == "bind" ? MountRequest::Kind::bind : MountRequest::Kind::filesystem;
        for (const std::string& option : mount.options) read_option(request, option);
        if (request.kind == MountRequest::Kind::bind) TRY(finish_bind(request, mount, spec, options));
        else if (request.kind == MountRequest::Kind::filesystem && mount.type == "cgroup")
            finish_cgroup(request, spec.linux_, cgroup);
        else if (request.kind == MountRequest::Kind::filesystem)
            finish_filesystem(request, mount, spec.linux_.mount_label);
        requests.push_back(std::move(request));
    }
    return requests;
}

// Device nodes and links of /dev.

namespace {

constexpr mode_t kDefaultMode = 0666;

// The devices that the specification asks for in every container.
constexpr struct {
    const char* path;
    unsigned major;
    unsigned minor;
} kDefaultDevices[] = {
    {"/dev/null", 1, 3},   {"/dev/zero", 1, 5},    {"/dev/full", 1, 7},
    {"/dev/random", 1, 8}, {"/dev/urandom", 1, 9}, {"/dev/tty", 5, 0},
};

constexpr struct {
    const char* path;
    const char* target;
} kLinks[] = {
    {"/dev/fd", "/proc/self/fd"},       {"/dev/stdin", "/proc/self/fd/0"}, {"/dev/stdout", "/proc/self/fd/1"},
    {"/dev/stderr", "/proc/self/fd/2"}, {"/dev/core", "/proc/kcore"},      {"/dev/ptmx", "pts/ptmx"},
};

mode_t file_type(char type) { return type == 'b' ? S_IFBLK : type == 'p' ? S_IFIFO : S_IFCHR; }

DeviceNode configured_node(const Device& device) {
    DeviceNode node;
    node.path = device.path;
    node.mode = file_type(device.type) | (device.file_mode.value_or(kDefaultMode) & 07777);
    node.device = makedev(static_cast<unsigned>(device.major), static_cast<unsigned>(device.minor));
    node.uid = device.uid.value_or(0);
    node.gid = device.gid.value_or(0);
    return node;
}

// The host's own /dev, bound: its nodes and links are there already, and are not the container's to change.
bool binds_dev(const std::vector<MountRequest>& mounts) {
    return std::any_of(mounts.begin(), mounts.end(), [](const MountRequest& mount) {
        return mount.kind == MountRequest::Kind::bind && (mount.destination == "/dev" || mount.destination == "/dev/");
    });
}

}  // namespace

void plan_devices(const Spec& spec, Plan& plan) {
    if (binds_dev(plan.mounts)) return;
    for (const Device& device : spec.linux_.devices) plan.devices.push_back(configured_node(device));
    for (const auto& standard : kDefaultDevices) {
        const bool configured = std::any_of(plan.devices.begin(), plan.devices.end(),
                                            [&](const DeviceNode& node) { return node.path == standard.path; });
        if (!configured)
            plan.devices.push_back(
                {standard.path, S_IFCHR | kDefaultMode, makedev(standard.major, standard.minor), 0, 0});
    }
    for (const auto& link : kLinks) plan.links.push_back({link.path, link.target});
}

}  // namespace pinfold
