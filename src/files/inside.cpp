// A process of ours that works in a container.
#include "files/inside.hpp"

#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <vector>

#include "base/fs.hpp"
#include "base/log.hpp"
#include "base/process.hpp"
#include "base/strings.hpp"
#include "kernel/capabilities.hpp"

namespace pinfold {

namespace {

// A change of user clears both: the container must not trace us or open our descriptors, and we end with our parent.
Result<void> stay_private() {
    if (::prctl(PR_SET_DUMPABLE, 0) != 0) return errno_error("set dumpable");
    if (::prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) return errno_error("set the parent-death signal");
    return {};
}

// Nothing that the caller has open goes along, but for our end of the stream and the way.
Result<Stream> keep_only(const Stream& stream, const WayInside* way) {
    UniqueFd own(::fcntl(stream.fd(), F_DUPFD_CLOEXEC, STDERR_FILENO + 1));
    if (!own) return errno_error("keep the stream");
    const UniqueFd null = TRY(open_at(AT_FDCWD, "/dev/null", O_RDWR));
    for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
        if (::dup2(null.get(), fd) < 0) return errno_error("replace the standard streams");
    }
    std::vector<int> kept = {own.get()};
    if (way != nullptr) kept.insert(kept.end(), {way->root.get(), way->mounts.get(), way->user.get()});
    std::ranges::sort(kept);
    unsigned first = STDERR_FILENO + 1;
    for (const int fd : kept) {
        if (fd > int(first) && ::close_range(first, unsigned(fd) - 1, 0) != 0) return errno_error("close_range");
        first = std::max(first, unsigned(fd + 1));
    }
    if (::close_range(first, ~0U, 0) != 0) return errno_error("close_range");
    return Stream(std::move(own));
}

bool is_own_namespace(const std::string& name, int fd) {
    struct stat own {
    }, other{};
    return ::stat(concat("/proc/self/ns/", name).c_str(), &own) == 0 && ::fstat(fd, &other) == 0 &&
           own.st_dev == other.st_dev && own.st_ino == other.st_ino;
}

Result<void> join_namespace(const std::string& name, int fd) {
    if (is_own_namespace(name, fd) || ::setns(fd, 0) == 0) return {};
    return errno_error(concat("join the container's ", name, " namespace"));
}

// The user namespace for its files: the host's root can make none on a tmpfs that is the container's. The mount
// namespace for its mounts: to anyone elsewhere they are no obstacle, and a rename over one of them would remove it.
Result<void> join_namespaces_of(const WayInside& way) {
    if (way.user) {
        // They would stay with us where the namespace denies setgroups. A normal user cannot drop them.
        if (::setgroups(0, nullptr) != 0 && errno != EPERM) return errno_error("drop the groups");
        TRY(join_namespace("user", way.user.get()));
    }
    return join_namespace("mnt", way.mounts.get());
}

// Of one that has ended: root changes its root by its own right, anybody else by that over a new user namespace.
Result<void> leave_host() {
    if (::geteuid() == 0 || ::unshare(CLONE_NEWUSER) == 0) return {};
    return errno_error("make a user namespace to work in");
}

// Who we are: the caller, for a moment with all rights over the container's user namespace. Afterwards: the payload's
// user with no capability at all, whatever the payload has. A normal user, in a user namespace without ids, is that
// user already, and stays so.
Result<void> become_payloads_user(Identity identity, const WayInside& way) {
    identity.set_groups = way.set_groups;
    if (way.mounts || ::getuid() == 0) TRY(change_identity(identity));
    TRY(apply_capabilities({}));
    TRY(forbid_new_privileges());
    return stay_private();
}

Result<RootFd> enter(const InsideOf& container) {
    TRY(stay_private());
    const std::shared_ptr<const WayInside> way =
        container.way ? container.way : std::make_shared<WayInside>(TRY(open_way(container)));
    RootFd root(UniqueFd(::fcntl(way->root.get(), F_DUPFD_CLOEXEC, 0)));
    if (root.get() < 0) return errno_error("keep the container's root");
    TRY(way->mounts ? join_namespaces_of(*way) : leave_host());
    // A second wall behind RootFd: from here on no path leads to the host.
    if (::fchdir(root.get()) != 0 || ::chroot(".") != 0) return errno_error("enter the container's root");
    TRY(become_payloads_user(container.identity, *way));
    ::umask(0);
    return root;
}

Result<void> work_inside(const InsideOf& container, const WorkInside& work, const Stream& stream) {
    const OwnFds own = TRY(OwnFds::open());
    const RootFd root = TRY(enter(container));
    TRY_IN("in the container", work(root, own, stream));
    return {};
}

[[noreturn]] void run_inside(const InsideOf& container, const WorkInside& work, const Stream& inherited) {
    stop_logging();  // its descriptors are the caller's
    Result<Stream> stream = keep_only(inherited, container.way.get());
    if (!stream) ::_exit(1);
    const Result<void> done = work_inside(container, work, *stream);
    if (!done) stream->send_failure(done.error());
    ::_exit(done ? 0 : 1);
}

}  // namespace

Result<WayInside> open_way(const InsideOf& container) {
    const Error ended = plain_error("container not running: its first process has ended");
    const Result<UniqueFd> proc = open_at(AT_FDCWD, concat("/proc/", container.pid), O_PATH | O_DIRECTORY);
    // If this is the process, so was the one before, or it has ended: then nothing can be opened there any more.
    if (!proc || !TRY(open_process(container.pid, container.started))) return ended;
    TRY(require_first_thread(container.pid));
    WayInside way;
    way.root = TRY_IN("the container's root", open_at(proc->get(), "root", O_PATH | O_DIRECTORY));
    way.mounts = TRY(open_at(proc->get(), "ns/mnt", O_RDONLY));
    if (container.user_namespace) way.user = TRY(open_at(proc->get(), "ns/user", O_RDONLY));
    const UniqueFd setgroups = TRY(open_at(proc->get(), "setgroups", O_RDONLY));
    way.set_groups = TRY(read_all(setgroups.get(), "setgroups")) == "allow\n";
    return way;
}

InsideOf inside_of(const ContainerState& state, const Spec& spec) {
    const User& user = spec.process->user;
    const bool user_namespace = std::ranges::any_of(
        spec.linux_.namespaces, [](const Namespace& one) { return one.type == NamespaceType::user; });
    return {state.pid,         state.started,
            user_namespace,    {user.uid, user.gid, {user.additional_gids.begin(), user.additional_gids.end()}, true},
            spec.process->cwd, {}};
}

Result<Helper> start_inside(const InsideOf& container, const WorkInside& work) {
    std::pair<Stream, Stream> ends = TRY(Stream::make_pair());
    const pid_t pid = ::fork();
    if (pid < 0) return errno_error("fork");
    if (pid == 0) run_inside(container, work, ends.second);
    return Helper{ChildGuard(pid), std::move(ends.first)};
}

}  // namespace pinfold
