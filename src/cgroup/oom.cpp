// What the kernel has counted of a group that ran out of memory.
#include "cgroup/oom.hpp"

#include "base/strings.hpp"
#include "cgroup/control_files.hpp"
#include "cgroup/legacy_oom.hpp"

namespace pinfold {

uint64_t event_count(std::string_view events, std::string_view key) {
    for (const std::string_view line : split(events, '\n')) {
        if (!line.starts_with(key) || line.substr(key.size(), 1) != " ") continue;
        return parse_number<uint64_t>(line.substr(key.size() + 1)).value_or(0);
    }
    return 0;
}

OomCount count_oom(int group) {
    const auto events = read_control(group, "memory.events");
    const auto limit = read_control(group, "memory.max");
    if (!events || !limit) return {};
    return {event_count(*events, "oom_kill"), event_count(*events, "oom") != 0,
            parse_number<uint64_t>(split(*limit, '\n')[0]).value_or(0)};
}

OomCount count_oom(const CgroupPlace& place) {
    if (place.legacy.contains("memory")) return count_legacy_oom(place);
    const Result<UniqueFd> group = open_group(place);
    return group ? count_oom(group->get()) : OomCount{};
}

}  // namespace pinfold
