// The mounts of a config.json, made and placed.
#include "kernel/container_mounts.hpp"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/fs.hpp"
#include "base/log.hpp"
#include "base/strings.hpp"
#include "kernel/copy_up.hpp"
#include "kernel/mounts.hpp"

namespace pinfold {

namespace {

// What a payload reads about the machine, and others than the kernel may tell it: lxcfs does.
constexpr std::string_view kToldByOthers[] = {
    "/proc/cpuinfo",
    "/proc/meminfo",
    "/proc/stat",
    "/proc/uptime",
    "/proc/diskstats",
    "/proc/loadavg",
    "/proc/swaps",
    "/proc/slabinfo",
    "/proc/net/dev",
    "/proc/sys/kernel/ns_last_pid",
    "/proc/sys/crypto/fips_enabled",
};

constexpr ino_t kRootOfProc = 1;

bool is_in_proc(int fd) {
    struct statfs info {};
    return ::fstatfs(fd, &info) == 0 && info.f_type == PROC_SUPER_MAGIC;
}

bool is_proc(int fd) {
    struct stat info {};
    return is_in_proc(fd) && ::fstat(fd, &info) == 0 && info.st_ino == kRootOfProc;
}

// Whatever lies over a file of /proc gets what is written there for the kernel: labels, settings (CVE-2019-16884). And
// what lies over all of it gets the masks. Another proc is as good as the one that it covers.
Result<void> check_cover(int mount_fd, int target_fd, const std::string& destination) {
    if (!is_in_proc(target_fd) || (is_proc(target_fd) && is_proc(mount_fd))) return {};
    if (std::ranges::find(kToldByOthers, destination) != std::end(kToldByOthers)) return {};
    return plain_error("nothing may lie over the kernel's own files in /proc")
        .with_hint("drop this mount; to hide a file, name it in linux.maskedPaths");
}

// A mount over the root itself would lie where no path of the container's leads; a symlink can lead there.
Result<void> check_below(const RootFd& root, int target_fd) {
    if (!TRY(root.is_top(target_fd))) return {};
    return plain_error("the destination is the root itself").with_hint("mount it below the root");
}

Result<void> place(const RootFd& root, int mount_fd, int target_fd, const MountRequest& request) {
    TRY(check_below(root, target_fd));
    TRY(check_cover(mount_fd, target_fd, request.destination));
    return place_mount(mount_fd, target_fd);
}

Result<UniqueFd> open_directory(const RootFd& root, const MountRequest& request) {
    if (!request.plain_destination) return root.make_directory(request.destination);
    Result<UniqueFd> found = root.open_without_symlinks(request.destination, O_PATH | O_DIRECTORY);
    if (found) return found;
    if (found.error().code == ENOENT) return root.make_plain_directory(request.destination);
    if (found.error().code != ELOOP) return found;
    return plain_error(concat(request.filesystem.type,
                              " must be mounted on a plain directory, and this path leads through a symlink"))
        .with_hint("remove the symlink from the image");
}

Result<void> change(int mount_fd, const MountRequest& request) {
    if (!request.recursive_change.empty()) TRY(change_mount(mount_fd, request.recursive_change, true));
    if (!request.change.empty()) TRY(change_mount(mount_fd, request.change, false));
    return {};
}

Result<void> apply_bind(const RootFd& root, const MountRequest& request, const UniqueFd& tree) {
    struct stat info {};
    if (::fstat(tree.get(), &info) != 0) return errno_error("stat the source");
    const Result<UniqueFd> target =
        S_ISDIR(info.st_mode) ? root.make_directory(request.destination) : root.make_file(request.destination);
    if (!target && target.error().code == EROFS)
        return Error(target.error()).with_hint("make it before: what it lies in is read-only");
    if (!target) return target.error();
    TRY(change(tree.get(), request));
    return place(root, tree.get(), target->get(), request);
}

// What the image has at the destination, opened for reading: the O_PATH descriptor cannot be listed.
Result<void> copy_up(int destination, int mount_fd) {
    const UniqueFd from(::openat(destination, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!from) return errno_error("open the image's directory");
    TRY_IN("tmpcopyup", copy_tree(from.get(), mount_fd));
    return {};
}

Error explain(Error error, const std::string& type) {
    if (error.code != EPERM) return error;
    if (type == "sysfs") {
        return std::move(error).with_hint(
            "sysfs needs a network namespace of the container's own; or bind /sys instead");
    }
    if (type == "proc") {
        return std::move(error).with_hint(
            "proc needs a pid namespace of the container's own and a host /proc without masks");
    }
    if (type == "cgroup2") {
        return std::move(error).with_hint("in a user namespace it needs a cgroup namespace of the container's own");
    }
    return error;
}

Result<void> apply_filesystem(const RootFd& root, const MountRequest& request, const UniqueFd& mount) {
    const UniqueFd target = TRY(open_directory(root, request));
    TRY(check_below(root, target.get()));
    TRY(check_cover(mount.get(), target.get(), request.destination));
    if (request.copy_up) TRY(copy_up(target.get(), mount.get()));
    TRY(change(mount.get(), request));
    return place_mount(mount.get(), target.get());
}

Result<UniqueFd> bind_cgroup(const MountRequest& request) {
    log_debug(concat(request.label, ": binding ", request.cgroup_source));
    UniqueFd mount = TRY(clone_tree(AT_FDCWD, request.cgroup_source, true));
    TRY(change_mount(mount.get(), MountChange{.set = request.filesystem.attributes}, true));
    return mount;
}

// Of a normal user's container without a group of its own there is nothing to show but what the user sees outside,
// which /sys would show as well. None of it is the container's: it cannot be written to.
Result<UniqueFd> bind_callers_cgroups(const MountRequest& request) {
    constexpr const char* kTree = "/sys/fs/cgroup";
    log_debug(concat(request.label, ": binding ", kTree));
    UniqueFd mount = TRY(clone_tree(AT_FDCWD, kTree, true));
    TRY(change_mount(mount.get(), MountChange{.set = request.filesystem.attributes | MOUNT_ATTR_RDONLY}, true));
    return mount;
}

Result<UniqueFd> make_cgroup(const MountRequest& request) {
    if (request.bind_cgroup) return bind_cgroup(request);
    Result<UniqueFd> mount = make_filesystem(request.filesystem);
    const bool refused = !mount && (mount.error().code == EPERM || mount.error().code == EBUSY);
    if (!refused) return mount;
    return request.cgroup_source.empty() ? bind_callers_cgroups(request) : bind_cgroup(request);
}

Result<void> bind_hierarchy(int tree, const MountRequest::Hierarchy& hierarchy, uint64_t attributes) {
    if (::mkdirat(tree, hierarchy.name.c_str(), 0755) != 0) return errno_error("make its directory");
    const UniqueFd target(::openat(tree, hierarchy.name.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (!target) return errno_error("open its directory");
    const UniqueFd group = TRY(clone_tree(AT_FDCWD, hierarchy.source, false));
    TRY(change_mount(group.get(), MountChange{.set = attributes}, false));
    return place_mount(group.get(), target.get());
}

// It becomes read-only when it is filled.
Result<UniqueFd> make_cgroup_tree(const MountRequest& request) {
    FilesystemRequest writable = request.filesystem;
    writable.attributes &= ~uint64_t{MOUNT_ATTR_RDONLY};
    return make_filesystem(writable);
}

// What a host with cgroup v1 has there: each hierarchy in a directory, here with the container's own group in it. The
// tmpfs is ours alone until the payload runs, so names in it are safe.
Result<void> apply_cgroup_tree(const RootFd& root, const MountRequest& request, const UniqueFd& tree) {
    const uint64_t attributes = request.filesystem.attributes;
    const UniqueFd target = TRY(open_directory(root, request));
    TRY(place(root, tree.get(), target.get(), request));
    for (const MountRequest::Hierarchy& hierarchy : request.hierarchies) {
        TRY_IN(hierarchy.name, bind_hierarchy(tree.get(), hierarchy, attributes));
    }
    for (const Link& link : request.hierarchy_links) {
        if (::symlinkat(link.target.c_str(), tree.get(), link.path.c_str()) != 0) return errno_error(link.path);
    }
    TRY(change_mount(tree.get(), MountChange{.set = attributes, .clear = MOUNT_ATTR__ATIME}, false));
    return change(tree.get(), request);
}

Result<void> apply_remount(const RootFd& root, const MountRequest& request) {
    const UniqueFd target = TRY(root.open(request.destination, O_PATH));
    return change(target.get(), request);
}

// A descriptor that was opened before the clone leads to a mount of the parent's namespace, of which a child in its own
// can clone nothing. It can by the file's name, which may lead elsewhere by now: it has to be that file still.
Result<UniqueFd> clone_by_name(const std::string& descriptor, bool recursive) {
    const std::string name = link_target(descriptor);
    if (name.empty()) return errno_error("find the name of the source");
    UniqueFd tree = TRY(clone_tree(AT_FDCWD, name, recursive));
    struct stat wanted {};
    struct stat found {};
    if (::stat(descriptor.c_str(), &wanted) != 0 || ::fstat(tree.get(), &found) != 0) return errno_error(name);
    if (wanted.st_dev != found.st_dev || wanted.st_ino != found.st_ino)
        return plain_error(concat(quoted(name), " was replaced before it could be mounted"));
    return tree;
}

Result<UniqueFd> make_mount(const MountRequest& request) {
    switch (request.kind) {
        case MountRequest::Kind::bind: return open_bind_source(request);
        case MountRequest::Kind::filesystem: return make_filesystem(request.filesystem);
        case MountRequest::Kind::cgroup: return make_cgroup(request);
        case MountRequest::Kind::cgroup_tree: return make_cgroup_tree(request);
        case MountRequest::Kind::remount: return UniqueFd();
    }
    return plain_error("unknown kind of mount");
}

}  // namespace

Result<UniqueFd> clone_source(const std::string& source, bool recursive) {
    Result<UniqueFd> tree = clone_tree(AT_FDCWD, source, recursive);
    const bool elsewhere = !tree && tree.error().code == EINVAL && source.starts_with("/proc/self/fd/");
    return elsewhere ? clone_by_name(source, recursive) : std::move(tree);
}

Result<void> map_mount_ids(int tree, const IdMaps& maps, bool recursive) {
    const UniqueFd user_namespace = TRY(make_user_namespace(maps));
    const MountChange mapped{.set = MOUNT_ATTR_IDMAP, .userns_fd = user_namespace.get()};
    TRY_IN("map the ids of the mount", change_mount(tree, mapped, recursive));
    return {};
}

Result<UniqueFd> open_bind_source(const MountRequest& request) {
    UniqueFd tree = TRY(clone_source(request.filesystem.source, request.recursive));
    if (request.id_maps) TRY(map_mount_ids(tree.get(), *request.id_maps, request.recursive_id_maps));
    return tree;
}

Result<UniqueFd> prepare_mount(const MountRequest& request) {
    Result<UniqueFd> mount = make_mount(request);
    if (!mount) return explain(std::move(mount).error(), request.filesystem.type);
    return mount;
}

Result<void> apply_mount(const RootFd& root, const MountRequest& request, UniqueFd mount) {
    switch (request.kind) {
        case MountRequest::Kind::bind: return apply_bind(root, request, mount);
        case MountRequest::Kind::filesystem:
        case MountRequest::Kind::cgroup: return apply_filesystem(root, request, mount);
        case MountRequest::Kind::cgroup_tree: return apply_cgroup_tree(root, request, mount);
        case MountRequest::Kind::remount: return apply_remount(root, request);
    }
    return plain_error("unknown kind of mount");
}

namespace {

bool is_requested(const struct stat& found, const DeviceNode& node) {
    if ((found.st_mode & S_IFMT) != (node.mode & S_IFMT)) return false;
    return S_ISFIFO(node.mode) || found.st_rdev == node.device;
}

Result<void> check_existing(const RootFd::Place& place, const DeviceNode& node) {
    struct stat found {};
    if (::fstatat(place.directory.get(), place.name.c_str(), &found, AT_SYMLINK_NOFOLLOW) != 0)
        return errno_error("stat");
    if (is_requested(found, node)) return {};
    return plain_error("the root file system has something else at this path")
        .with_hint("remove it from the image, or mount a tmpfs over its directory");
}

Result<void> bind_node(const RootFd& root, const DeviceNode& node) {
    const UniqueFd source = TRY_IN("the host's device", open_at(AT_FDCWD, node.path, O_PATH | O_NOFOLLOW));
    struct stat found {};
    if (::fstat(source.get(), &found) != 0) return errno_error("stat the host's device");
    if (!is_requested(found, node)) return plain_error("the host has another device at this path");
    const UniqueFd target = TRY(root.make_plain_file(node.path));
    const UniqueFd tree = TRY(clone_tree(source.get(), "", false));
    return place_mount(tree.get(), target.get());
}

Result<void> make_node(const RootFd& root, const DeviceNode& node, Neighbours& places) {
    const RootFd::Place& place = *TRY(places.place_of(root, node.path));
    // The caller has cleared the umask: the mode is exact.
    if (::mknodat(place.directory.get(), place.name.c_str(), node.mode, node.device) != 0) {
        if (errno == EEXIST) return check_existing(place, node);
        if (errno == EPERM) return bind_node(root, node);  // we run in a user namespace ourselves
        return errno_error("mknod");
    }
    if (node.uid == 0 && node.gid == 0) return {};
    if (::fchownat(place.directory.get(), place.name.c_str(), node.uid, node.gid, AT_SYMLINK_NOFOLLOW) != 0) {
        return errno_error("chown");
    }
    return {};
}

Result<void> make_link(const RootFd& root, const Link& link, Neighbours& places) {
    const RootFd::Place& place = *TRY(places.place_of(root, link.path));
    if (::symlinkat(link.target.c_str(), place.directory.get(), place.name.c_str()) == 0 || errno == EEXIST) return {};
    return errno_error("symlink");
}

}  // namespace

Result<void> make_devices(const RootFd& root, std::span<const DeviceNode> nodes, bool bind_from_host) {
    Neighbours places;
    for (const DeviceNode& node : nodes) {
        const bool bound = bind_from_host && !S_ISFIFO(node.mode);
        TRY_IN(node.path, bound ? bind_node(root, node) : make_node(root, node, places));
    }
    return {};
}

Result<void> make_links(const RootFd& root, std::span<const Link> links) {
    Neighbours places;
    for (const Link& link : links) TRY_IN(link.path, make_link(root, link, places));
    return {};
}

Result<void> bind_console(const RootFd& root, int slave_fd) {
    // An image must not choose what the terminal covers: no symlink is followed (CVE-2025-52565).
    const UniqueFd target = TRY(root.make_plain_file("/dev/console"));
    const UniqueFd tree = TRY(clone_tree(slave_fd, "", false));
    return place_mount(tree.get(), target.get());
}

}  // namespace pinfold
