// The container's root.
#include "kernel/rootfs.hpp"

#include <fcntl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cerrno>

#include "base/fs.hpp"
#include "base/strings.hpp"
#include "kernel/mounts.hpp"
#include "kernel/syscalls.hpp"

namespace pinfold {

namespace {

Result<void> set_propagation(const char* path, uint64_t propagation, bool recursive) {
    mount_attr attributes{};
    attributes.propagation = propagation;
    const unsigned flags = recursive ? AT_RECURSIVE : 0;
    if (::mount_setattr(AT_FDCWD, path, flags, &attributes, sizeof attributes) != 0)
        return errno_error("set the propagation of mounts");
    return {};
}

// Whether something is mounted over the root that is ours by now, as seen by whoever goes up from it.
Result<bool> is_covered() {
    struct statx own {
    }, top{};
    if (::statx(AT_FDCWD, ".", 0, STATX_MNT_ID, &own) != 0 || ::statx(AT_FDCWD, "..", 0, STATX_MNT_ID, &top) != 0)
        return errno_error("look at the root's mount");
    return own.stx_mnt_id != top.stx_mnt_id;
}

Result<void> pivot_into_current_directory(bool host_mounts_shared) {
    // Both arguments the same: the old root ends up stacked over the new one, and no directory for it has to
    // exist in the container.
    UniqueFd host_root;
    if (host_mounts_shared) host_root = TRY(open_at(AT_FDCWD, "/", O_PATH | O_DIRECTORY));
    if (sys_pivot_root(".", ".") != 0) {
        return errno_error("pivot_root").with_hint("where the host's root is an initramfs, use --no-pivot");
    }
    // Unmounting a shared tree would unmount the host's too. Only that tree, though: "/" is the container's by now.
    if (host_root) TRY(change_mount(host_root.get(), MountChange{.propagation = MS_PRIVATE}, true));
    // The topmost goes first: the host's root, or what its owner has mounted over that.
    do {
        if (::umount2(".", MNT_DETACH) != 0) return errno_error("unmount the host's root");
    } while (TRY(is_covered()));
    return {};
}

}  // namespace

Result<void> isolate_mounts(const RootRequest& request) {
    const bool isolated = request.propagation == 0 || request.propagation == MS_UNBINDABLE;
    const uint64_t propagation = isolated ? uint64_t{MS_PRIVATE} : request.propagation;
    TRY(set_propagation("/", propagation, true));
    // The mount that the container's root is attached to must not be shared: pivot_root refuses it.
    if (propagation != MS_PRIVATE) TRY(set_propagation("/", MS_PRIVATE, false));
    return {};
}

Result<UniqueFd> open_root_source(const RootRequest& request) {
    UniqueFd tree = TRY(clone_tree(AT_FDCWD, request.path, true));
    if (request.made && request.made->below) TRY(map_mount_ids(tree.get(), *request.made->below, true));
    return tree;
}

Result<RootFd> attach_root(UniqueFd tree) {
    // Whatever the host shares, mounts made for this container stay in it.
    TRY(change_mount(tree.get(), MountChange{.propagation = MS_PRIVATE}, true));
    const UniqueFd host_root = TRY(open_at(AT_FDCWD, "/", O_PATH | O_DIRECTORY));
    TRY_IN("attach the root file system", place_mount(tree.get(), host_root.get()));
    return RootFd(std::move(tree));
}

Result<void> enter_root(const RootFd& root, const RootRequest& request) {
    if (request.readonly) {
        TRY_IN("make the root read-only", change_mount(root.get(), MountChange{.set = MOUNT_ATTR_RDONLY}, false));
    }
    if (::fchdir(root.get()) != 0) return errno_error("enter the root file system");
    if (request.pivot) TRY(pivot_into_current_directory(request.propagation == MS_SHARED));
    if (::chroot(".") != 0) return errno_error("chroot");
    if (request.propagation != 0) {
        TRY(set_propagation("/", request.propagation, request.recursive_propagation));
    }
    return {};
}

namespace {

// Where masks come from; each is opened when the first path needs it.
class MaskSources {
public:
    explicit MaskSources(const std::string& label) {
        if (!label.empty()) options_.push_back({"context", label});
    }

    Result<UniqueFd> null_device() {
        if (!null_) null_ = TRY(open_null());
        return clone_tree(null_.get(), "", false);
    }

    // The first request gets the file system itself. Once that is placed, it belongs to this mount namespace
    // and can be cloned for the others; kernels before 6.15 do not clone detached mounts.
    Result<UniqueFd> empty_directory() {
        if (empty_) return clone_tree(empty_.get(), "", false);
        UniqueFd mount = TRY(make_filesystem(
            {.type = "tmpfs",
             .source = "tmpfs",
             .options = options_,
             .attributes = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC}));
        empty_ = UniqueFd(::fcntl(mount.get(), F_DUPFD_CLOEXEC, 3));
        if (!empty_) return errno_error("duplicate the empty directory");
        return mount;
    }

private:
    static Result<UniqueFd> open_null() {
        UniqueFd fd = TRY(open_at(AT_FDCWD, "/dev/null", O_PATH | O_NOFOLLOW));
        struct stat info {};
        if (::fstat(fd.get(), &info) != 0) return errno_error("stat /dev/null");
        if (!S_ISCHR(info.st_mode) || info.st_rdev != makedev(1, 3)) {
            return plain_error("the host's /dev/null is not the null device, so nothing can be masked with it");
        }
        return fd;
    }

    std::vector<FilesystemOption> options_ = {{"mode", "0555"}, {"nr_inodes", "1"}, {"ro", "", true}};
    UniqueFd null_;
    UniqueFd empty_;
};

// Empty: there is no such path, and so nothing to hide or to protect.
Result<UniqueFd> open_if_there(const RootFd& root, const std::string& path) {
    Result<UniqueFd> target = root.open(path, O_PATH);
    if (!target && (target.error().code == ENOENT || target.error().code == ENOTDIR)) return UniqueFd();
    return target;
}

Result<void> mask(const RootFd& root, const std::string& path, MaskSources& sources) {
    const UniqueFd target = TRY(open_if_there(root, path));
    if (!target) return {};
    struct stat info {};
    if (::fstat(target.get(), &info) != 0) return errno_error("stat");
    const UniqueFd cover = TRY(S_ISDIR(info.st_mode) ? sources.empty_directory() : sources.null_device());
    return place_mount(cover.get(), target.get());
}

Result<void> make_readonly(const RootFd& root, const std::string& path) {
    const UniqueFd target = TRY(open_if_there(root, path));
    if (!target) return {};
    const UniqueFd tree = TRY(clone_tree(target.get(), "", true));
    TRY(change_mount(tree.get(), MountChange{.set = MOUNT_ATTR_RDONLY}, true));
    return place_mount(tree.get(), target.get());
}

}  // namespace

Result<void> mask_paths(const RootFd& root, std::span<const std::string> paths, const std::string& label) {
    MaskSources sources(label);
    for (const std::string& path : paths) TRY_IN(path, mask(root, path, sources));
    return {};
}

Result<void> make_paths_readonly(const RootFd& root, std::span<const std::string> paths) {
    for (const std::string& path : paths) TRY_IN(path, make_readonly(root, path));
    return {};
}

}  // namespace pinfold
