// Device nodes and links of /dev.
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <algorithm>

#include "plan/plan.hpp"

namespace pinfold {

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
