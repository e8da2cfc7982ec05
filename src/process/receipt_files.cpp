// The receipt's lines on the file system: flags of mounts, masked and read-only paths.
#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/sysmacros.h>

#include <algorithm>
#include <cerrno>
#include <optional>

#include "base/fs.hpp"
#include "base/strings.hpp"
#include "kernel/safe_path.hpp"
#include "process/receipt_parts.hpp"

namespace pinfold {

namespace {

// MOUNT_ATTR_RDONLY, _NOSUID, _NODEV and _NOEXEC are the same bits in statfs(2).
constexpr uint64_t kKnownFlags = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC;

struct Place {
    uint64_t flags = 0;
    bool is_mount = false;  // something was mounted right there
    bool is_hidden = false;
};

bool is_empty_file_system(const struct statfs& system) {
    return system.f_type == TMPFS_MAGIC && (uint64_t(system.f_flags) & MOUNT_ATTR_RDONLY) != 0;
}

// Nothing: there is no such path. What cannot be looked at has no flag that was asked for.
std::optional<Place> look_at(const RootFd& root, const std::string& path) {
    const Result<UniqueFd> fd = root.open(path, O_PATH);
    if (!fd && (fd.error().code == ENOENT || fd.error().code == ENOTDIR)) return std::nullopt;
    struct statfs system {};
    struct statx file {};
    if (!fd || ::fstatfs(fd->get(), &system) != 0) return Place{};
    if (::statx(fd->get(), "", AT_EMPTY_PATH, STATX_BASIC_STATS, &file) != 0) return Place{};
    Place place{.flags = uint64_t(system.f_flags) & kKnownFlags};
    place.is_mount = (file.stx_attributes & STATX_ATTR_MOUNT_ROOT) != 0;
    const bool is_null = S_ISCHR(file.stx_mode) && file.stx_rdev_major == 1 && file.stx_rdev_minor == 3;
    place.is_hidden = place.is_mount && (S_ISDIR(file.stx_mode) ? is_empty_file_system(system) : is_null);
    return place;
}

bool lies_in(std::string_view path, std::string_view directory) {
    if (!path.starts_with(directory)) return false;
    return path.size() == directory.size() || directory.ends_with('/') || path[directory.size()] == '/';
}

// Something that was mounted later is what is seen there.
bool is_covered(const std::vector<MountRequest>& mounts, size_t index) {
    const auto covers = [&](const MountRequest& later) {
        return lies_in(mounts[index].destination, later.destination);
    };
    return std::any_of(mounts.begin() + ptrdiff_t(index) + 1, mounts.end(), covers);
}

uint64_t wanted_flags(const MountRequest& mount) {
    const uint64_t set = mount.filesystem.attributes | mount.change.set | mount.recursive_change.set;
    return set & kKnownFlags;
}

// "12 hidden", or "11 hidden, not /proc/kcore"
ReceiptLine counted_line(std::string name, std::string_view verb, size_t all, const std::vector<std::string>& failed) {
    std::string found = concat(all - failed.size(), ' ', verb);
    if (!failed.empty()) found += concat(", not ", join(failed, ", "));
    return equal_line(std::move(name), concat(all, ' ', verb), std::move(found));
}

template <class Holds>
void add_paths(std::string name, std::string_view verb, const std::vector<std::string>& paths, const RootFd& root,
               Holds holds, Receipt& receipt) {
    if (paths.empty()) return;
    std::vector<std::string> failed;
    for (const std::string& path : paths) {
        const std::optional<Place> place = look_at(root, path);
        if (place && !holds(*place)) failed.push_back(path);
    }
    receipt.push_back(counted_line(std::move(name), verb, paths.size(), failed));
}

void add_mounts(const std::vector<MountRequest>& mounts, const RootFd& root, Receipt& receipt) {
    size_t all = 0;
    std::vector<std::string> failed;
    for (size_t i = 0; i < mounts.size(); ++i) {
        const uint64_t wanted = wanted_flags(mounts[i]);
        if (is_covered(mounts, i)) continue;
        ++all;
        const std::optional<Place> place = look_at(root, mounts[i].destination);
        if (!place || !place->is_mount || (wanted & ~place->flags) != 0) failed.push_back(mounts[i].destination);
    }
    receipt.push_back(counted_line("mounts", "in place", all, failed));
}

}  // namespace

void add_file_lines(const Plan& plan, pid_t pid, Receipt& receipt) {
    Result<UniqueFd> opened = open_at(AT_FDCWD, concat("/proc/", pid, "/root"), O_PATH | O_DIRECTORY);
    if (!opened) {
        receipt.push_back({"root", "to be read", opened.error().message, false});
        return;
    }
    const RootFd root(std::move(opened).value());
    const auto is_readonly = [](const Place& place) { return (place.flags & MOUNT_ATTR_RDONLY) != 0; };
    if (plan.root.readonly) add_paths("root", "read-only", {"/"}, root, is_readonly, receipt);
    add_mounts(plan.mounts, root, receipt);
    add_paths(
        "masked_paths", "hidden", plan.masked_paths, root, [](const Place& place) { return place.is_hidden; }, receipt);
    add_paths("readonly_paths", "read-only", plan.readonly_paths, root, is_readonly, receipt);
}

}  // namespace pinfold
