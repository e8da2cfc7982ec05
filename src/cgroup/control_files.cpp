// Groups and the control files in them.
#include "cgroup/control_files.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>

#include "base/fs.hpp"
#include "base/strings.hpp"
#include "cgroup/plan.hpp"

namespace pinfold {

Result<std::string> read_control(int dir, const std::string& path) {
    const UniqueFd fd = TRY(open_at(dir, path, O_RDONLY));
    char buffer[4096];
    const ssize_t got = ::read(fd.get(), buffer, sizeof buffer);
    if (got < 0) return errno_error(concat("read ", path));
    return std::string(buffer, size_t(got));
}

Result<std::string> read_long_control(int dir, const std::string& path) {
    const UniqueFd fd = TRY(open_at(dir, path, O_RDONLY));
    return read_all(fd.get(), path);
}

Result<std::string> directory_of(const CgroupPlace& place) {
    const std::string path = TRY(clean_cgroup_path(place.path));
    if (!place.mount.empty() || place.legacy.empty()) return place.mount + path;
    // All of them hold the same processes; the freezer is the one that a payload is least likely to subdivide.
    const auto freezer = place.legacy.find("freezer");
    return (freezer == place.legacy.end() ? place.legacy.begin() : freezer)->second + path;
}

Result<UniqueFd> open_group(const CgroupPlace& place) {
    return open_at(AT_FDCWD, TRY(directory_of(place)), O_PATH | O_DIRECTORY);
}

namespace {

Result<void> visit_entries(int group, unsigned char type, const Visitor& visit) {
    UniqueFd again = TRY(open_at(group, ".", O_RDONLY | O_DIRECTORY));
    const std::unique_ptr<DIR, int (*)(DIR*)> entries(::fdopendir(again.get()), ::closedir);
    if (!entries) return errno_error("read the directory");
    again.release();
    while (const dirent* entry = ::readdir(entries.get())) {
        const std::string_view name = entry->d_name;
        if (entry->d_type == type && name != "." && name != ".." && !visit(name)) break;
    }
    return {};
}

}  // namespace

Result<void> visit_children(int group, const Visitor& visit) { return visit_entries(group, DT_DIR, visit); }

Result<void> visit_files(int group, const Visitor& visit) { return visit_entries(group, DT_REG, visit); }

bool has_event(std::string_view events, std::string_view key) {
    const auto lines = split(events, '\n');
    return std::ranges::find(lines, concat(key, " 1")) != lines.end();
}

bool has_word(std::string_view list, std::string_view word) {
    while (list.ends_with('\n')) list.remove_suffix(1);
    const auto words = split(list, ' ');
    return std::ranges::find(words, word) != words.end();
}

}  // namespace pinfold
