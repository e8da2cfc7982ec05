// Device nodes and the usual links in /dev.
#include "kernel/devices.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cerrno>

#include "base/fs.hpp"
#include "base/strings.hpp"
#include "kernel/mounts.hpp"

namespace pinfold {

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

Result<void> make_node(const RootFd& root, const DeviceNode& node) {
    const RootFd::Place place = TRY(root.place_of(node.path));
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

Result<void> make_link(const RootFd& root, const Link& link) {
    const RootFd::Place place = TRY(root.place_of(link.path));
    if (::symlinkat(link.target.c_str(), place.directory.get(), place.name.c_str()) == 0 || errno == EEXIST) return {};
    return errno_error("symlink");
}

}  // namespace

Result<void> make_devices(const RootFd& root, std::span<const DeviceNode> nodes, bool bind_from_host) {
    for (const DeviceNode& node : nodes) {
        const bool bound = bind_from_host && !S_ISFIFO(node.mode);
        TRY_IN(node.path, bound ? bind_node(root, node) : make_node(root, node));
    }
    return {};
}

Result<void> make_links(const RootFd& root, std::span<const Link> links) {
    for (const Link& link : links) TRY_IN(link.path, make_link(root, link));
    return {};
}

Result<void> bind_console(const RootFd& root, int slave_fd) {
    // An image must not choose what the terminal covers: no symlink is followed (CVE-2025-52565).
    const UniqueFd target = TRY(root.make_plain_file("/dev/console"));
    const UniqueFd tree = TRY(clone_tree(slave_fd, "", false));
    return place_mount(tree.get(), target.get());
}

}  // namespace pinfold
