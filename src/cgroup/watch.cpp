// Awaiting what happens in a group: the kernel announces changes of *.events files to poll().
#include "cgroup/watch.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "base/fs.hpp"
#include "base/strings.hpp"
#include "cgroup/control_files.hpp"
#include "cgroup/v1.hpp"

namespace pinfold {

namespace {

// cgroup v1 tells that it is about to kill; its count follows, and is looked at again and again for so long.
constexpr std::chrono::milliseconds kKillPatience{1000};
constexpr int64_t kSoonMs = 5;

// The same descriptor is read again and again: poll() tells of changes since its last read.
std::string read_again(const UniqueFd& file) {
    std::array<char, 1024> text{};
    const ssize_t got = ::pread(file.get(), text.data(), text.size(), 0);
    return got > 0 ? std::string(text.data(), size_t(got)) : std::string();
}

}  // namespace

Result<GroupWatch> GroupWatch::create(const CgroupPath& place) {
    GroupWatch watch;
    watch.place_ = place;
    watch.group_ = TRY(open_group(place));
    const std::string directory = TRY(directory_of(place));
    // The kernel tells of changes no more often than every 10 ms, later if need be; what it has not told when the group
    // is removed, it never tells.
    watch.removals_ = TRY(watch_removals(directory.substr(0, directory.rfind('/'))));
    if (!place.mount.empty()) watch.events_ = TRY(open_at(watch.group_.get(), "cgroup.events", O_RDONLY));
    if (place.v1.contains("memory")) {
        V1Oom oom = TRY(watch_v1_oom(place));
        watch.memory_events_ = std::move(oom.control);
        watch.oom_signal_ = std::move(oom.signal);
    }
    watch.oom_kills_ = watch.oom_kills();
    return watch;
}

// A group that was removed has nothing left to read.
bool GroupWatch::is_empty() {
    if (events_) return !has_event(read_again(events_), "populated");
    const Result<std::vector<pid_t>> members = group_processes(place_);
    if (!members) return true;
    for (const pid_t pid : *members) {
        member_ = UniqueFd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
        if (member_) return false;
    }
    return true;
}

// An update may have brought the controller only lately.
uint64_t GroupWatch::oom_kills() {
    if (!memory_events_) {
        memory_events_ = UniqueFd(::openat(group_.get(), "memory.events", O_RDONLY | O_CLOEXEC));
    }
    const std::string text = read_again(memory_events_);
    return text.empty() ? oom_kills_ : event_count(text, "oom_kill");
}

Result<GroupWatch::Event> GroupWatch::next(const Deadline& deadline) {
    for (;;) {
        // The end is looked for first and told last: what the kernel counted until then is told before.
        const bool empty = is_empty();
        const uint64_t before = std::exchange(oom_kills_, oom_kills());
        if (oom_kills_ > before) return Event::oom;
        if (empty) return Event::empty;
        if (deadline.left_ms() == 0) return Event::none;
        TRY(await_change(deadline));
    }
}

Result<void> GroupWatch::await_change(const Deadline& deadline) {
    const int64_t patience = kill_follows_.left_ms() > 0 ? std::min(kSoonMs, deadline.left_ms()) : deadline.left_ms();
    std::array changes{pollfd{events_.get(), POLLPRI, 0}, pollfd{memory_events_.get(), POLLPRI, 0},
                       pollfd{removals_.get(), POLLIN, 0}, pollfd{oom_signal_.get(), POLLIN, 0},
                       pollfd{member_.get(), POLLIN, 0}};
    if (::poll(changes.data(), changes.size(), static_cast<int>(patience)) < 0 && errno != EINTR) {
        return errno_error("wait for events: poll");
    }
    discard(removals_);
    if (discard(oom_signal_)) kill_follows_ = Deadline(kKillPatience);
    return {};
}

}  // namespace pinfold
