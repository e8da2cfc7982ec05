// What the kernel has counted of a group that ran out of memory.
#include "cgroup/oom.hpp"

#include <fcntl.h>

#include "base/strings.hpp"
#include "cgroup/control_files.hpp"

namespace pinfold {

uint64_t event_count(std::string_view events, std::string_view key) {
    for (const std::string_view line : split(events, '\n')) {
        if (!line.starts_with(key) || line.substr(key.size(), 1) != " ") continue;
        return parse_number<uint64_t>(line.substr(key.size() + 1)).value_or(0);
    }
    return 0;
}

namespace {

uint64_t first_number(std::string_view text) { return parse_number<uint64_t>(split(text, '\n')[0]).value_or(0); }

OomCount count_unified(const std::string& group) {
    const auto events = read_control(AT_FDCWD, group + "/memory.events");
    const auto limit = read_control(AT_FDCWD, group + "/memory.max");
    if (!events || !limit) return {};
    return {event_count(*events, "oom_kill"), event_count(*events, "oom") != 0, first_number(*limit)};
}

// cgroup v1 does not tell whose limit it was; one that was never reached was not the reason.
OomCount count_legacy(const std::string& group) {
    const auto control = read_control(AT_FDCWD, group + "/memory.oom_control");
    const auto limit = read_control(AT_FDCWD, group + "/memory.limit_in_bytes");
    const auto reached = read_control(AT_FDCWD, group + "/memory.failcnt");
    if (!control || !limit || !reached) return {};
    const uint64_t kills = event_count(*control, "oom_kill");
    return {kills, kills != 0 && first_number(*reached) != 0, first_number(*limit)};
}

}  // namespace

OomCount count_oom(const CgroupPlace& place) {
    if (!place.exists()) return {};
    const auto legacy = place.legacy.find("memory");
    return legacy == place.legacy.end() ? count_unified(place.mount + place.path)
                                        : count_legacy(legacy->second + place.path);
}

}  // namespace pinfold
