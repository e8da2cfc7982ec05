// Stopping all that runs in a group at once, and letting it go on.
#include "cgroup/freeze.hpp"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include "base/fs.hpp"
#include "base/strings.hpp"
#include "cgroup/control_files.hpp"
#include "cgroup/deadline.hpp"
#include "cgroup/legacy_freeze.hpp"

namespace pinfold {

namespace {

// The write returns at once; cgroup.events tells when the last process has followed. False: not in time.
Result<bool> await_frozen(int group, bool wanted, std::chrono::milliseconds patience) {
    const Deadline deadline(patience);
    const UniqueFd events = TRY(open_at(group, "cgroup.events", O_RDONLY));
    for (;;) {
        char text[256];
        const ssize_t got = ::pread(events.get(), text, sizeof text, 0);
        if (got < 0) return errno_error("read cgroup.events");
        if (has_event(std::string_view(text, size_t(got)), "frozen") == wanted) return true;
        if (deadline.left_ms() == 0) return false;
        pollfd change{events.get(), POLLPRI, 0};
        ::poll(&change, 1, static_cast<int>(deadline.left_ms()));
    }
}

}  // namespace

bool is_frozen(const CgroupPlace& place) {
    if (place.mount.empty()) return is_legacy_frozen(place);
    const Result<UniqueFd> group = open_group(place);
    if (!group) return false;
    const Result<std::string> text = read_control(group->get(), "cgroup.freeze");
    return text && text->starts_with('1');
}

Result<void> freeze_group(const CgroupPlace& place, std::chrono::milliseconds patience) {
    if (place.mount.empty()) return freeze_legacy_group(place, patience);
    const UniqueFd group = TRY(open_group(place));
    const std::string name = concat("freeze cgroup ", place.mount, place.path);
    TRY_IN(name, write_file_at(group.get(), "cgroup.freeze", "1"));
    const Result<bool> frozen = await_frozen(group.get(), true, patience);
    if (frozen && *frozen) return {};
    TRY_IN(name, write_file_at(group.get(), "cgroup.freeze", "0"));
    if (!frozen) return Error(frozen.error()).within(name);
    return plain_error(concat(name, ": not all processes had stopped after ", patience.count(), " ms"))
        .with_hint("one that waits for a device or a file server cannot be stopped; try again later");
}

Result<void> thaw_group(const CgroupPlace& place, std::chrono::milliseconds patience) {
    if (place.mount.empty()) return thaw_legacy_group(place, patience);
    const UniqueFd group = TRY(open_group(place));
    const std::string name = concat("thaw cgroup ", place.mount, place.path);
    TRY_IN(name, write_file_at(group.get(), "cgroup.freeze", "0"));
    if (TRY_IN(name, await_frozen(group.get(), false, patience))) return {};
    return plain_error(concat(name, ": it was still frozen after ", patience.count(), " ms"))
        .with_hint("a group above it is frozen: write 0 to that one's cgroup.freeze");
}

void let_die(const CgroupPlace& place) {
    if (place.legacy.contains("freezer")) thaw_legacy_tree(place);
}

}  // namespace pinfold
