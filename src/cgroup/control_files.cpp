// Groups as directories of either version of cgroups.
#include "cgroup/control_files.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <memory>

#include "base/fs.hpp"
#include "base/strings.hpp"

namespace pinfold {

namespace {

constexpr int kAttempts = 100;

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

Result<void> add_members(int group, std::vector<pid_t>& pids) {
    const Result<std::string> list = read_long_control(group, "cgroup.procs");
    // A threaded group keeps no list: its processes are in that of a group above.
    if (!list && (has_vanished(list.error()) || list.error().code == EOPNOTSUPP)) return {};
    if (!list) return list.error();
    std::ranges::copy(pids_in(*list), std::back_inserter(pids));
    return {};
}

// The name of any group directly below, or an empty one; so of a group that somebody else has removed meanwhile.
Result<std::string> find_child(int group) {
    std::string child;
    const Result<void> visited = visit_children(group, [&](std::string_view name) {
        child = name;
        return false;
    });
    if (!visited && !has_vanished(visited.error())) return visited.error();
    return child;
}

Result<void> remove_leaf(int parent, const std::string& name, const Deadline& deadline, const EmptyGroup& empty) {
    for (;;) {
        if (::unlinkat(parent, name.c_str(), AT_REMOVEDIR) == 0 || errno == ENOENT) return {};
        if (errno != EBUSY || deadline.left_ms() == 0) return errno_error(concat("remove ", name));
        const UniqueFd leaf(::openat(parent, name.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
        if (leaf) TRY(empty(leaf.get()));
    }
}

}  // namespace

Result<std::string> clean_cgroup_path(std::string_view path) {
    std::string clean;
    for (const std::string_view part : split(path, '/')) {
        if (part.empty() || part == ".") continue;
        if (part == ".." || part.find('\0') != std::string_view::npos) {
            return plain_error(concat("cgroup path ", quoted(path), ": leads elsewhere by ", quoted(part)));
        }
        (clean += '/') += part;
    }
    if (clean.empty()) return plain_error(concat("cgroup path ", quoted(path), ": is the top, which is the host's"));
    return clean;
}

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

Result<std::string> directory_of(const CgroupPath& place) {
    const std::string path = TRY(clean_cgroup_path(place.path));
    if (!place.mount.empty() || place.v1.empty()) return place.mount + path;
    // All of them hold the same processes; the freezer is the one that a payload is least likely to subdivide.
    const auto freezer = place.v1.find("freezer");
    return (freezer == place.v1.end() ? place.v1.begin() : freezer)->second + path;
}

Result<UniqueFd> open_group(const CgroupPath& place) {
    return open_at(AT_FDCWD, TRY(directory_of(place)), O_PATH | O_DIRECTORY);
}

bool has_vanished(const Error& error) { return error.code == ENOENT || error.code == ENODEV; }

Result<bool> make_group(const std::function<Result<bool>()>& make_once) {
    for (int attempt = 1;; ++attempt) {
        Result<bool> made = make_once();
        if (made || !has_vanished(made.error()) || attempt == kAttempts) return made;
    }
}

Result<void> visit_children(int group, const Visitor& visit) { return visit_entries(group, DT_DIR, visit); }

Result<void> visit_files(int group, const Visitor& visit) { return visit_entries(group, DT_REG, visit); }

bool has_event(std::string_view events, std::string_view key) {
    const auto lines = split(events, '\n');
    return std::ranges::find(lines, concat(key, " 1")) != lines.end();
}

uint64_t event_count(std::string_view events, std::string_view key) {
    for (const std::string_view line : split(events, '\n')) {
        if (!line.starts_with(key) || line.substr(key.size(), 1) != " ") continue;
        return parse_number<uint64_t>(line.substr(key.size() + 1)).value_or(0);
    }
    return 0;
}

bool has_word(std::string_view list, std::string_view word) {
    while (list.ends_with('\n')) list.remove_suffix(1);
    const auto words = split(list, ' ');
    return std::ranges::find(words, word) != words.end();
}

std::vector<pid_t> pids_in(std::string_view list) {
    std::vector<pid_t> pids;
    for (const std::string_view line : split(list, '\n')) {
        const pid_t pid = parse_number<pid_t>(line).value_or(0);
        if (pid > 0) pids.push_back(pid);
    }
    return pids;
}

Result<std::vector<pid_t>> group_processes(const CgroupPath& place) {
    const Result<UniqueFd> top = open_group(place);
    if (!top && has_vanished(top.error())) return std::vector<pid_t>();
    if (!top) return top.error();
    std::vector<pid_t> pids;
    std::vector<std::string> left = {"."};  // paths, not descriptors: a payload may nest more than there are of those
    while (!left.empty()) {
        const std::string below = std::move(left.back());
        left.pop_back();
        const Result<UniqueFd> group = open_at(top->get(), below, O_PATH | O_DIRECTORY);
        if (!group && has_vanished(group.error())) continue;
        if (!group) return group.error();
        TRY(add_members(group->get(), pids));
        const Result<void> visited = visit_children(group->get(), [&](std::string_view name) {
            left.push_back(concat(below, '/', name));
            return true;
        });
        if (!visited && !has_vanished(visited.error())) return visited.error();
    }
    std::ranges::sort(pids);
    // One that moves meanwhile may be met twice.
    pids.erase(std::unique(pids.begin(), pids.end()), pids.end());
    return pids;
}

// The line "0::/path".
Result<std::string> group_of(pid_t pid) {
    const std::string text = TRY(read_file(concat("/proc/", pid, "/cgroup")));
    for (const std::string_view line : split(text, '\n')) {
        if (line.starts_with("0::/")) return std::string(line.substr(3));
    }
    return plain_error(concat("process ", pid, " is in no cgroup v2 group"));
}

Result<UniqueFd> watch_removals(const std::string& directory) {
    UniqueFd inotify(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
    constexpr uint32_t kRemovals = IN_DELETE | IN_DELETE_SELF | IN_ONLYDIR;
    if (!inotify || ::inotify_add_watch(inotify.get(), directory.c_str(), kRemovals) < 0) {
        return errno_error(concat("watch ", directory));
    }
    return inotify;
}

bool discard(const UniqueFd& source) {
    std::array<char, 4096> bytes{};
    bool any = false;
    while (::read(source.get(), bytes.data(), bytes.size()) > 0) any = true;
    return any;
}

// A payload can nest groups deeper than there are descriptors or stack to follow them down, so this holds one group at
// a time and goes back up by "..".
Result<void> remove_tree(UniqueFd parent, const std::string& top, const Deadline& deadline, const EmptyGroup& empty) {
    std::vector<std::string> way = {top};
    UniqueFd here = std::move(parent);
    while (!way.empty()) {
        UniqueFd group(::openat(here.get(), way.back().c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
        if (!group && errno != ENOENT) return errno_error(concat("open ", way.back()));
        if (group) {
            const std::string child = TRY(find_child(group.get()));
            if (!child.empty()) {
                way.push_back(child);
                here = std::move(group);
                continue;
            }
        }
        TRY(remove_leaf(here.get(), way.back(), deadline, empty));
        way.pop_back();
        if (!way.empty()) here = TRY(open_at(here.get(), "..", O_PATH | O_DIRECTORY));
    }
    return {};
}

}  // namespace pinfold
