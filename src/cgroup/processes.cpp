// Who is in a group.
#include "cgroup/processes.hpp"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>

#include "base/fs.hpp"
#include "base/strings.hpp"
#include "cgroup/control_files.hpp"

namespace pinfold {

namespace {

bool has_vanished(const Error& error) { return error.code == ENOENT || error.code == ENODEV; }

Result<void> add_members(int group, std::vector<pid_t>& pids) {
    const Result<std::string> list = read_long_control(group, "cgroup.procs");
    // A threaded group keeps no list: its processes are in that of a group above.
    if (!list && (has_vanished(list.error()) || list.error().code == EOPNOTSUPP)) return {};
    if (!list) return list.error();
    for (const std::string_view line : split(*list, '\n')) {
        const pid_t pid = parse_number<pid_t>(line).value_or(0);
        if (pid > 0) pids.push_back(pid);
    }
    return {};
}

}  // namespace

Result<std::vector<pid_t>> group_processes(const CgroupPlace& place) {
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
        TRY(visit_children(group->get(), [&](std::string_view name) {
            left.push_back(concat(below, '/', name));
            return true;
        }));
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

}  // namespace pinfold
