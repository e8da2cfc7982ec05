// Where an opened file is.
#include "policy/host_path.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>

#include "base/fs.hpp"
#include "base/strings.hpp"
#include "pinfold/unique_fd.hpp"

namespace pinfold {

namespace {

// The kernel writes blanks, tabs, newlines and backslashes in paths as three octal digits.
std::string unescaped(std::string_view text) {
    std::string out;
    for (size_t i = 0; i < text.size(); ++i) {
        const auto code = text[i] == '\\' ? parse_number<unsigned char>(text.substr(i + 1, 3), 8) : std::nullopt;
        out += code ? static_cast<char>(*code) : text[i];
        if (code) i += 3;
    }
    return out;
}

Inode inode_of(const struct stat& info) { return {info.st_dev, info.st_ino}; }

Result<struct stat> status_of(int fd) {
    struct stat info {};
    if (::fstat(fd, &info) != 0) return errno_error("stat");
    return info;
}

Result<std::string> name_of(int fd) {
    std::string path = link_target(concat("/proc/self/fd/", fd));
    if (path.empty()) return errno_error("read its name in /proc/self/fd");
    if (!path.starts_with('/')) return plain_error("it has no path in this mount namespace");
    return path;
}

Result<int> mount_of(int fd) {
    const std::string info = TRY(read_file(concat("/proc/self/fdinfo/", fd)));
    constexpr std::string_view kKey = "mnt_id:\t";
    for (const std::string_view line : split(info, '\n')) {
        if (!line.starts_with(kKey)) continue;
        if (const auto id = parse_number<int>(line.substr(kKey.size()))) return *id;
    }
    return plain_error("its mount is not told by /proc/self/fdinfo");
}

std::string_view parent_name(std::string_view path) { return path.substr(0, std::max<size_t>(path.rfind('/'), 1)); }

// As many steps up as its path has names: an inode that equals the one before is no sign of the root, since a directory
// can be mounted on an entry of its own.
Result<void> add_parents(int directory, std::string_view path, std::vector<Inode>& around) {
    const auto steps = path == "/" ? 0 : std::count(path.begin(), path.end(), '/');
    UniqueFd parent;
    for (auto step = 0; step < steps; ++step) {
        parent = TRY(open_at(step == 0 ? directory : parent.get(), "..", O_PATH | O_DIRECTORY));
        around.push_back(inode_of(TRY(status_of(parent.get()))));
    }
    return {};
}

// The directory that a file was opened in; a file itself knows no "..".
Result<UniqueFd> directory_of(const HostPath& file) {
    const std::string parent(parent_name(file.path));
    UniqueFd directory = TRY(open_at(AT_FDCWD, parent, O_PATH | O_DIRECTORY | O_NOFOLLOW));
    struct stat entry {};
    const std::string name = file.path.substr(file.path.rfind('/') + 1);
    const bool same =
        ::fstatat(directory.get(), name.c_str(), &entry, AT_SYMLINK_NOFOLLOW) == 0 && inode_of(entry) == file.self;
    if (!same) return plain_error("it was moved or removed while it was checked");
    return directory;
}

}  // namespace

bool is_within(std::string_view path, std::string_view directory) {
    if (!path.starts_with(directory)) return false;
    return path.size() == directory.size() || directory.ends_with('/') || path[directory.size()] == '/';
}

std::string plain_path(std::string_view path) {
    std::string plain;
    for (const std::string_view part : split(path, '/')) {
        if (part == "..") plain.resize(plain.empty() ? 0 : plain.rfind('/'));
        else if (!part.empty() && part != ".") plain += concat('/', part);
    }
    return plain.empty() ? "/" : plain;
}

bool is_within(const DevicePath& place, const DevicePath& directory) {
    return !place.device.empty() && place.device == directory.device && is_within(place.path, directory.path);
}

std::string entry_path(std::string_view directory, std::string_view name) {
    return concat(directory, directory.ends_with('/') ? "" : "/", name);
}

MountTable parse_mount_table(std::string_view mountinfo) {
    MountTable table;
    for (const std::string_view line : split(mountinfo, '\n')) {
        // id parent device root point options [optional...] - type source options
        const std::vector<std::string_view> words = split(line, ' ');
        const auto dash = std::find(words.begin(), words.end(), "-");
        if (words.size() < 6 || words.end() - dash < 2) continue;
        table.push_back({parse_number<int>(words[0]).value_or(-1),
                         {std::string(words[2]), unescaped(words[3])},
                         unescaped(words[4]),
                         std::string(dash[1])});
    }
    return table;
}

Result<MountTable> read_mount_table() { return parse_mount_table(TRY(read_file("/proc/self/mountinfo"))); }

Result<HostPath> locate(int fd, const MountTable& mounts) {
    const struct stat info = TRY(status_of(fd));
    HostPath found;
    found.path = TRY(name_of(fd));
    found.self = inode_of(info);
    found.mode = info.st_mode;
    found.around = {found.self};
    const int id = TRY(mount_of(fd));
    const auto mount = std::ranges::find(mounts, id, &MountEntry::id);
    if (mount == mounts.end() || !is_within(found.path, mount->point)) return found;
    found.filesystem = mount->type;
    const std::string_view rest = std::string_view(found.path).substr(mount->point == "/" ? 0 : mount->point.size());
    const bool at_root = rest.empty() || rest == "/";
    found.place = mount->root;
    if (!at_root) found.place.path = entry_path(mount->root.path, rest.substr(1));
    return found;
}

Result<HostPath> locate_with_parents(int fd, const MountTable& mounts) {
    HostPath found = TRY(locate(fd, mounts));
    if (S_ISDIR(found.mode)) {
        TRY(add_parents(fd, found.path, found.around));
        return found;
    }
    const UniqueFd directory = TRY(directory_of(found));
    found.around.push_back(inode_of(TRY(status_of(directory.get()))));
    TRY(add_parents(directory.get(), parent_name(found.path), found.around));
    return found;
}

}  // namespace pinfold
