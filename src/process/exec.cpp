// A further process in a container that exists: one setns for the processes to come, one clone into the container's
// cgroup, one setns in the child for all that is left.
#include "process/exec.hpp"

#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "base/fs.hpp"
#include "base/log.hpp"
#include "base/strings.hpp"
#include "cgroup/cgroup.hpp"
#include "cgroup/processes.hpp"
#include "kernel/init_process.hpp"
#include "kernel/namespaces.hpp"
#include "kernel/selinux.hpp"
#include "kernel/terminal.hpp"
#include "kernel/users.hpp"
#include "process/listener.hpp"
#include "process/payload.hpp"
#include "process/pid_file.hpp"
#include "process/step.hpp"

namespace pinfold {

namespace {

// What the child takes over from its parent besides the plan.
struct ExecContext {
    Channel channel;
    UniqueFd init;              // the container's first process, whose namespaces are the container's
    uint64_t left_to_join = 0;  // CLONE_NEW*
    bool joins_user = false;    // by the parent or by the child
    Outfit outfit;
};

Result<bool> shares_user_namespace(pid_t pid) {
    const UniqueFd other = TRY(open_at(AT_FDCWD, concat("/proc/", pid, "/ns/user"), O_RDONLY));
    return is_own_user_namespace(other.get());
}

Error first_process_ended() { return plain_error("container not running: its first process has ended"); }

Result<void> join(int init, uint64_t flags) {
    if (flags == 0 || ::setns(init, static_cast<int>(flags)) == 0) return {};
    if (errno == ESRCH) return first_process_ended();
    return errno_error("join the container's namespaces");
}

Result<void> open_terminal(const ProcessPlan& process, const ExecContext& context) {
    const UniqueFd root = TRY(open_at(AT_FDCWD, "/", O_PATH | O_DIRECTORY));
    const Pty pty = TRY(open_container_pty(root.get()));
    return hand_over_terminal(pty, process.identity.uid, context.outfit, context.channel);
}

// Who we are: the caller, then root in the container. PR_SET_DUMPABLE keeps the processes that live there from tracing
// us or opening our descriptors meanwhile (CVE-2016-9962).
Result<void> enter_container(const ExecPlan& plan, const ExecContext& context) {
    if (::prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) return errno_error("set the parent-death signal");
    const std::optional<Packet> go = TRY(context.channel.receive());
    if (!go) return plain_error("the parent is gone");
    TRY(confine(plan.process, go->pid));
    if (::prctl(PR_SET_DUMPABLE, 0) != 0) return errno_error("set dumpable");
    // The caller's groups would stay with the process if the namespace denies setgroups. A normal user cannot drop
    // them.
    if (context.joins_user && ::setgroups(0, nullptr) != 0 && errno != EPERM) return errno_error("drop the groups");
    TRY(join(context.init.get(), context.left_to_join));
    if (context.joins_user) TRY(become_namespace_root(plan.id_maps.value_or(IdMaps{})));
    if (::setsid() < 0) return errno_error("setsid");
    ::umask(0);
    return {};
}

Result<void> choose_user(const std::string& user, Identity& identity) {
    if (user.empty()) return {};
    Identity found = TRY(find_user(user));
    found.set_groups = identity.set_groups;
    found.groups.insert(found.groups.end(), identity.groups.begin(), identity.groups.end());
    identity = std::move(found);
    return {};
}

// Returns only on failure.
Result<void> become_payload(const ExecPlan& plan, const ExecContext& context) {
    ProcessPlan process = plan.process;
    TRY(take_step(Step::session, [&] { return enter_container(plan, context); }));
    if (!plan.final_cpus.empty())
        TRY_IN("process.execCPUAffinity.final",
               take_step(Step::scheduler, [&] { return apply_cpu_affinity(plan.final_cpus); }));
    if (!plan.keyring.empty()) TRY(take_step(Step::keyring, [&] { return join_new_keyring(plan.keyring, ""); }));
    TRY(take_step(Step::user, [&] { return choose_user(plan.user, process.identity); }));
    if (process.terminal) TRY(take_step(Step::terminal, [&] { return open_terminal(process, context); }));
    const Executable executable = TRY(become_user(process));
    TRY(take_step(Step::exec, [&] { return let_go(process, context.outfit); }));
    return execute_payload(process, executable, context.outfit, context.channel);
}

[[noreturn]] void run_exec(const ExecPlan& plan, const ExecContext& context) {
    const Result<void> failed = become_payload(plan, context);
    context.channel.send_failure(failed.error());
    ::_exit(1);
}

Result<ExecContext> make_context(const ExecPlan& plan, const ContainerState& state, const ChildOptions& options,
                                 Channel channel) {
    ExecContext context{std::move(channel), {}, 0, false, {}};
    context.init = TRY(open_process(state.pid, state.started));
    if (!context.init) return plain_error(concat("container not running: ", quoted(state.record.id), " is stopped"));
    context.joins_user = (plan.namespaces & CLONE_NEWUSER) != 0 && !TRY(shares_user_namespace(state.pid));
    context.left_to_join = plan.namespaces;
    if (!context.joins_user) context.left_to_join &= ~uint64_t{CLONE_NEWUSER};
    context.outfit = TRY(make_outfit(plan.process, plan.seccomp, options));
    return context;
}

Result<UniqueFd> open_group(const ContainerRecord& record, const std::string& path) {
    const std::string name = record.cgroup.mount + path;
    return TRY_IN("cgroup", open_at(AT_FDCWD, name, O_PATH | O_DIRECTORY));
}

// A payload that is an init system moves itself into a group below its own, which can then hold no process: the new one
// joins it there.
Result<pid_t> clone_into_container(const ContainerState& state, const std::string& group, int& pidfd) {
    const ContainerRecord& record = state.record;
    if (!record.cgroup.exists() || record.cgroup.mount.empty()) return clone_into(0, -1, pidfd);
    const std::string below = group.empty() ? "" : TRY_IN("--cgroup", clean_cgroup_path(group));
    const UniqueFd own = TRY(open_group(record, record.cgroup.path + below));
    Result<pid_t> pid = clone_into(0, own.get(), pidfd);
    // A normal user may not move processes out of its login: its systemd does, once the process is there.
    const bool is_systemds = below.empty() && !record.cgroup.scope.empty();
    if (!pid && pid.error().code == EACCES && is_systemds) return clone_into(0, -1, pidfd);
    if (pid || pid.error().code != EBUSY || !below.empty()) return pid;
    const std::string moved = TRY(group_of(state.pid));
    const UniqueFd of_init = TRY(open_group(record, moved));
    return clone_into(0, of_init.get(), pidfd);
}

// Whether a clone into the container failed because that is at its end: its group may be gone by then, and a namespace
// whose first process is about to end answers ENOMEM to new ones, for as long as it still waits for the others.
bool is_ending(int init, int code) {
    constexpr int kPatience = 1000;  // milliseconds
    pollfd end{init, POLLIN, 0};
    return ::poll(&end, 1, code == ENOMEM ? kPatience : 0) == 1;
}

// What clone3(2) knows nothing of. Without cgroup v2, a group of v1 is what --cgroup names.
Result<void> admit(const CgroupPlace& container, const std::string& group, pid_t pid) {
    CgroupPlace place = container;
    if (place.mount.empty() && !group.empty()) place.path += TRY_IN("--cgroup", clean_cgroup_path(group));
    return admit_process(place, pid);
}

// The namespace of processes takes effect for those to come. A normal user has the right to it only as a member of the
// user namespace; we keep our place among the host's files in either case.
Result<void> join_ahead(ExecContext& context) {
    uint64_t ahead = context.left_to_join & CLONE_NEWPID;
    if (::geteuid() != 0) ahead |= context.left_to_join & CLONE_NEWUSER;
    TRY(join(context.init.get(), ahead));
    context.left_to_join &= ~ahead;
    return {};
}

Result<Child> start_child(const ExecPlan& plan, const ContainerState& state, const std::string& group, Channel& channel,
                          ExecContext context) {
    if (!plan.initial_cpus.empty()) TRY_IN("process.execCPUAffinity.initial", apply_cpu_affinity(plan.initial_cpus));
    TRY(join_ahead(context));
    int pidfd = -1;
    const Result<pid_t> pid = clone_into_container(state, group, pidfd);
    if (!pid) return is_ending(context.init.get(), pid.error().code) ? first_process_ended() : pid.error();
    if (*pid == 0) {
        channel.close();  // so that the child sees the end of a parent that dies early
        run_exec(plan, context);
    }
    return Child{ChildGuard(*pid), UniqueFd(pidfd)};
}

}  // namespace

Result<StartedExec> start_exec(const ExecRequest& request) {
    const ExecPlan& plan = request.plan;
    const ContainerState& state = request.state;
    if (!plan.process.selinux_label.empty()) TRY(require_selinux("process.selinuxLabel"));
    std::pair<Channel, Channel> ends = TRY(Channel::make_pair());
    const Channel& channel = ends.first;
    ExecContext context = TRY(make_context(plan, state, request.options, std::move(ends.second)));
    context.outfit.streams = request.streams;
    StartedExec started{TRY(take_step(
        Step::clone, [&] { return start_child(plan, state, request.group, ends.first, std::move(context)); }))};
    const Child& child = started.child;
    TRY(admit(state.record.cgroup, request.group, child.pid()));
    TRY(prepare_process(child.pid(), plan.process, plan.stream_owner));
    PidFile pid_file =
        TRY(take_step(Step::pid_file, [&] { return PidFile::write(request.options.pid_file, child.pid()); }));
    TRY(send_pidfd(child, request.options.pidfd_socket));
    TRY(channel.send(Message::go, child.pid()));
    const bool terminal_for_us = plan.process.terminal && request.options.console_socket.empty();
    const int pidfd = child.pidfd.get();
    const auto on_listener = [&](const ListenerOffer& offer) -> Result<int> {
        if (request.listens) started.listener = TRY(adopt_listener(offer, channel, child.pid(), pidfd));
        else TRY(hand_over_listener(offer, channel, {child.pid(), pidfd, state}, *plan.seccomp));
        return started.listener.get();
    };
    const auto on_gate = [&](WaitingPlace gate) {
        const auto read = [&] { return read_receipt(plan, {state.pid, state.record.cgroup}, child.pid()); };
        return inspect({child.pid(), pidfd, gate}, channel, read, request.on_receipt);
    };
    started.master = TRY(await_payload(channel, terminal_for_us, {on_listener, on_gate}));
    pid_file.commit();
    return started;
}

Result<int> exec_in_container(const ExecRequest& request) {
    const SignalForwarder signals = TRY(SignalForwarder::create());
    StartedExec started = TRY(start_exec(request));
    if (request.options.detach) {
        started.child.guard.release();
        return 0;
    }
    return supervise_child(std::move(started.child), signals, std::move(started.master));
}

}  // namespace pinfold
