// The mounts and devices of a config.json, each as one request that needs no further decision.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "kernel/id_maps.hpp"
#include "kernel/mounts.hpp"
#include "kernel/safe_path.hpp"
#include "pinfold/result.hpp"

namespace pinfold {

// Device nodes and the usual links in /dev.

struct DeviceNode {
    std::string path;
    mode_t mode = 0;  // type and permissions, as mknod(2) takes them
    dev_t device = 0;
    uid_t uid = 0;
    gid_t gid = 0;
};

// Made with mknod, or bound from the host where a user namespace forbids mknod. Call it before pivot_root.
Result<void> make_devices(const RootFd& root, std::span<const DeviceNode> nodes, bool bind_from_host);

struct Link {
    std::string path;
    std::string target;
};

// What is there already is left alone.
Result<void> make_links(const RootFd& root, std::span<const Link> links);

// Binds the terminal's own end over /dev/console.
Result<void> bind_console(const RootFd& root, int slave_fd);

struct MountRequest {
    enum class Kind : uint8_t { bind, filesystem, cgroup, cgroup_tree, remount };
    // One entry of a cgroup_tree.
    struct Hierarchy {
        std::string name;    // "cpu,cpuacct"
        std::string source;  // the container's own group
    };

    std::string label;  // "mounts[3] /data", for messages
    Kind kind = Kind::bind;
    std::string destination;       // inside the container
    FilesystemRequest filesystem;  // .source is the host path of a bind
    bool recursive = false;        // rbind
    MountChange change;            // for binds and remounts; new file systems carry theirs in .filesystem.attributes
    MountChange recursive_change;  // rro and friends, and recursive propagation
    bool copy_up = false;
    bool plain_destination = false;  // no symlink on the way: /proc and /sys decide on masks (CVE-2019-19921)
    std::optional<IdMaps> id_maps;
    bool recursive_id_maps = false;
    std::vector<Hierarchy> hierarchies;  // Kind::cgroup_tree, a tmpfs with a bind for each
    std::vector<Link> hierarchy_links;   // in the same, "cpu" to "cpu,cpuacct"
    std::string cgroup_source;           // Kind::cgroup: what is bound where cgroup2 cannot be mounted anew ...
    bool bind_cgroup = false;            // ... or is not to be
};

// The detached tree of a path, which may be that of a descriptor in /proc/self/fd.
Result<UniqueFd> clone_source(const std::string& source, bool recursive);

// Of a detached tree that has none so far. Takes root, and a file system that can.
Result<void> map_mount_ids(int tree, const IdMaps& maps, bool recursive);

// A bind's detached tree, with its id map if it has one. The parent calls this before the clone where the child
// could not (a user namespace cannot reach the source, or map ids).
Result<UniqueFd> open_bind_source(const MountRequest& request);

// The detached mount, with nothing placed yet; empty for a remount. All of them are made before the container's root is
// attached over "/": from then on a path of the host that leads through "/.." leads into the container.
Result<UniqueFd> prepare_mount(const MountRequest& request);

// Gives it all that was asked for, and places it.
Result<void> apply_mount(const RootFd& root, const MountRequest& request, UniqueFd mount);

}  // namespace pinfold
