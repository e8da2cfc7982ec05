// A further process in a container that exists. One clone into the container's cgroup, but not into its pid namespace:
// that process joins all the rest and becomes the payload's user, and then clones the one that is seen inside
// (spawn.hpp).
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
#include "base/process.hpp"
#include "base/strings.hpp"
#include "cgroup/cgroup.hpp"
#include "cgroup/control_files.hpp"
#include "kernel/credentials.hpp"
#include "kernel/namespaces.hpp"
#include "kernel/selinux.hpp"
#include "kernel/terminal.hpp"
#include "process/handshake.hpp"
#include "process/host_steps.hpp"
#include "process/payload_steps.hpp"
#include "process/pid_file.hpp"
#include "process/spawn.hpp"
#include "process/step.hpp"
#include "process/trampoline.hpp"
#include "seccomp/cache.hpp"

namespace pinfold {

namespace {

// What the child takes over from its parent besides the plan.
struct ExecContext {
    ChildSide handshake;
    int init = -1;             // a pidfd of the container's first process, whose namespaces are the container's
    uint64_t namespaces = 0;   // CLONE_NEW*: those that are not ours already, but for that of processes
    UniqueFd pid_namespace{};  // which is joined last, when the right to look at the first process may be lost
    ArgvRegion words;
    PayloadSetup setup;
    UniqueFd trampoline{};
    LastSteps last{};

