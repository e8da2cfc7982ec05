// The receipt's lines on cgroups.
#include "verify/receipt.hpp"

#include <algorithm>
#include <optional>

#include "base/fs.hpp"
#include "base/strings.hpp"
#include "cgroup/limit_files.hpp"

namespace pinfold {

namespace {

// From /proc/PID/cgroup: the group in the hierarchy of this controller of v1, or in v2, which is named by none.
std::string_view group_in(std::string_view list, std::string_view controller) {
    for (const std::string_view line : split(list, '\n')) {
        const size_t first = line.find(':'), second = line.find(':', first + 1);
        if (second == line.npos) continue;
        const std::vector<std::string_view> mounted = split(line.substr(first + 1, second - first - 1), ',');
        if (std::ranges::find(mounted, controller) != mounted.end()) return line.substr(second + 1);
    }
    return "no group";
}

// It may be in a group below.
bool is_at(std::string_view group, std::string_view place) {
    return group.starts_with(place) && (group.size() == place.size() || group[place.size()] == '/');
}

void add_limit(const std::string& directory, const CgroupWrite& write, Receipt& receipt) {
    std::optional<LimitFound> limit = read_limit(directory, write);
    if (!limit) return;
    receipt.push_back({std::move(limit->file), std::move(limit->planned), std::move(limit->found), limit->holds});
}

}  // namespace

void add_membership_line(const CgroupPath& place, pid_t pid, Receipt& receipt) {
    if (!place.exists()) return;
    const Result<std::string> list = read_file(concat("/proc/", pid, "/cgroup"));
    std::vector<std::string> elsewhere;
    const auto check = [&](const std::string& controller) {
        const std::string_view group = list ? group_in(*list, controller) : "no group";
        if (!is_at(group, place.path)) elsewhere.push_back(concat(group, controller.empty() ? "" : " of ", controller));
    };
    if (!place.mount.empty()) check("");
    for (const auto& hierarchy : place.v1) check(hierarchy.first);
    receipt.push_back(equal_line("cgroup", place.path, elsewhere.empty() ? place.path : join(elsewhere, ", ")));
}

void add_limit_lines(const CgroupPlan& plan, Receipt& receipt) {
    const CgroupPath& place = plan.place;
    if (!place.exists()) return;
    for (const CgroupWrite& write : lasting_writes(plan.writes)) add_limit(place.mount + place.path, write, receipt);
    for (const CgroupWrite& write : lasting_writes(plan.v1_writes)) {
        const auto mount = place.v1.find(std::string(controller_of(write.file)));
        if (mount != place.v1.end()) add_limit(mount->second + place.path, write, receipt);
    }
}

}  // namespace pinfold
