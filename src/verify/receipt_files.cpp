// The receipt's lines on the file system: flags of mounts, masked and read-only paths.
#include "verify/receipt.hpp"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <optional>

#include "base/fs.hpp"
#include "base/strings.hpp"
#include "kernel/safe_path.hpp"

namespace pinfold {

namespace {

// The words of mount options, as mountinfo has them, and the same as bits of statfs(2).
constexpr struct {
    std::string_view word;
    uint64_t attribute;
    uint64_t flag;
} kFlags[] = {{"ro", MOUNT_ATTR_RDONLY, ST_RDONLY},
              {"nosuid", MOUNT_ATTR_NOSUID, ST_NOSUID},
              {"nodev", MOUNT_ATTR_NODEV, ST_NODEV},
              {"noexec", MOUNT_ATTR_NOEXEC, ST_NOEXEC},
              {"noatime", MOUNT_ATTR_NOATIME, ST_NOATIME},
              {"nodiratime", MOUNT_ATTR_NODIRATIME, ST_NODIRATIME},
              {"nosymfollow", MOUNT_ATTR_NOSYMFOLLOW, 0x2000 /* ST_NOSYMFOLLOW */}};

struct Place {
    uint64_t attributes = 0;
    uint64_t mount_id = 0;
    bool is_mount = false;  // something was mounted right there
    bool is_hidden = false;
};

// Access times have one kind, of which the one with neither word is the strict one.
uint64_t attributes_of(const struct statfs& system) {
    const auto flags = static_cast<uint64_t>(system.f_flags);
    uint64_t attributes = (flags & (ST_NOATIME | ST_RELATIME)) == 0 ? MOUNT_ATTR_STRICTATIME : 0;
    for (const auto& entry : kFlags) attributes |= (flags & entry.flag) != 0 ? entry.attribute : 0;
    return attributes;
}

bool is_empty_file_system(const struct statfs& system) {
    return system.f_type == TMPFS_MAGIC && (attributes_of(system) & MOUNT_ATTR_RDONLY) != 0;
}

// Nothing: there is no such path. What cannot be looked at has no flag that was asked for.
std::optional<Place> look_at(const RootFd& root, const std::string& path) {
    const Result<UniqueFd> fd = root.open(path, O_PATH);
    if (!fd && (fd.error().code == ENOENT || fd.error().code == ENOTDIR)) return std::nullopt;
    struct statfs system {};
    struct statx file {};
    if (!fd || ::fstatfs(fd->get(), &system) != 0) return Place{};
    if (::statx(fd->get(), "", AT_EMPTY_PATH, STATX_BASIC_STATS | STATX_MNT_ID, &file) != 0) return Place{};
    Place place{.attributes = attributes_of(system), .mount_id = file.stx_mnt_id};
    place.is_mount = (file.stx_attributes & STATX_ATTR_MOUNT_ROOT) != 0;
    const bool is_null = S_ISCHR(file.stx_mode) && file.stx_rdev_major == 1 && file.stx_rdev_minor == 3;
    place.is_hidden = place.is_mount && (S_ISDIR(file.stx_mode) ? is_empty_file_system(system) : is_null);
    return place;
}

// What was found at each path. The container waits meanwhile, and several lines ask for the same ones.
class Places {
public:
    explicit Places(RootFd root) : root_(std::move(root)) {}

