// The parent. What it makes on the host is held by guards: whichever step fails, the ones before it are undone.
#include "process/launcher.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "base/clock.hpp"
#include "base/fs.hpp"
#include "base/log.hpp"
#include "base/strings.hpp"
#include "cgroup/cgroup.hpp"
#include "kernel/child_guard.hpp"
#include "kernel/own_binary.hpp"
#include "kernel/syscalls.hpp"
#include "kernel/terminal.hpp"
#include "process/init.hpp"
#include "process/joiner.hpp"
#include "process/pid_file.hpp"
#include "process/step.hpp"
#include "process/supervise.hpp"
#include "seccomp/cache.hpp"
#include "state/store.hpp"

namespace pinfold {

namespace {

struct Child {
    ChildGuard guard;
    UniqueFd pidfd;
};

ContainerRecord make_record(const Plan& plan, const Spec& spec) {
    ContainerRecord record;
    record.id = plan.id;
    record.oci_version = spec.oci_version;
    record.bundle = plan.bundle;
    record.rootfs = plan.root.path;
    record.created = rfc3339_now();
    if (plan.cgroup.enabled) {
        record.cgroup_mount = plan.cgroup.mount;
        record.cgroup_path = plan.cgroup.path;
    }
    record.owner = ::geteuid();
    record.annotations = spec.annotations;
    return record;
}

// For a child that could not: its user namespace has no rights over the host's files.
Result<OpenedTrees> open_trees(const Plan& plan) {
    OpenedTrees trees;
    trees.mounts.resize(plan.mounts.size());
    if (plan.parent_opens_sources) trees.root = TRY_IN("root", clone_tree(AT_FDCWD, plan.root.path, true));
    for (size_t i = 0; i < plan.mounts.size(); ++i) {
        const MountRequest& mount = plan.mounts[i];
        const bool opened_here = plan.parent_opens_sources || mount.id_maps;
        if (mount.kind == MountRequest::Kind::bind && opened_here)
            trees.mounts[i] = TRY_IN(mount.label, open_bind_source(mount));
    }
    return trees;
}

std::optional<winsize> own_window() {
    const Result<winsize> size = window_size(STDIN_FILENO);
    return size ? std::optional(*size) : std::nullopt;
}

Result<InitContext> make_context(const Plan& plan, const LaunchOptions& options, Channel channel) {
    InitContext context{std::move(channel), {}, {}, {}, plan.process.window};
    if (plan.seccomp)
        context.filter =
            TRY(take_step(Step::seccomp, [&] { return compile_seccomp_cached(*plan.seccomp, options.seccomp_cache); }));
    if (!options.console_socket.empty()) context.console_socket = TRY(connect_console_socket(options.console_socket));
    else if (plan.process.terminal && !context.window) context.window = own_window();
    context.trees = TRY(take_step(Step::sources, [&] { return open_trees(plan); }));
    return context;
}

Result<pid_t> clone_into(uint64_t flags, const CgroupDir& cgroup, int& pidfd) {
    clone_args arguments{};
    arguments.flags = flags | CLONE_PIDFD;
    arguments.pidfd = reinterpret_cast<uintptr_t>(&pidfd);
    arguments.exit_signal = SIGCHLD;
    if (cgroup.fd() >= 0) {
        arguments.flags |= CLONE_INTO_CGROUP;
        arguments.cgroup = static_cast<uint64_t>(cgroup.fd());
    }
    const pid_t pid = sys_clone3(arguments);
    if (pid >= 0) return pid;
    Error error = errno_error("clone3");
    if (error.code == ENOSPC) error.hint = "a limit of /proc/sys/user/max_*_namespaces is reached";
    if (error.code == EPERM) error.hint = "new namespaces take root, or a user namespace in linux.namespaces";
    return error;
}

// The common case: one clone, straight into all namespaces and the cgroup.
Result<Child> clone_child(const Plan& plan, InitContext& context, const CgroupDir& cgroup) {
    int pidfd = -1;
    const pid_t pid = TRY(clone_into(plan.namespaces.create, cgroup, pidfd));
    if (pid == 0) run_init(plan, std::move(context));
    return Child{ChildGuard(pid), UniqueFd(pidfd)};
}

Result<Packet> expect(const Channel& channel, Message wanted) {
    std::optional<Packet> packet = TRY(channel.receive());
    if (!packet)
        return plain_error("the container's first process was killed while it was set up")
            .with_hint("was the memory limit too low?");
    if (packet->message == Message::failed) return std::move(packet->error);
    if (packet->message != wanted) return plain_error("parent and child disagree on what comes next");
    return std::move(*packet);
}

// With namespaces to join: the child comes from a joiner, which is gone afterwards.
Result<Child> clone_by_joiner(const Plan& plan, const Channel& channel, InitContext& context, const CgroupDir& cgroup) {
    std::vector<OpenedNamespace> namespaces = TRY(open_namespaces(plan.namespaces.join));
    int pidfd = -1;
    const pid_t pid = TRY(clone_into(plan.namespaces.user_before_time ? CLONE_NEWUSER : 0, cgroup, pidfd));
    if (pid == 0) run_joiner(plan, std::move(namespaces), std::move(context));
    const ChildGuard joiner(pid);
    const UniqueFd joiner_pidfd(pidfd);
    context.channel.close();
    if (plan.namespaces.user_before_time) {
        TRY_IN("id maps", write_id_maps(pid, *plan.id_maps));
        TRY(channel.send(Message::go));
    }
    Packet born = TRY(expect(channel, Message::born));
    return Child{ChildGuard(born.pid), std::move(born.fd)};
}

Result<Child> start_child(const Plan& plan, const Channel& channel, InitContext context, const CgroupDir& cgroup) {
    if (plan.namespaces.needs_joiner()) return clone_by_joiner(plan, channel, context, cgroup);
    return clone_child(plan, context, cgroup);
}

Result<void> set_oom_score(pid_t pid, int score) {
    Result<void> written = write_file_at(AT_FDCWD, concat("/proc/", pid, "/oom_score_adj"), std::to_string(score));
    if (written || written.error().code != EACCES) return written;
    if (::geteuid() != 0) {
        log_warning(concat("oom_score_adj ", score,
                           " is lower than the caller's own, which only root may set; it is left as it is"));
        return {};
    }
    return std::move(written).error().with_hint("lowering it needs CAP_SYS_RESOURCE on the host");
}

// Pipes only: files and terminals that the caller has redirected to us stay its own. Without the right to, the payload
// can still use its streams, just not open them anew.
void give_away_pipes(uid_t owner) {
    for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
        struct stat info {};
        if (::fstat(fd, &info) != 0 || !S_ISFIFO(info.st_mode) || info.st_uid == owner) continue;
        if (::fchown(fd, owner, gid_t(-1)) != 0) log_debug(concat("standard stream ", fd, " stays the caller's"));
    }
}

// What the child cannot do for itself, or must not start without.
Result<void> prepare_child(const Plan& plan, pid_t pid, const StateDir& state) {
    if (plan.id_maps && !plan.namespaces.user_before_time) {
        TRY(take_step(Step::id_maps, [&] { return write_id_maps(pid, *plan.id_maps); }));
    }
    raise_hard_limits(pid, plan.process.rlimits);
    if (plan.process.oom_score_adj) {
        TRY(take_step(Step::oom_score_adj, [&] { return set_oom_score(pid, *plan.process.oom_score_adj); }));
    }
    if (plan.stream_owner) give_away_pipes(*plan.stream_owner);
    return take_step(Step::state, [&] { return state.record_init(pid); });
}

// Until execve has closed the child's end. Gives the terminal's master, if there is one for us.
Result<UniqueFd> await_payload(const Plan& plan, const Channel& channel, const LaunchOptions& options) {
    UniqueFd master;
    if (plan.process.terminal && options.console_socket.empty()) master = TRY(expect(channel, Message::terminal)).fd;
    TRY(expect(channel, Message::ready));
    std::optional<Packet> last = TRY(channel.receive());
    if (last) return std::move(last->error);
    return master;
}

Result<int> finish(Child child, SignalForwarder& signals, UniqueFd master, const LaunchOptions& options) {
    if (options.detach) {
        child.guard.release();
        return 0;
    }
    const int exit_code = TRY(supervise({child.pidfd.get(), signals.fd(), std::move(master)}));
    child.guard.release();  // supervise has reaped it
    return exit_code;
}

}  // namespace