    bool joins_user() const { return (namespaces & CLONE_NEWUSER) != 0; }
};

ChildRequest request_of(const ExecPlan& plan, const ProcessPlan& process, const LastSteps& last = {}) {
    return {process, plan.seccomp, nullptr, false, last, (plan.namespaces & CLONE_NEWUSER) != 0};
}

Error first_process_ended() { return plain_error("container not running: its first process has ended"); }

Result<UniqueFd> open_namespace_of(pid_t pid, std::string_view name) {
    Result<UniqueFd> opened = open_at(AT_FDCWD, concat("/proc/", pid, "/ns/", name), O_RDONLY);
    if (!opened && (opened.error().code == ENOENT || opened.error().code == ESRCH)) return first_process_ended();
    if (!opened && opened.error().code == EACCES)
        return std::move(opened).error().with_hint(
            "one of a normal user's that has changed its user and waits for its start cannot be entered: start it "
            "first");
    return opened;
}

Result<bool> shares_user_namespace(pid_t pid) {
    return is_own_user_namespace(TRY(open_namespace_of(pid, "user")).get());
}

Result<void> join(int init, uint64_t flags) {
    if (flags == 0 || ::setns(init, static_cast<int>(flags)) == 0) return {};
    if (errno == ESRCH) return first_process_ended();
    return errno_error("join the container's namespaces");
}

Result<void> open_terminal(ChildContext& child) {
    const UniqueFd root = TRY(open_at(AT_FDCWD, "/", O_PATH | O_DIRECTORY));
    const Pty pty = TRY(open_container_pty(root.get()));
    TRY(hand_over_terminal(pty, child.process().identity.uid, child.setup, child.handshake));
    return place_terminal(pty.slave.get());
}

// By the host's /proc, which knows us whatever we have joined.
Result<void> mark(int proc, ChildSide& handshake) {
    if (::unshare(CLONE_NEWCGROUP) != 0) return errno_error("make a cgroup namespace");
    const UniqueFd own = TRY(open_at(proc, "self/ns/cgroup", O_RDONLY));
    return handshake.mark(own.get());
}

// Who we are: the caller, then root in the container, and out of its sight. Not dumpable: a container that has no pid
// namespace of its own sees us all the same (CVE-2016-9962), and so will be the process that all others see.
Result<void> enter_container(const ExecPlan& plan, const ExecContext& context, ChildContext& child) {
    TRY(depend_on_parent(child.handshake.channel()));
    child.host_pid = TRY(child.handshake.await_go()).pid;
    if (!plan.process.apparmor_profile.empty()) TRY_IN("AppArmor", set_apparmor_for_exec(child));
    if (!plan.process.selinux_label.empty()) TRY_IN("SELinux", set_selinux_for_exec(child));
    wipe(context.words);
    if (::prctl(PR_SET_DUMPABLE, 0) != 0) return errno_error("set dumpable");
    // The caller's groups would stay with the process if the namespace denies setgroups. A normal user cannot drop
    // them.
    if (context.joins_user() && ::setgroups(0, nullptr) != 0 && errno != EPERM) return errno_error("drop the groups");
    const UniqueFd proc = plan.marked ? TRY(open_at(AT_FDCWD, "/proc", O_PATH | O_DIRECTORY)) : UniqueFd();
    TRY(join(context.init, context.namespaces));
    if (plan.marked) TRY(mark(proc.get(), child.handshake));
    if (context.joins_user()) TRY(become_namespace_root(plan.id_maps.value_or(IdMaps{})));
    if (::setsid() < 0) return errno_error("setsid");  // away from the caller's terminal
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

// The namespace of processes is joined last, for the one to come; from then on there is nothing of the host's to close
// but descriptors.
Result<void> come_in(const ExecPlan& plan, const ExecContext& context, ProcessPlan& process, ChildContext& child) {
    TRY(take_step("session", [&] { return enter_container(plan, context, child); }));
    if (!plan.final_cpus.empty())
        TRY_IN("process.execCPUAffinity.final",
               take_step("scheduler", [&] { return apply_cpu_affinity(plan.final_cpus); }));
    if (!plan.keyring.empty()) TRY(take_step("keyring", [&] { return join_new_keyring(plan.keyring, ""); }));
    TRY(take_step("user", [&] { return choose_user(plan.user, process.identity); }));
    if (process.terminal) TRY(take_step("terminal", [&] { return open_terminal(child); }));
    if (context.pid_namespace)
        TRY(take_step("pid namespace", [&] { return join(context.pid_namespace.get(), CLONE_NEWPID); }));
    return become_payload(child);
}

[[noreturn]] void run_joiner(const ExecPlan& plan, ExecContext& context) {
    ProcessPlan process = plan.process;  // whose user may be looked up inside
    ChildContext child{.request = request_of(plan, process, context.last),
                       .handshake = std::move(context.handshake),
                       .setup = std::move(context.setup),
                       .trampoline = std::move(context.trampoline)};
    child.handshake.fail(come_in(plan, context, process, child).error());
    ::_exit(1);
}

Result<ExecContext> make_context(const ExecRequest& request, int init, ChildSide handshake) {
    const ExecPlan& plan = request.plan;
    ExecContext context{
        .handshake = std::move(handshake), .init = init, .namespaces = plan.namespaces, .words = find_argv_region()};
    context.namespaces &= ~uint64_t{CLONE_NEWPID};
    if (context.joins_user() && TRY(shares_user_namespace(request.state.pid)))
        context.namespaces &= ~uint64_t{CLONE_NEWUSER};
    if ((plan.namespaces & CLONE_NEWPID) != 0) context.pid_namespace = TRY(open_namespace_of(request.state.pid, "pid"));
    // If it still lives, these were its own and not those of another process with its number.
    if (!TRY(send_signal(init, 0))) return first_process_ended();
    context.setup = TRY(make_setup(plan.process, request.options));
    const std::optional<SeccompFilter>& filter = context.setup.filter = request.ending.filter;
    context.last = request.ending.last;
    if (context.last.in_trampoline)
        context.trampoline = TRY(take_step("trampoline", [&] { return make_trampoline(filter ? &*filter : nullptr); }));
    context.setup.streams = request.streams;
    return context;
}

// A container that waits for its start may have more rights than its programs will, to load its filter with, and so may
// the process that comes in; one that can trace them would have these, too.
Result<void> check_tracing(const ContainerState& state, const ChildRequest& request, bool others_may_trace) {
    const uint64_t kept = kept_capabilities(request);
    const uint64_t waiting = state.status == Status::created ? TRY(permitted_capabilities(state.pid)) : 0;
    if ((kept | waiting) == 0) return {};
    const uint64_t tracing = capability_bit("CAP_SYS_PTRACE").value_or(0);
    const uint64_t bounding = request.process.capabilities.bounding | TRY(bounding_capabilities(state.pid));
    if ((bounding & tracing) == 0 && !others_may_trace) return {};
    if ((waiting & ~bounding) != 0)
        return plain_error(concat(quoted(state.record.id),
                                  " waits for its start with the right to load its filter, which a program with "
                                  "CAP_SYS_PTRACE could take over"))
            .with_hint("start it first, or set process.noNewPrivileges");
    if ((kept & ~bounding) != 0)
        return plain_error(concat("programs in ", quoted(state.record.id),
                                  " may have CAP_SYS_PTRACE, and could take over the rights that this one needs until "
                                  "its execve"))
            .with_hint(
                "use --no-new-privs, or set process.noNewPrivileges; or, with a filter that allows what a start takes "
                "and a scheduler that "
                "is no deadline, leave out --strict, --timeout, --result and a listener");
    return {};
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
Result<void> admit(const CgroupPath& container, const std::string& group, pid_t pid) {
    CgroupPath place = container;
    if (place.mount.empty() && !group.empty()) place.path += TRY_IN("--cgroup", clean_cgroup_path(group));
    return add_process(place, pid);
}

// Limits, groups and scores that it gets are those of the process that it clones.
Result<Child> start_joiner(const ExecRequest& request, ParentSide& handshake, ExecContext& context) {
    const ExecPlan& plan = request.plan;
    if (!plan.initial_cpus.empty()) TRY_IN("process.execCPUAffinity.initial", apply_cpu_affinity(plan.initial_cpus));
    int pidfd = -1;
    const pid_t pid =
        TRY(take_step("clone", [&] { return clone_into_container(request.state, request.group, pidfd); }));
    if (pid == 0) {
        handshake.close();  // so that it sees the end of a parent that dies early
        run_joiner(plan, context);
    }
    Child joiner{ChildGuard(pid), UniqueFd(pidfd)};
    TRY(admit(request.state.record.cgroup, request.group, pid));
    raise_hard_limits(pid, plan.process.rlimits);
    if (const std::optional<int> score = plan.process.oom_score_adj)
        TRY(take_step("oom_score_adj", [&] { return set_oom_score(pid, *score); }));
    if (plan.stream_owner && request.streams == nullptr)
        TRY(take_step("standard streams", [&] { return give_away_pipes(*plan.stream_owner); }));
    return joiner;
}

bool keeps_master(const ExecRequest& request) {
    return request.plan.process.terminal && request.options.console_socket.empty();
}

// Ends with a process inside that waits for its `go`.
Result<StartedExec> come_in_by_joiner(const ExecRequest& request, ParentSide& handshake, ExecContext context) {
    const Result<Child> joiner = start_joiner(request, handshake, context);
    if (!joiner && is_ending(context.init, joiner.error().code)) return in_step("clone", first_process_ended());
    if (!joiner) return joiner.error();
    context.handshake.close();
    TRY(handshake.go(joiner->pid()));
    UniqueFd mark, master;
    if (request.plan.marked) mark = TRY(handshake.mark());
    if (keeps_master(request)) master = TRY(handshake.terminal());
    Result<Child> child = handshake.born(joiner->pidfd.get());
    if (child) return StartedExec{std::move(*child), std::move(master), {}, std::move(mark)};
    const bool no_longer = child.error().code == ENOMEM && is_ending(context.init, ENOMEM);
    return no_longer ? in_step("clone", first_process_ended()) : child.error();
}

}  // namespace

Result<Ending> decide_exec_ending(const ExecPlan& plan, const ChildOptions& options) {
    Ending ending;
    const ChildRequest request = request_of(plan, plan.process);
    if (plan.process.protect_binary && !can_end_in_trampoline(request)) return ending;
    if (plan.seccomp)
        ending.filter =
            TRY(take_step("seccomp", [&] { return compile_seccomp_cached(*plan.seccomp, options.seccomp_cache); }));
    ending.last = choose_last_steps(request, ending.filter ? &*ending.filter : nullptr);
    return ending;
}

Result<StartedExec> start_exec(const ExecRequest& request) {
    const ExecPlan& plan = request.plan;
    const ContainerState& state = request.state;
    if (plan.process.protect_binary && !request.ending.last.in_trampoline)
        return plain_error("pinfold's own file would be in the container's reach");
    if (!plan.process.selinux_label.empty()) TRY(require_selinux("process.selinuxLabel"));
    auto [handshake, childs] = TRY(ParentSide::make_pair(
        {.joiner = true, .joiner_waits = true, .mark = plan.marked, .joiner_terminal = keeps_master(request)}));
    handshake.give_up_at(request.deadline, request.signals);
    const UniqueFd init = TRY(open_process(state.pid, state.started));
    if (!init) return plain_error(concat("container not running: ", quoted(state.record.id), " is stopped"));
    TRY(require_first_thread(state.pid));
    ExecContext context = TRY(make_context(request, init.get(), std::move(childs)));
    const LastSteps last = context.last;
    TRY(check_tracing(state, request_of(plan, plan.process, last), plan.others_may_trace));
    StartedExec started = TRY(come_in_by_joiner(request, handshake, std::move(context)));
    const Child& child = started.child;
    if (request.on_born) TRY(request.on_born(child, started.mark.get()));
    PidFile pid_file =
        TRY(take_step("pid file", [&] { return PidFile::write(request.options.pid_file, child.pid()); }));
    TRY(send_pidfd(child, request.options.pidfd_socket));
    TRY(handshake.go(child.pid()));
    const auto on_listener = [&](UniqueFd listener) -> Result<UniqueFd> {
        if (request.listens) return listener;
        TRY(send_listener(listener.get(), state, child.pid(), *plan.seccomp));
        return UniqueFd();
    };
    const auto read = [&]() -> Result<Receipt> {
        return read_receipt(plan, {state.pid, state.record.cgroup}, child.pid());
    };
    const bool listens = plan.seccomp && has_listener(*plan.seccomp);
    started.listener = TRY(handshake.payload({child.pid(), child.pidfd.get(), on_listener, read, request.on_receipt,
                                              listens, plan.process.pauses_before_exec}));
    log_silent_steps(request_of(plan, plan.process, last));
    pid_file.commit();
    return started;
}

Result<int> exec_in_container(const ExecRequest& request) {
    const SignalForwarder signals = TRY(SignalForwarder::create());
    ExecRequest heeding = request;
    heeding.signals = signals.fd();
    StartedExec started = TRY(start_exec(heeding));
    if (request.options.detach) {
        started.child.guard.release();
        return 0;
    }
    return supervise_child(std::move(started.child), signals, std::move(started.master));
}

}  // namespace pinfold
