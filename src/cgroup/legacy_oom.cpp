// How cgroup v1 tells that a group has run out of memory: by an eventfd that the group is told of.
#include "cgroup/legacy_oom.hpp"

#include <fcntl.h>
#include <sys/eventfd.h>

#include "base/fs.hpp"
#include "base/strings.hpp"
#include "cgroup/control_files.hpp"
#include "cgroup/legacy_limits.hpp"
#include "cgroup/stats_json.hpp"

namespace pinfold {

namespace {

Result<UniqueFd> open_memory_group(const CgroupPlace& place) {
    return open_group({place.legacy.at("memory"), place.path, {}, {}});
}

}  // namespace

Result<LegacyOom> watch_legacy_oom(const CgroupPlace& place) {
    const UniqueFd group = TRY(open_memory_group(place));
    LegacyOom oom;
    oom.control = TRY(open_at(group.get(), "memory.oom_control", O_RDONLY));
    oom.signal = UniqueFd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (!oom.signal) return errno_error("make an eventfd");
    const std::string request = concat(oom.signal.get(), ' ', oom.control.get());
    TRY(write_file_at(group.get(), "cgroup.event_control", request));
    return oom;
}

// The limit may have been hit, and memory been found, without anybody being killed.
OomCount count_legacy_oom(const CgroupPlace& place) {
    const Result<UniqueFd> group = open_memory_group(place);
    if (!group) return {};
    const uint64_t kills = event_count(text_of(group->get(), "memory.oom_control"), "oom_kill");
    const std::string limit = text_of(group->get(), "memory.limit_in_bytes");
    const bool hit = number_in(group->get(), "memory.failcnt") != 0;
    return {kills, kills != 0 && hit,
            is_legacy_unlimited(limit) ? 0 : number_in(group->get(), "memory.limit_in_bytes")};
}

}  // namespace pinfold
