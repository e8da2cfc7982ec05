// Paths that a container must not read or not write.
#include "kernel/masked_paths.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <cerrno>

#include "base/fs.hpp"
#include "base/strings.hpp"
#include "kernel/mounts.hpp"

namespace pinfold {

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
