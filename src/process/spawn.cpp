// How a process comes to be that becomes a payload.
#include "process/spawn.hpp"

#include <grp.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>

#include "base/fs.hpp"
#include "base/log.hpp"
#include "base/strings.hpp"
#include "kernel/init_process.hpp"
#include "kernel/syscalls.hpp"
#include "process/child_steps.hpp"
#include "process/handshake.hpp"
#include "process/supervise.hpp"

namespace pinfold {

namespace {

// PR_SET_DUMPABLE keeps the processes that live in these namespaces from tracing us or opening our descriptors
// meanwhile (CVE-2016-9962).
Result<void> join(const std::vector<OpenedNamespace>& namespaces, bool joins_user) {
    if (namespaces.empty()) return {};
    if (::prctl(PR_SET_DUMPABLE, 0) != 0) return errno_error("set dumpable");
    // The caller's groups would stay with the payload if the namespace denies setgroups. A normal user cannot drop
    // them.
    if (joins_user && ::setgroups(0, nullptr) != 0 && errno != EPERM) return errno_error("drop the caller's groups");
    TRY(join_namespaces(namespaces));
    if (joins_user) TRY(become_namespace_root({}));
    return {};
}

// Who we are: the caller, or root in a user namespace of our own; then a member of the joined namespaces.
Result<void> enter(const Plan& plan, const std::vector<OpenedNamespace>& namespaces, ChildSide& handshake) {
    if (::prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) return errno_error("set the parent-death signal");
    if (plan.namespaces.user_before_time) {
        // The parent has written our id maps by the time it says go.
        TRY(handshake.await_go());
    }
    const bool joins_user = plan.namespaces.joins(CLONE_NEWUSER);
    // A process that is not dumpable may not open its own files in /proc, unless it is root: so clocks come first,
    // except where it takes the rights of the joined user namespace.
    const bool clocks_first = plan.namespaces.create_time && !joins_user;
    if (clocks_first) TRY(create_time_namespace(plan.namespaces.clock_offsets));
    TRY(join(namespaces, joins_user));
    if (plan.namespaces.create_time && !clocks_first) TRY(create_time_namespace(plan.namespaces.clock_offsets));
    return {};
}

// Not ours to join: what we clone is still to be set up, and not to be seen by those who live there.
UniqueFd take_pid_namespace(std::vector<OpenedNamespace>& namespaces) {
    const auto pid = std::ranges::find(namespaces, uint64_t{CLONE_NEWPID}, &OpenedNamespace::flag);
    if (pid == namespaces.end()) return {};
    UniqueFd taken = std::move(pid->fd);
    namespaces.erase(pid);
    return taken;
}

[[noreturn]] void run_joiner(std::vector<OpenedNamespace> namespaces, ChildContext context) {
    const NamespacePlan& plan = context.plan().namespaces;
    uint64_t flags = plan.create;
    if (plan.user_before_time) flags &= ~uint64_t{CLONE_NEWUSER};
    context.pid_namespace = take_pid_namespace(namespaces);
    ChildSide& handshake = context.handshake;
    const auto clone = [&]() -> Result<void> {
        TRY(enter(context.plan(), namespaces, handshake));
        return handshake.clone_sibling(flags, [&] { run_child(std::move(context)); });
    };
    // A part of the parent's step, which has told of it.
    Result<void> cloned = clone();
    if (!cloned) handshake.fail(in_step("clone", std::move(cloned).error()));
    ::_exit(0);
}

// Whoever lives where the new process is seen may have taken its end of the channel (CAP_SYS_PTRACE), and speak in its
// place. So neither number nor descriptor is believed: both must be of one process, and that a child of ours. Of all
// that can be named from in there, only the new one is.
Result<void> require_own_child(pid_t pid, int pidfd) {
    const Error forged =
        plain_error("a process was named as pinfold's own that is not: somebody in the container spoke");
    siginfo_t end{};
    if (::waitid(P_PIDFD, id_t(pidfd), &end, WEXITED | WNOHANG | WNOWAIT) != 0) return forged;
    return TRY(pid_of(pidfd)) == pid ? Result<void>() : forged;
}

}  // namespace

Result<pid_t> clone_into(uint64_t flags, int cgroup, int& pidfd) {
    clone_args arguments{};
    arguments.flags = flags | CLONE_PIDFD;
    arguments.pidfd = reinterpret_cast<uintptr_t>(&pidfd);
    arguments.exit_signal = SIGCHLD;
    if (cgroup >= 0) {
        arguments.flags |= CLONE_INTO_CGROUP;
        arguments.cgroup = static_cast<uint64_t>(cgroup);
    }
    const pid_t pid = sys_clone3(arguments);
    if (pid >= 0) return pid;
    Error error = errno_error("clone3");
    if (error.code == ENOSPC) error.hint = "a limit of /proc/sys/user/max_*_namespaces is reached";
    if (error.code == EPERM) error.hint = "new namespaces take root, or a user namespace in linux.namespaces";
    if (error.code == EAGAIN) error.hint = "the limit of processes is reached: pids.max of a cgroup, or RLIMIT_NPROC";
    return error;
}

Result<Child> spawn_by_joiner(ChildContext context, ParentSide& handshake, int cgroup,
                              const std::function<void()>& close_ours) {
    const Plan& plan = context.plan();
    std::vector<OpenedNamespace> namespaces = TRY(open_namespaces(plan.namespaces.join));
    int pidfd = -1;
    const pid_t pid = TRY(clone_into(plan.namespaces.user_before_time ? CLONE_NEWUSER : 0, cgroup, pidfd));
    if (pid == 0) {
        close_ours();
        run_joiner(std::move(namespaces), std::move(context));
    }
    const Child joiner{ChildGuard(pid), UniqueFd(pidfd)};
    context.handshake.close();
    if (plan.namespaces.user_before_time) {
        TRY_IN("id maps", write_id_maps(pid, *plan.id_maps));
        TRY(handshake.go());
    }
    return handshake.born(joiner.pidfd.get());
}

std::vector<std::string> new_namespaces(uint64_t flags) {
    std::vector<std::string> words;
    for (const uint64_t flag :
         {CLONE_NEWUSER, CLONE_NEWPID, CLONE_NEWNET, CLONE_NEWIPC, CLONE_NEWUTS, CLONE_NEWNS, CLONE_NEWCGROUP}) {
        if (flags & flag) words.push_back(concat("new ", namespace_name(flag), " namespace"));
    }
    return words;
}

// The 48th and 51st of the words in stat: where the arguments begin and where the environment ends, which follows them.
ArgvRegion find_argv_region() {
    const Result<std::string> stat = read_file("/proc/self/stat");
    if (!stat) return {};
    const std::vector<std::string_view> words = split(std::string_view(*stat).substr(stat->rfind(')') + 1), ' ');
    constexpr size_t kArguments = 48 - 2, kEnvironmentEnd = 51 - 2;
    if (words.size() <= kEnvironmentEnd) return {};
    return {parse_number<uintptr_t>(words[kArguments]).value_or(0),
            parse_number<uintptr_t>(words[kEnvironmentEnd]).value_or(0)};
}

void wipe(const ArgvRegion& words) {
    // NOLINTNEXTLINE(performance-no-int-to-ptr): the kernel tells addresses as numbers
    std::memset(reinterpret_cast<void*>(words.begin), 0, words.end - words.begin);
}

Result<void> depend_on_parent(const Channel& channel) {
    if (::prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) return errno_error("set the parent-death signal");
    pollfd parent{channel.fd(), 0, 0};
    if (::poll(&parent, 1, 0) > 0) return plain_error("the parent is gone");
    return {};
}

Result<void> close_all_but(std::span<const int> kept, unsigned first) {
    stop_logging();
    std::vector<unsigned> numbers;
    for (const int fd : kept) {
        if (fd >= 0 && unsigned(fd) >= first) numbers.push_back(unsigned(fd));
    }
    std::ranges::sort(numbers);
    for (const unsigned number : numbers) {
        if (number > first && ::close_range(first, number - 1, 0) != 0) return errno_error("close_range");
        first = number + 1;
    }
    if (::close_range(first, UINT_MAX, 0) != 0) return errno_error("close_range");
    return {};
}

Result<void> clone_as_sibling(uint64_t flags, const Channel& channel, const std::function<void()>& as_child) {
    int pidfd = -1;
    // Not clone3(2), which many filters forbid. With CLONE_PARENT the exit signal is the cloner's own.
    const auto pid =
        static_cast<pid_t>(::syscall(SYS_clone, flags | CLONE_PARENT | CLONE_PIDFD, nullptr, &pidfd, nullptr, nullptr));
    if (pid == 0) {
        as_child();
        ::_exit(1);
    }
    if (pid < 0) {
        Error error = errno_error("clone");
        if (error.code == EAGAIN)
            error.hint =
                "the limit of processes is reached (pids.max of a cgroup, or RLIMIT_NPROC): to come in takes "
                "two for a moment";
        if (error.code == ENOMEM && flags == 0)
            error.hint = "has the first process of the joined pid namespace ended? None can be started in it then";
        return error;
    }
    Result<void> sent = channel.send(Message::born, pid, pidfd);
    if (!sent) ::kill(pid, SIGKILL);
    return sent;
}

Result<Child> expect_born(const Channel& channel, int cloner_pidfd, int signal_fd) {
    pollfd slots[] = {{cloner_pidfd, POLLIN, 0}, {signal_fd, POLLIN, 0}};
    bool spoken = false;
    do {
        spoken = TRY(channel.await(slots));
        if (!spoken && slots[1].revents != 0) TRY(refuse_to_go_on(signal_fd));
    } while (!spoken && slots[0].revents == 0);
    // Whoever has ended may have spoken before.
    pollfd said{channel.fd(), POLLIN, 0};
    if (!spoken && ::poll(&said, 1, 0) == 0)
        return plain_error("the container's process was killed while it was set up")
            .with_hint("was the memory limit too low?");
    Packet born = TRY(expect(channel, Message::born));
    TRY(require_own_child(born.pid, born.fd.get()));
    return Child{ChildGuard(born.pid), std::move(born.fd)};
}

}  // namespace pinfold
