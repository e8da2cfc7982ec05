// A process that ends an exec at its deadline, should its supervisor not.
#include "sandbox/watchdog.hpp"

#include <dirent.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <memory>

#include "base/clock.hpp"
#include "base/log.hpp"
#include "base/process.hpp"
#include "base/strings.hpp"
#include "cgroup/cgroup.hpp"
#include "cgroup/control_files.hpp"
#include "process/payload_steps.hpp"

namespace pinfold {

namespace {

using namespace std::chrono_literals;

constexpr std::chrono::nanoseconds kGrace = 1s;  // for the supervisor to be the one
constexpr int kFailures = 100;                   // of one call, in a row

// Of what it inherits it keeps its end of the link. It has nothing more to do when there is neither a supervisor nor a
// program.
Result<void> stand_guard(const Channel& link, const CgroupPath& group, bool marked, std::chrono::nanoseconds deadline) {
    const std::optional<Packet> mark = marked ? TRY(link.receive()) : std::nullopt;
    const std::optional<Packet> born = TRY(link.receive());
    if (!born) return {};
    const UniqueFd timer = TRY(make_timer(CLOCK_MONOTONIC));
    TRY(set_timer(timer, deadline + kGrace));
    int failures = 0;
    for (int watched = link.fd();;) {
        pollfd slots[] = {{timer.get(), POLLIN, 0}, {watched, POLLIN, 0}};
        if (::poll(slots, 2, -1) < 0) {
            // The kernel's want of memory passes. If it does not: rather too early than never.
            if (errno != EINTR && ++failures > kFailures) break;
            continue;
        }
        failures = 0;
        if (slots[0].revents != 0) break;
        if (slots[1].revents == 0) continue;
        if (watched == born->fd.get()) break;  // and what it has left goes as well
        watched = born->fd.get();
    }
    kill_everyone(group, mark ? mark->fd.get() : -1);
    TRY(send_signal(born->fd.get(), SIGKILL));
    kill_everyone(group, mark ? mark->fd.get() : -1);
    return {};
}

[[noreturn]] void become_watchdog(const Channel& link, const CgroupPath& group, bool marked,
                                  std::chrono::nanoseconds deadline) {
    ::setsid();
    reset_signals();
    stop_logging();
    ::prctl(PR_SET_NAME, "pinfold-watch");
    const auto own = static_cast<unsigned>(link.fd());
    ::close_range(0, own - 1, 0);
    ::close_range(own + 1, UINT_MAX, 0);
    const Result<void> done = stand_guard(link, group, marked, deadline);
    ::_exit(done ? 0 : 1);
}

// Whom we may not look at is another user's.
bool is_in(const struct stat& cgroup_namespace, pid_t pid) {
    struct stat own {};
    bool told = false;
    ask_threads(pid, [&](const std::string& thread) {
        told = ::stat((thread + "/ns/cgroup").c_str(), &own) == 0;
        return told || (errno != ENOENT && errno != ESRCH);
    });
    return told && own.st_ino == cgroup_namespace.st_ino && own.st_dev == cgroup_namespace.st_dev;
}

// A process that has ended has no namespaces any more, though it may still be there.
std::vector<pid_t> members_of(int cgroup_namespace) {
    std::vector<pid_t> members;
    struct stat wanted {};
    if (::fstat(cgroup_namespace, &wanted) != 0) return members;
    const std::unique_ptr<DIR, int (*)(DIR*)> processes(::opendir("/proc"), ::closedir);
    while (const dirent* entry = processes ? ::readdir(processes.get()) : nullptr) {
        const std::optional<pid_t> pid = parse_number<pid_t>(entry->d_name);
        if (pid && is_in(wanted, *pid)) members.push_back(*pid);
    }
    return members;
}

}  // namespace

Result<Watchdog> Watchdog::start(const CgroupPath& group, bool marked, std::chrono::nanoseconds deadline) {
    std::pair<Channel, Channel> ends = TRY(Channel::make_pair());
    const pid_t pid = ::fork();
    if (pid < 0) return errno_error("start a process: fork");
    if (pid == 0) {
        ends.first.close();
        become_watchdog(ends.second, group, marked, deadline);
    }
    return Watchdog(pid, std::move(ends.first));
}

Result<void> Watchdog::watch(pid_t pid, int pidfd, int mark) const {
    if (mark >= 0) TRY(link_.send(Message::marked, 0, mark));
    return link_.send(Message::born, pid, pidfd);
}

// Who forks meanwhile is found in the next round. Who is marked may have left the group.
void kill_everyone(const CgroupPath& group, int mark) {
    constexpr int kRounds = 100;
    if (kill_group(group) && mark < 0) return;
    for (int round = 0; round < kRounds; ++round) {
        const Result<std::vector<pid_t>> found = mark >= 0 ? members_of(mark) : group_processes(group);
        if (!found || found->empty()) return;
        for (const pid_t pid : *found) ::kill(pid, SIGKILL);
    }
}

}  // namespace pinfold
