// The end of a scope. systemd removes it, with the groups that the payload made below it, once its last process has
// ended.
#include <fcntl.h>
#include <poll.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <cerrno>

#include "base/fs.hpp"
#include "base/strings.hpp"
#include "cgroup/control_files.hpp"
#include "cgroup/deadline.hpp"
#include "cgroup/scope.hpp"

namespace pinfold {

namespace {

constexpr std::chrono::seconds kCollecting{1};  // longer than systemd takes for a scope that has become empty
constexpr std::chrono::seconds kStopping{5};

void discard(int source) {
    char events[4096];
    while (::read(source, events, sizeof events) > 0) continue;
}

// Whether the directory goes away in time. Its parent, a slice, may go with it.
bool await_removal(const std::string& directory, std::chrono::milliseconds patience) {
    const Deadline deadline(patience);
    const UniqueFd removals(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
    ::inotify_add_watch(removals.get(), directory.substr(0, directory.rfind('/')).c_str(), IN_DELETE | IN_DELETE_SELF);
    while (::access(directory.c_str(), F_OK) == 0) {
        if (deadline.left_ms() == 0) return false;
        pollfd change{removals.get(), POLLIN, 0};
        ::poll(&change, 1, static_cast<int>(deadline.left_ms()));
        discard(removals.get());
    }
    return true;
}

// Before Linux 5.14 there is no such file, and systemd kills one by one when it is told to stop the scope.
Result<void> kill_all(const std::string& directory) {
    Result<void> killed = write_file_at(AT_FDCWD, directory + "/cgroup.kill", "1");
    const bool vanished = !killed && (killed.error().code == ENOENT || killed.error().code == ENODEV);
    return vanished ? Result<void>() : killed;
}

}  // namespace

Result<void> remove_scope(const CgroupPlace& place) {
    const std::string directory = TRY(directory_of(place));
    const std::string step = concat("remove cgroup ", directory);
    TRY_IN(step, kill_all(directory));
    if (await_removal(directory, kCollecting)) return {};
    TRY_IN(step, stop_scope(place));
    if (await_removal(directory, kStopping)) return {};
    return plain_error(concat(step, ": systemd has stopped ", place.scope, ", but the group is still there"));
}

Result<void> await_end_of_scope(const CgroupPlace& place) {
    const std::string directory = TRY(directory_of(place));
    // Of a start that was killed, the first process and whoever asked systemd for the scope may still be on their way
    // out.
    if (await_removal(directory, kStopping)) return {};
    return plain_error(concat("remove cgroup ", directory, ": something still runs in it"));
}

}  // namespace pinfold
