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

// Words for the whole file system: fsconfig(2) knows them, mount(2) takes them as bits, and file systems themselves
// refuse them.
constexpr struct {
    std::string_view word;
    unsigned long flag;
} kSuperblockWords[] = {{"ro", MS_RDONLY},         {"sync", MS_SYNCHRONOUS}, {"async", 0}, {"dirsync", MS_DIRSYNC},
                        {"lazytime", MS_LAZYTIME}, {"nolazytime", 0},        {"mand", 64}, {"nomand", 0}};

// In one text of all options a comma ends a value, unless the file system knows a way to write it.
Result<std::string> classic_value(const std::string& type, const FilesystemOption& option) {
    if (option.value.find(',') == std::string::npos) return option.value;
    if (option.key.ends_with("context")) return concat('"', option.value, '"');  // SELinux's categories
    if (type != "overlay")
        return plain_error(concat("option ", option.key, ": a comma cannot be told from the end of the value"));
    std::string escaped;
    for (const char c : option.value) {
        const bool is_escaped = escaped.ends_with('\\') && !escaped.ends_with("\\\\");
        if (c == ',' && !is_escaped) escaped += '\\';
        escaped += c;
    }
    return escaped;
}

struct ClassicOptions {
    unsigned long flags = 0;
    std::string data;
};

Result<ClassicOptions> classic_options(const FilesystemRequest& request) {
    ClassicOptions options;
    for (const FilesystemOption& option : request.options) {
        const auto known =
            std::ranges::find_if(kSuperblockWords, [&](const auto& entry) { return entry.word == option.key; });
        if (option.is_flag && known != std::end(kSuperblockWords)) {
            options.flags |= known->flag;
            continue;
        }
        const std::string value = TRY(classic_value(request.type, option));
        options.data += concat(options.data.empty() ? "" : ",", option.key, option.is_flag ? "" : "=", value);
    }
    // The kernel takes one page and says nothing of the rest.
    if (options.data.size() < size_t(::sysconf(_SC_PAGESIZE))) return options;
    return plain_error(concat("the options have ", options.data.size(), " bytes, more than the kernel takes"))
        .with_hint("use fewer layers, or shorter paths");
}

// fsconfig takes values of at most 255 bytes: an overlay of many layers needs mount(2).
bool needs_classic_mount(const FilesystemRequest& request) {
    const auto is_long = [](const FilesystemOption& option) { return option.value.size() > kMaxOptionValue; };
    return request.source.size() > kMaxOptionValue || std::ranges::any_of(request.options, is_long);
}

constexpr const char* kScratchPlace = "mount";

Result<UniqueFd> mount_and_clone(const FilesystemRequest& request, int directory) {
    const ClassicOptions options = TRY(classic_options(request));
    if (::fchdir(directory) != 0) return errno_error("enter a directory in memory");
    if (::mkdir(kScratchPlace, 0700) != 0) return errno_error("make a directory in memory");
    if (::mount(request.source.c_str(), kScratchPlace, request.type.c_str(), options.flags, options.data.c_str()) != 0)
        return errno_error(concat("mount ", request.type, " with ", quoted(options.data)));
    UniqueFd mount = TRY(clone_tree(AT_FDCWD, kScratchPlace, false));
    TRY(change_mount(mount.get(), {.set = request.attributes, .clear = MOUNT_ATTR__ATIME}, false));
    return mount;
}

// mount(2) places what it makes. So that this has no path and no attributes of its own to get wrong, it is placed where
// nobody looks, in memory over "/", and taken from there as a detached mount like any other.
Result<UniqueFd> make_classic_filesystem(const FilesystemRequest& request) {
    const UniqueFd memory = TRY(make_filesystem({.type = "tmpfs", .source = "tmpfs"}));
    const UniqueFd root(::open("/", O_PATH | O_DIRECTORY | O_CLOEXEC));
    if (!root) return errno_error("open /");
    TRY(place_mount(memory.get(), root.get()));
    Result<UniqueFd> mount = mount_and_clone(request, memory.get());
    if (::fchdir(memory.get()) != 0 || ::umount2(".", MNT_DETACH) != 0)
        return errno_error("leave the directory in memory");
    if (::chdir("/") != 0) return errno_error("enter /");
    return mount;
}

}  // namespace

Result<UniqueFd> make_filesystem(const FilesystemRequest& request) {
    if (needs_classic_mount(request)) return make_classic_filesystem(request);
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

static bool is_directory(int fd) {
    struct stat info {};
    return ::fstat(fd, &info) == 0 && S_ISDIR(info.st_mode);
}

Result<void> place_mount(int mount_fd, int target_fd) {
    if (::move_mount(mount_fd, "", target_fd, "", MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH) != 0) {
        Error error = errno_error("move_mount");
        if (error.code == EINVAL && is_directory(mount_fd) != is_directory(target_fd))
            return plain_error("neither can a file lie over a directory, nor a directory over a file")
                .with_hint("name a destination of the same kind, or one that is not there yet");
        return error;
    }
    return {};
}

}  // namespace pinfold
