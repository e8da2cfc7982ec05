// Mounts as descriptors.
#include "kernel/mounts.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/strings.hpp"

namespace pinfold {

namespace {

constexpr size_t kMaxOptionValue = 255;

// The context's message queue says which option was wrong and why ("e tmpfs: Bad value for 'size'").
Error filesystem_error(int context, std::string_view what) {
    Error error = errno_error(what);
    char text[512];
    const ssize_t length = ::read(context, text, sizeof text);
    if (length > 2) error.message += concat(": kernel: ", std::string_view(text + 2, size_t(length) - 2));
    while (error.message.ends_with('\n')) error.message.pop_back();
    return error;
}

Result<void> set_option(int context, const FilesystemOption& option) {
    if (option.fd >= 0) {
        if (::fsconfig(context, FSCONFIG_SET_FD, option.key.c_str(), nullptr, option.fd) == 0) return {};
        return filesystem_error(context, concat("option ", option.key));
    }
    const int result = option.is_flag
                           ? ::fsconfig(context, FSCONFIG_SET_FLAG, option.key.c_str(), nullptr, 0)
                           : ::fsconfig(context, FSCONFIG_SET_STRING, option.key.c_str(), option.value.c_str(), 0);
    if (result == 0) return {};
    return filesystem_error(context, concat("option ", option.key, option.is_flag ? "" : "=", option.value));
}

unsigned long classic_flags(uint64_t attributes) {
    unsigned long flags = 0;
    if (attributes & MOUNT_ATTR_RDONLY) flags |= MS_RDONLY;
    if (attributes & MOUNT_ATTR_NOSUID) flags |= MS_NOSUID;
    if (attributes & MOUNT_ATTR_NODEV) flags |= MS_NODEV;
    if (attributes & MOUNT_ATTR_NOEXEC) flags |= MS_NOEXEC;
    if (attributes & MOUNT_ATTR_NODIRATIME) flags |= MS_NODIRATIME;
    if ((attributes & MOUNT_ATTR__ATIME) == MOUNT_ATTR_NOATIME) flags |= MS_NOATIME;
    if ((attributes & MOUNT_ATTR__ATIME) == MOUNT_ATTR_STRICTATIME) flags |= MS_STRICTATIME;
    return flags;
}

}  // namespace

Result<UniqueFd> make_filesystem(const FilesystemRequest& request) {
    const UniqueFd context(::fsopen(request.type.c_str(), FSOPEN_CLOEXEC));
    if (!context) return errno_error(concat("file system type ", quoted(request.type)));
    if (!request.source.empty()) TRY(set_option(context.get(), {"source", request.source}));
    for (const FilesystemOption& option : request.options) TRY(set_option(context.get(), option));
    if (::fsconfig(context.get(), FSCONFIG_CMD_CREATE, nullptr, nullptr, 0) != 0) {
        return filesystem_error(context.get(), concat("create ", request.type));
    }
    UniqueFd mount(::fsmount(context.get(), FSMOUNT_CLOEXEC, static_cast<unsigned>(request.attributes)));
    if (!mount) return filesystem_error(context.get(), concat("mount ", request.type));
    return mount;
}

bool needs_classic_mount(const FilesystemRequest& request) {
    return std::any_of(request.options.begin(), request.options.end(),
                       [](const FilesystemOption& option) { return option.value.size() > kMaxOptionValue; });
}

Result<void> classic_mount(const FilesystemRequest& request, int target_fd) {
    std::string data;
    for (const FilesystemOption& option : request.options) {
        data += concat(data.empty() ? "" : ",", option.key, option.is_flag ? "" : "=", option.value);
    }
    // "." after fchdir is the opened target itself, not a path that could be swapped.
    if (::fchdir(target_fd) != 0) return errno_error("enter the mount's target");
    if (::mount(request.source.c_str(), ".", request.type.c_str(), classic_flags(request.attributes), data.c_str()) !=
        0) {
        return errno_error(concat("mount ", request.type, " with ", quoted(data)));
    }
    if (::chdir("/") != 0) return errno_error("leave the mount's target");
    return {};
}

Result<UniqueFd> clone_tree(int dir, const std::string& path, bool recursive) {
    unsigned flags = OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC;
    if (recursive) flags |= AT_RECURSIVE;
    if (path.empty()) flags |= AT_EMPTY_PATH;
    UniqueFd tree(::open_tree(dir, path.c_str(), flags));
    if (!tree) return errno_error(concat("open_tree ", path));
    return tree;
}

Result<void> change_mount(int mount_fd, const MountChange& change, bool recursive) {
    mount_attr attributes{};
    attributes.attr_set = change.set;
    attributes.attr_clr = change.clear;
    attributes.propagation = change.propagation;
    attributes.userns_fd = change.userns_fd < 0 ? 0 : static_cast<uint64_t>(change.userns_fd);
    const unsigned flags = AT_EMPTY_PATH | (recursive ? AT_RECURSIVE : 0);
    if (::mount_setattr(mount_fd, "", flags, &attributes, sizeof attributes) != 0) return errno_error("mount_setattr");
    return {};
}

Result<void> place_mount(int mount_fd, int target_fd) {
    if (::move_mount(mount_fd, "", target_fd, "", MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH) != 0) {
        return errno_error("move_mount");
    }
    return {};
}

}  // namespace pinfold
