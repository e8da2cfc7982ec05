// Removing a container's group: at once where it is empty, else after an end has been put to all that runs in it.
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/fs.hpp"
#include "base/strings.hpp"
#include "cgroup/cgroup.hpp"
#include "cgroup/control_files.hpp"
#include "cgroup/deadline.hpp"
#include "cgroup/freeze.hpp"
#include "cgroup/legacy_groups.hpp"
#include "cgroup/legacy_remove.hpp"
#include "cgroup/remove_tree.hpp"
#include "cgroup/scope.hpp"

namespace pinfold {

namespace {

constexpr std::chrono::seconds kPatience{5};
constexpr int64_t kKillAgainMs = 50;
constexpr int64_t kDyingMs = 1000;

// One whole tree at once, against which no fork can race. Absent before Linux 5.14.
Result<void> kill_tree(int group) {
    const auto killed = write_file_at(group, "cgroup.kill", "1");
    if (!killed && killed.error().code != ENOENT) return killed;
    return {};
}

// One by one, and only what is in this very group. Processes that our PID namespace does not see are listed as 0,
// which kill() would take for our own process group.
Result<void> kill_members(int group) {
    const std::string list = TRY(read_control(group, "cgroup.procs"));
    for (const std::string_view line : split(list, '\n')) {
        const pid_t pid = parse_number<pid_t>(line).value_or(0);
        if (pid > 0) ::kill(pid, SIGKILL);
    }
    return {};
}

Result<bool> is_populated(int events) {
    char text[256];
    const ssize_t got = ::pread(events, text, sizeof text, 0);
    if (got < 0) return errno_error("read cgroup.events");
    return has_event(std::string_view(text, size_t(got)), "populated");
}

void await_change(int events, int64_t patience_ms) {
    pollfd change{events, POLLPRI, 0};
    ::poll(&change, 1, static_cast<int>(patience_ms));
}

Result<void> empty_group(int group, const Deadline& deadline) {
    const UniqueFd events = TRY(open_at(group, "cgroup.events", O_RDONLY));
    for (;;) {
        if (!TRY(is_populated(events.get()))) return {};
        if (deadline.left_ms() == 0) {
            return plain_error(concat("processes are still there ", kPatience.count(), " s after SIGKILL"))
                .with_hint("one that waits for a device or a file server cannot be killed; try again later");
        }
        TRY(kill_members(group));
        await_change(events.get(), std::min(deadline.left_ms(), kKillAgainMs));
    }
}

Result<void> remove_busy(const std::string& directory) {
    const Deadline deadline(kPatience);
    const size_t slash = directory.rfind('/');
    UniqueFd parent = TRY(open_at(AT_FDCWD, directory.substr(0, slash), O_PATH | O_DIRECTORY));
    const std::string name = directory.substr(slash + 1);
    const UniqueFd group(::openat(parent.get(), name.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    if (!group) return errno == ENOENT ? Result<void>() : errno_error(concat("open ", name));
    TRY(kill_tree(group.get()));
    return remove_tree(std::move(parent), name, deadline, [&](int leaf) { return empty_group(leaf, deadline); });
}

Result<void> remove_unified(const CgroupPlace& place) {
    const std::string name = TRY(directory_of(place));
    if (::rmdir(name.c_str()) == 0 || errno == ENOENT) return {};
    if (errno != EBUSY && errno != ENOTEMPTY) return errno_error(concat("remove cgroup ", name));
    let_die(place);
    TRY_IN(concat("remove cgroup ", name), remove_busy(name));
    return {};
}

Result<void> remove_empty_unified(const CgroupPlace& place) {
    const std::string name = TRY(directory_of(place));
    if (const UniqueFd events(::open(concat(name, "/cgroup.events").c_str(), O_RDONLY | O_CLOEXEC)); events) {
        if (TRY(is_populated(events.get()))) await_change(events.get(), kDyingMs);
    }
    if (::rmdir(name.c_str()) == 0 || errno == ENOENT) return {};
    return errno_error(concat("remove cgroup ", name));
}

}  // namespace

void remove_empty_home(const CgroupPlace& place) {
    const std::string& path = place.path;
    const size_t home = path.find(concat(kCgroupHome, '/'));  // below what was delegated to a normal user, if to one
    if (home == std::string::npos) return;
    std::set<std::string> mounts = legacy_mounts(place);
    if (!place.mount.empty()) mounts.insert(place.mount);
    for (const std::string& mount : mounts) {
        for (size_t end = path.rfind('/'); end >= home + kCgroupHome.size(); end = path.rfind('/', end - 1)) {
            if (::rmdir((mount + path.substr(0, end)).c_str()) != 0) break;
        }
    }
}

Result<void> remove_cgroup(const CgroupPlace& place) {
    if (!place.exists()) return {};
    if (!place.scope.empty()) return remove_scope(place);
    TRY(clean_cgroup_path(place.path));
    if (!place.mount.empty()) TRY(remove_unified(place));
    if (!place.legacy.empty()) TRY(remove_legacy_groups(place));
    remove_empty_home(place);
    return {};
}

Result<void> remove_empty_cgroup(const CgroupPlace& place) {
    if (!place.exists()) return {};
    if (!place.scope.empty()) return await_end_of_scope(place);
    TRY(clean_cgroup_path(place.path));
    if (!place.mount.empty()) TRY(remove_empty_unified(place));
    if (!place.legacy.empty()) TRY(remove_empty_legacy_groups(place));
    remove_empty_home(place);
    return {};
}

}  // namespace pinfold