Result<int> run_container(const Plan& plan, const Spec& spec, const LaunchOptions& options) {
    if (plan.protect_binary) TRY(take_step(Step::own_binary, [&] { return run_from_readonly_binary(options.argv); }));
    StateDir state =
        TRY(take_step(Step::state, [&] { return StateDir::create(options.state_root, make_record(plan, spec)); }));
    CgroupDir cgroup = TRY(take_step(Step::cgroup, [&] { return CgroupDir::create(plan.cgroup); }));
    SignalForwarder signals = TRY(SignalForwarder::create());
    std::pair<Channel, Channel> ends = TRY(Channel::make_pair());
    const Channel channel = std::move(ends.first);
    InitContext context = TRY(make_context(plan, options, std::move(ends.second)));
    Child child = TRY(take_step(Step::clone, [&] { return start_child(plan, channel, std::move(context), cgroup); }));
    TRY(prepare_child(plan, child.guard.pid(), state));
    PidFile pid_file =
        TRY(take_step(Step::pid_file, [&] { return PidFile::write(options.pid_file, child.guard.pid()); }));
    TRY(channel.send(Message::go));
    UniqueFd master = TRY(await_payload(plan, channel, options));
    log_debug("the payload runs");
    pid_file.commit();
    const int exit_code = TRY(finish(std::move(child), signals, std::move(master), options));
    if (options.detach || options.keep) {
        cgroup.commit();
        state.commit();
    }
    return exit_code;
}

}  // namespace pinfold