    const std::optional<Place>& at(const std::string& path) {
        const auto [entry, is_new] = seen_.try_emplace(path);
        if (is_new) entry->second = look_at(root_, path);
        return entry->second;
    }

private:
    RootFd root_;
    std::map<std::string, std::optional<Place>> seen_;
};

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

uint64_t wanted_attributes(const MountRequest& mount) {
    uint64_t wanted = mount.filesystem.attributes;
    for (const MountChange& change : {mount.recursive_change, mount.change})
        wanted = (wanted & ~change.clear) | change.set;
    return wanted;
}

// A line of /proc/PID/mountinfo: "36 35 98:0 /root /point rw,noatime shared:1 - ext3 /dev/root rw".
struct MountLine {
    uint64_t id = 0;
    uint64_t parent = 0;
    uint64_t attributes = 0;
    bool is_mapped = false;
    bool is_shared = false;
};

MountLine parse_mount_line(std::string_view text) {
    const std::vector<std::string_view> words = split(text, ' ');
    if (words.size() < 7) return {};
    MountLine line{.id = parse_number<uint64_t>(words[0]).value_or(0),
                   .parent = parse_number<uint64_t>(words[1]).value_or(0)};
    const std::vector<std::string_view> options = split(words[5], ',');
    const auto has = [&](std::string_view word) { return std::ranges::find(options, word) != options.end(); };
    for (const auto& entry : kFlags) line.attributes |= has(entry.word) ? entry.attribute : 0;
    if (!has("noatime") && !has("relatime")) line.attributes |= MOUNT_ATTR_STRICTATIME;
    line.is_mapped = has("idmapped");
    for (size_t i = 6; i < words.size() && words[i] != "-"; ++i) line.is_shared |= words[i].starts_with("shared:");
    return line;
}

// The mounts of the container, for what cannot be seen at their places: how they are shared and mapped, and what lies
// below them.
class MountTable {
public:
    explicit MountTable(pid_t pid) {
        const Result<std::string> text = read_file(concat("/proc/", pid, "/mountinfo"));
        if (!text) return;
        for (const std::string_view line : split(*text, '\n')) lines_.push_back(parse_mount_line(line));
    }
    // Nothing: it is not there.
    const MountLine* find(uint64_t id) const {
        const auto found = std::ranges::find(lines_, id, &MountLine::id);
        return found == lines_.end() ? nullptr : &*found;
    }
    // All that came with this mount has these attributes. What has been put there since has its own.
    bool all_below(uint64_t id, uint64_t attributes, const std::vector<uint64_t>& put_since) const {
        return std::ranges::all_of(lines_, [&](const MountLine& line) {
            if (line.parent != id || line.id == id || std::ranges::find(put_since, line.id) != put_since.end())
                return true;
            return (attributes & ~line.attributes) == 0 && all_below(line.id, attributes, put_since);
        });
    }

private:
    std::vector<MountLine> lines_;
};

// "12 hidden", or "11 hidden, not /proc/kcore"
ReceiptLine counted_line(std::string name, std::string_view verb, size_t all, const std::vector<std::string>& failed) {
    std::string found = concat(all - failed.size(), ' ', verb);
    if (!failed.empty()) found += concat(", not ", join(failed, ", "));
    return equal_line(std::move(name), concat(all, ' ', verb), std::move(found));
}

template <class Holds>
void add_paths(std::string name, std::string_view verb, const std::vector<std::string>& paths, Places& places,
               Holds holds, Receipt& receipt) {
    if (paths.empty()) return;
    std::vector<std::string> failed;
    for (const std::string& path : paths) {
        const std::optional<Place>& place = places.at(path);
        if (place && !holds(*place)) failed.push_back(path);
    }
    receipt.push_back(counted_line(std::move(name), verb, paths.size(), failed));
}

// The mounts that were made at these places.
std::vector<uint64_t> mounts_made(const Plan& plan, Places& places) {
    std::vector<std::string> paths = {"/dev/console"};
    for (const MountRequest& mount : plan.mounts) paths.push_back(mount.destination);
    for (const DeviceNode& node : plan.devices) paths.push_back(node.path);
    for (const auto* list : {&plan.masked_paths, &plan.readonly_paths})
        paths.insert(paths.end(), list->begin(), list->end());
    std::vector<uint64_t> ids;
    for (const std::string& path : paths) {
        const std::optional<Place>& place = places.at(path);
        if (place && place->is_mount) ids.push_back(place->mount_id);
    }
    return ids;
}

bool is_cut_off(const MountRequest& mount) {
    const uint64_t wanted = mount.change.propagation | mount.recursive_change.propagation;
    return wanted != 0 && wanted != MS_SHARED;
}

// Whether all of it is as it was asked for, beyond its own attributes. Hooks may have mounted what they like.
bool tree_holds(const Plan& plan, const MountRequest& mount, uint64_t id, Places& places, const MountTable& table) {
    const MountLine* line = table.find(id);
    if (line == nullptr || (mount.id_maps && !line->is_mapped)) return false;
    if (is_cut_off(mount) && line->is_shared && plan.root.propagation != MS_SHARED) return false;
    const uint64_t recursive = mount.recursive_change.set;
    if (recursive == 0 || !plan.hooks.create_container.empty()) return true;
    return table.all_below(id, recursive, mounts_made(plan, places));
}

void add_mounts(const Plan& plan, pid_t pid, Places& places, Receipt& receipt) {
    const std::vector<MountRequest>& mounts = plan.mounts;
    std::optional<MountTable> table;  // read where there is something to find in it
    size_t all = 0;
    std::vector<std::string> failed;
    std::vector<uint64_t> seen;
    for (size_t i = 0; i < mounts.size(); ++i) {
        if (is_covered(mounts, i)) continue;
        ++all;
        const MountRequest& mount = mounts[i];
        const std::optional<Place>& place = places.at(mount.destination);
        bool holds = place && place->is_mount && (wanted_attributes(mount) & ~place->attributes) == 0;
        if (holds && (mount.id_maps || is_cut_off(mount) || mount.recursive_change.set != 0)) {
            if (!table) table.emplace(pid);
            holds = tree_holds(plan, mount, place->mount_id, places, *table);
        }
        // By a link two of them can be at one place, where only one is seen.
        if (holds && mount.kind != MountRequest::Kind::remount) {
            holds = std::ranges::find(seen, place->mount_id) == seen.end();
            seen.push_back(place->mount_id);
        }
        if (!holds) failed.push_back(mount.destination);
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
    Places places{RootFd(std::move(opened).value())};
    const auto is_readonly = [](const Place& place) { return (place.attributes & MOUNT_ATTR_RDONLY) != 0; };
    if (plan.root.readonly) add_paths("root", "read-only", {"/"}, places, is_readonly, receipt);
    add_mounts(plan, pid, places, receipt);
    add_paths(
        "masked_paths", "hidden", plan.masked_paths, places, [](const Place& place) { return place.is_hidden; },
        receipt);
    add_paths("readonly_paths", "read-only", plan.readonly_paths, places, is_readonly, receipt);
}

}  // namespace pinfold
