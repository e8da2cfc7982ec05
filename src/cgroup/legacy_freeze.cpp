// The freezer of cgroup v1. It tells nobody when it is done: freezer.state has to be read again.
#include "cgroup/legacy_freeze.hpp"

#include <fcntl.h>
#include <poll.h>

#include "base/fs.hpp"
#include "base/strings.hpp"
#include "cgroup/control_files.hpp"
#include "cgroup/deadline.hpp"

namespace pinfold {

namespace {

constexpr int kPauseMs = 1;

Result<std::string> freezer_of(const CgroupPlace& place) {
    const auto freezer = place.legacy.find("freezer");
    if (freezer != place.legacy.end()) return directory_of({freezer->second, place.path, {}, {}});
    return plain_error("no freezer is mounted: neither cgroup v2 nor v1's freezer")
        .with_hint("mount -t cgroup -o freezer cgroup /sys/fs/cgroup/freezer, before containers are created");
}

// Written again each time: a process that was born in between is only then frozen, too. False: not in time.
Result<bool> reach(const std::string& group, const char* state, std::chrono::milliseconds patience) {
    const Deadline deadline(patience);
    const std::string file = group + "/freezer.state";
    for (;;) {
        TRY(write_file_at(AT_FDCWD, file, state));
        const std::string reached = TRY(read_control(AT_FDCWD, file));
        if (reached.starts_with(state)) return true;
        if (deadline.left_ms() == 0) return false;
        ::poll(nullptr, 0, kPauseMs);
    }
}

}  // namespace

bool is_legacy_frozen(const CgroupPlace& place) {
    const Result<std::string> group = freezer_of(place);
    if (!group) return false;
    const Result<std::string> told = read_control(AT_FDCWD, *group + "/freezer.self_freezing");
    return told && told->starts_with('1');
}

Result<void> freeze_legacy_group(const CgroupPlace& place, std::chrono::milliseconds patience) {
    const std::string group = TRY(freezer_of(place));
    const std::string name = concat("freeze cgroup ", group);
    const Result<bool> frozen = reach(group, "FROZEN", patience);
    if (frozen && *frozen) return {};
    TRY_IN(name, write_file_at(AT_FDCWD, group + "/freezer.state", "THAWED"));
    if (!frozen) return Error(frozen.error()).within(name);
    return plain_error(concat(name, ": not all processes had stopped after ", patience.count(), " ms"))
        .with_hint("one that waits for a device or a file server cannot be stopped; try again later");
}

Result<void> thaw_legacy_group(const CgroupPlace& place, std::chrono::milliseconds patience) {
    const std::string group = TRY(freezer_of(place));
    const std::string name = concat("thaw cgroup ", group);
    if (TRY_IN(name, reach(group, "THAWED", patience))) return {};
    return plain_error(concat(name, ": it was still frozen after ", patience.count(), " ms"))
        .with_hint("a group above it is frozen: write THAWED to that one's freezer.state");
}

void thaw_legacy_tree(const CgroupPlace& place) {
    const Result<std::string> top = freezer_of(place);
    if (!top) return;
    std::vector<std::string> left = {*top};
    while (!left.empty()) {
        const std::string path = std::move(left.back());
        left.pop_back();
        const Result<UniqueFd> group = open_at(AT_FDCWD, path, O_PATH | O_DIRECTORY);
        if (!group) continue;
        (void)write_file_at(group->get(), "freezer.state", "THAWED").has_value();
        (void)visit_children(group->get(), [&](std::string_view name) {
            left.push_back(concat(path, '/', name));
            return true;
        }).has_value();
    }
}

}  // namespace pinfold
