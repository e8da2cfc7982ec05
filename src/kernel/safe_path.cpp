// Paths inside a root, resolved by the kernel under a held descriptor.
#include "kernel/safe_path.hpp"

#include <sys/fsuid.h>
#include <sys/stat.h>

#include <cerrno>

#include "base/fs.hpp"
#include "base/strings.hpp"
#include "kernel/syscalls.hpp"

namespace pinfold {

namespace {

constexpr int kMaxSymlinks = 40;  // the kernel's own limit

Result<UniqueFd> open_resolved(int dir, const std::string& path, int flags, uint64_t resolve) {
    open_how how{};
    how.flags = static_cast<uint64_t>(flags | O_CLOEXEC);
    how.resolve = resolve;
    // EAGAIN: a rename elsewhere made ".." ambiguous. A container that renames in a loop must not get more
    // than a bounded number of tries out of us.
    for (int tries = 0; tries < 128; ++tries) {
        UniqueFd fd(sys_openat2(dir, path.c_str(), how));
        if (fd) return fd;
        if (errno != EAGAIN && errno != EINTR) break;
    }
    if (errno == ENOSYS) {
        return errno_error("openat2").with_hint(
            "pinfold needs Linux 5.12 or newer, and no seccomp filter around it that hides openat2");
    }
    return errno_error(concat("open ", path, " in the root file system"));
}

std::string relative(std::string_view path) {
    while (path.starts_with('/')) path.remove_prefix(1);
    return path.empty() ? "." : std::string(path);
}

struct SplitPath {
    std::string_view parent;
    std::string_view name;
};

SplitPath split_last(std::string_view path) {
    while (path.size() > 1 && path.ends_with('/')) path.remove_suffix(1);
    const size_t slash = path.rfind('/');
    if (slash == std::string_view::npos) return {"", path};
    return {path.substr(0, slash), path.substr(slash + 1)};
}

Result<SplitPath> split_name(std::string_view path) {
    const SplitPath split = split_last(path);
    if (!split.name.empty() && split.name != "." && split.name != "..") return split;
    return plain_error(concat(quoted(path), " does not name a file"));
}

Result<std::string> read_link(int dir, const std::string& name) {
    std::string target = link_target(name, dir);
    if (target.empty()) return errno_error(concat("read link ", name));
    return target;
}

// 0, or why not. EEXIST: another one made it, the caller looks what it is.
int try_make(int parent, const std::string& name, bool directory) {
    const int result =
        directory ? ::mkdirat(parent, name.c_str(), 0755) : ::mknodat(parent, name.c_str(), S_IFREG | 0644, 0);
    return result == 0 || errno == EEXIST ? 0 : errno;
}

}  // namespace

Result<void> RootFd::make_entry(int parent, const std::string& name, bool directory) const {
    int error = try_make(parent, name, directory);
    if (error == EOVERFLOW && maker_) {
        const auto gid = static_cast<gid_t>(::setfsgid(maker_->gid));
        const auto uid = static_cast<uid_t>(::setfsuid(maker_->uid));  // without our capabilities over files
        error = try_make(parent, name, directory);
        ::setfsuid(uid);
        ::setfsgid(gid);
    }
    if (error == 0) return {};
    return errno_error(error, concat("make ", directory ? "directory " : "file ", name));
}

Result<UniqueFd> RootFd::open(std::string_view path, int flags) const {
    return open_resolved(fd_.get(), relative(path), flags, RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS);
}

Result<UniqueFd> RootFd::open_without_symlinks(std::string_view path, int flags) const {
    return open_resolved(fd_.get(), relative(path), flags,
                         RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_SYMLINKS);
}

Result<UniqueFd> RootFd::make_directory(std::string_view path) const { return make(path, true); }

Result<UniqueFd> RootFd::make_file(std::string_view path) const { return make(path, false); }

Result<RootFd::Place> RootFd::place_of(std::string_view path) const {
    const auto [parent, name] = TRY(split_name(path));
    Result<UniqueFd> directory = open_without_symlinks(parent, O_PATH | O_DIRECTORY);
    if (!directory && directory.error().code == ENOENT) directory = make_plain(parent, true);
    if (!directory && directory.error().code == ELOOP)
        return plain_error(concat(parent, " leads through a symlink")).with_hint("remove the symlink from the image");
    return Place{TRY(std::move(directory)), std::string(name)};
}

Result<RootFd::Identity> RootFd::identity_of(int fd) {
    struct statx info {};
    if (::statx(fd, "", AT_EMPTY_PATH, STATX_INO | STATX_MNT_ID, &info) != 0) return errno_error("stat a directory");
    return Identity{info.stx_mnt_id, info.stx_ino};
}

Result<bool> RootFd::is_top(int fd) const {
    if (!identity_) identity_ = TRY(identity_of(fd_.get()));
    const Identity other = TRY(identity_of(fd));
    return identity_->mount == other.mount && identity_->inode == other.inode;
}

Result<const RootFd::Place*> Neighbours::place_of(const RootFd& root, const std::string& path) {
    const auto [parent, name] = TRY(split_name(path));
    if (place_ && directory_ == parent) {
        place_->name = name;
        return &*place_;
    }
    place_.emplace(TRY(root.place_of(path)));
    directory_ = parent;
    return &*place_;
}

Result<UniqueFd> RootFd::make_plain_file(std::string_view path) const { return make_plain(path, false); }

Result<UniqueFd> RootFd::make_plain_directory(std::string_view path) const { return make_plain(path, true); }

Result<UniqueFd> RootFd::make_plain(std::string_view path, bool directory) const {
    const Place place = TRY(place_of(path));
    TRY(make_entry(place.directory.get(), place.name, directory));
    return open_resolved(place.directory.get(), place.name, O_PATH | (directory ? O_DIRECTORY : 0),
                         RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS);
}

Result<UniqueFd> RootFd::make(std::string_view wanted, bool directory) const {
    std::string path(wanted);
    for (int links = 0; links < kMaxSymlinks; ++links) {
        Result<UniqueFd> found = open(path, O_PATH | (directory ? O_DIRECTORY : 0));
        if (found || found.error().code != ENOENT) return found;
        const auto [parent, last] = TRY(split_name(path));
        const Place place{TRY(make_directory(parent)), std::string(last)};
        TRY(make_entry(place.directory.get(), place.name, directory));
        found = open_resolved(place.directory.get(), place.name, O_PATH | (directory ? O_DIRECTORY : 0),
                              RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS);
        if (found || found.error().code != ELOOP) return found;
        // A dangling symlink holds the name: what it points to, inside the root, is what has to be made.
        const std::string target = TRY(read_link(place.directory.get(), place.name));
        path = target.starts_with('/') ? target : concat(parent, "/", target);
    }
    return errno_error(ELOOP, concat("make ", wanted));
}

}  // namespace pinfold
