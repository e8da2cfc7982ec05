// The end of a container's groups in cgroup v1, which has no way to kill a group, and tells nobody that it is empty.
#include "cgroup/legacy_remove.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/fs.hpp"
#include "base/strings.hpp"
#include "cgroup/control_files.hpp"
#include "cgroup/deadline.hpp"
#include "cgroup/freeze.hpp"
#include "cgroup/legacy_groups.hpp"
#include "cgroup/processes.hpp"
#include "cgroup/remove_tree.hpp"

namespace pinfold {

namespace {

constexpr std::chrono::seconds kPatience{5};
constexpr std::chrono::seconds kDying{1};
constexpr std::chrono::milliseconds kFreezing{200};
constexpr int64_t kKillAgainMs = 50;
constexpr int kPauseMs = 2;

void await_end(pid_t pid, int64_t patience_ms) {
    const UniqueFd process(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
    pollfd end{process.get(), POLLIN, 0};
    if (process) ::poll(&end, 1, static_cast<int>(patience_ms));
}

// All that runs in the groups, of which every hierarchy has the same. It is frozen first, so that no fork outruns the
// killing. What this does not reach is left to those who empty one group after the other.
void kill_all(const CgroupPlace& place, const Deadline& deadline) {
    const auto running = [&] {
        Result<std::vector<pid_t>> pids = group_processes(place);
        return pids ? std::move(pids).value() : std::vector<pid_t>();
    };
    while (deadline.left_ms() > 0 && !running().empty()) {
        (void)freeze_group(place, kFreezing).has_value();
        const std::vector<pid_t> pids = running();
        for (const pid_t pid : pids) ::kill(pid, SIGKILL);
        let_die(place);
        for (const pid_t pid : pids) await_end(pid, std::min(deadline.left_ms(), kKillAgainMs));
    }
}

// Also in one that is empty already: the last process may have left the list and not yet the group.
Result<void> kill_members(int group, const Deadline& deadline) {
    const std::string list = TRY(read_control(group, "cgroup.procs"));
    pid_t last = 0;
    for (const std::string_view line : split(list, '\n')) {
        const pid_t pid = parse_number<pid_t>(line).value_or(0);
        if (pid > 0 && ::kill(pid, SIGKILL) == 0) last = pid;
    }
    if (last > 0) await_end(last, std::min(deadline.left_ms(), kKillAgainMs));
    else ::poll(nullptr, 0, kPauseMs);
    return {};
}

Result<void> remove_group(const std::string& directory, const Deadline& deadline) {
    if (::rmdir(directory.c_str()) == 0 || errno == ENOENT) return {};
    const size_t slash = directory.rfind('/');
    UniqueFd parent = TRY(open_at(AT_FDCWD, directory.substr(0, slash), O_PATH | O_DIRECTORY));
    return remove_tree(std::move(parent), directory.substr(slash + 1), deadline,
                       [&](int group) { return kill_members(group, deadline); });
}

Result<void> remove_empty_group(const std::string& directory, const Deadline& deadline) {
    while (::rmdir(directory.c_str()) != 0 && errno != ENOENT) {
        if (errno != EBUSY || deadline.left_ms() == 0) return errno_error(concat("remove cgroup ", directory));
        ::poll(nullptr, 0, kPauseMs);
    }
    return {};
}

}  // namespace

Result<void> remove_legacy_groups(const CgroupPlace& place) {
    const Deadline deadline(kPatience);
    // Where there is a group in cgroup v2, it has had the same processes, and they have been killed there.
    if (place.mount.empty()) kill_all(place, deadline);
    for (const std::string& mount : legacy_mounts(place)) {
        const std::string name = mount + place.path;
        TRY_IN(concat("remove cgroup ", name), remove_group(name, deadline));
    }
    return {};
}

Result<void> remove_empty_legacy_groups(const CgroupPlace& place) {
    const Deadline deadline(kDying);
    for (const std::string& mount : legacy_mounts(place)) TRY(remove_empty_group(mount + place.path, deadline));
    return {};
}

}  // namespace pinfold
