// The parent of a new container. What it makes on the host is held by guards: whichever step fails, the ones before it
// are undone.
#include "process/launcher.hpp"

#include <fcntl.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>

#include "base/clock.hpp"
#include "base/fs.hpp"
#include "base/log.hpp"
#include "base/strings.hpp"
#include "cgroup/cgroup.hpp"
#include "kernel/init_process.hpp"
#include "kernel/own_binary.hpp"
#include "kernel/selinux.hpp"
#include "plan/describe.hpp"
#include "process/entry.hpp"
#include "process/hooks.hpp"
#include "process/init.hpp"
#include "process/joiner.hpp"
#include "process/listener.hpp"
#include "process/memory_report.hpp"
#include "process/pid_file.hpp"
#include "process/step.hpp"

namespace pinfold {

namespace {

// The hooks for the end of a container, once there is one to end: they run when all else of it is gone.
class PoststopHooks {
public:
    explicit PoststopHooks(const NewContainer& container) : container_(container) {}
    PoststopHooks(const PoststopHooks&) = delete;
    PoststopHooks& operator=(const PoststopHooks&) = delete;
    ~PoststopHooks() {
        if (!armed_ || container_.plan.hooks.poststop.empty()) return;
        run_poststop_hooks(container_.plan.hooks.poststop, hook_state(container_.record, Status::stopped));
    }

    void arm() noexcept { armed_ = true; }
    void disarm() noexcept { armed_ = false; }

private:
    const NewContainer& container_;
    bool armed_ = false;
};

// How a container is to be started.
struct Launch {
    const NewContainer& container;
    const LaunchOptions& options;
    const SignalForwarder& signals;
    PoststopHooks& poststop;
    bool wait_for_start;  // stop when all is set up but the payload
};

// A first process that got as far as it was told to.
struct Started {
    Child child;
    MovedDevices net_devices;
    PidFile pid_file;
    UniqueFd master;
    std::optional<KeptPayload> payload;
};

// For a child that could not: its user namespace has no rights over the host's files.
Result<void> open_trees(const Plan& plan, OpenedTrees& trees) {
    if (plan.parent_opens_sources && plan.root.uses_path())
        trees.root = TRY_IN("root", clone_tree(AT_FDCWD, plan.root.path, true));
    for (size_t i = 0; i < plan.mounts.size(); ++i) {
        const MountRequest& mount = plan.mounts[i];
        if (is_opened_by_parent(plan, mount)) trees.mounts[i] = TRY_IN(mount.label, open_bind_source(mount));
    }
    return {};
}

Result<InitContext> make_context(const NewContainer& container, const ChildOptions& options, Channel channel) {
    const Plan& plan = container.plan;
    InitContext context{.channel = std::move(channel), .record = &container.record};
    context.outfit = TRY(make_outfit(plan.process, plan.seccomp, options));
    context.trees.mounts.resize(plan.mounts.size());
    const auto is_ours = [&](const MountRequest& mount) { return is_opened_by_parent(plan, mount); };
    if (plan.parent_opens_sources || std::ranges::any_of(plan.mounts, is_ours))
        TRY(take_step(Step::sources, [&] { return open_trees(plan, context.trees); }));
    if (plan.namespaces.joins(CLONE_NEWPID)) context.words = find_own_words();
    return context;
}

// The parent's ends. The child closes its copies of them first of all: only so does it see the end of a parent that
// dies before the parent-death signal is set, or after that was lifted.
struct ParentEnds {
    Channel channel;
    std::optional<Channel> link;  // to the keeper, if there is to be one

    void close() {
        channel.close();
        if (link) link->close();
    }
};

// The common case: one clone, straight into all namespaces and the cgroup.
Result<Child> clone_child(const Plan& plan, ParentEnds& ends, InitContext& context, const Cgroup& cgroup) {
    int pidfd = -1;
    const pid_t pid = TRY(clone_into(plan.namespaces.create, cgroup.fd(), pidfd));
    if (pid == 0) {
        ends.close();
        run_init(plan, std::move(context));
    }
    return Child{ChildGuard(pid), UniqueFd(pidfd)};
}

// With namespaces to join: the child comes from a joiner, which is gone afterwards.
Result<Child> clone_by_joiner(const Plan& plan, ParentEnds& ends, InitContext& context, const Cgroup& cgroup) {
    std::vector<OpenedNamespace> namespaces = TRY(open_namespaces(plan.namespaces.join));
    int pidfd = -1;
    const pid_t pid = TRY(clone_into(plan.namespaces.user_before_time ? CLONE_NEWUSER : 0, cgroup.fd(), pidfd));
    if (pid == 0) {
        ends.close();
        run_joiner(plan, std::move(namespaces), std::move(context));
    }
    const Child joiner{ChildGuard(pid), UniqueFd(pidfd)};
    context.channel.close();
    if (plan.namespaces.user_before_time) {
        TRY_IN("id maps", write_id_maps(pid, *plan.id_maps));
        TRY(ends.channel.send(Message::go));
    }
    return expect_born(ends.channel, joiner.pidfd.get());
}

Result<Child> start_child(const Plan& plan, ParentEnds& ends, InitContext context, const Cgroup& cgroup) {
    if (plan.namespaces.needs_joiner()) return clone_by_joiner(plan, ends, context, cgroup);
    return clone_child(plan, ends, context, cgroup);
}

// What the child cannot do for itself, or must not start without.
Result<void> prepare_child(const Plan& plan, pid_t pid, const StateDir& state, bool has_our_streams) {
    if (plan.id_maps && !plan.namespaces.user_before_time) {
        TRY(take_step(Step::id_maps, [&] { return write_id_maps(pid, *plan.id_maps); }));
    }
    TRY(prepare_process(pid, plan.process, has_our_streams ? plan.stream_owner : std::nullopt));
    return take_step(Step::record_init, [&] { return state.record_init(pid); });
}

Result<MovedDevices> move_net_devices(const Plan& plan, pid_t pid) {
    if (plan.net_devices.empty()) return MovedDevices();
    return take_step(Step::net_devices, [&] { return MovedDevices::move(plan.net_devices, pid); });
}

// Those that run on the host's side while the child waits, its mounts made and its root not yet entered.
Result<void> run_create_hooks(const NewContainer& container, const Channel& channel, pid_t pid, int signal_fd) {
    const Hooks& hooks = container.plan.hooks;
    if (hooks.prestart.empty() && hooks.create_runtime.empty()) return {};
    TRY(expect(channel, Message::mounted, signal_fd));
    const std::string state = hook_state(container.record, Status::created, pid);
    TRY(run_hooks("prestart", hooks.prestart, state, signal_fd));
    TRY(run_hooks("createRuntime", hooks.create_runtime, state, signal_fd));
    return channel.send(Message::go);
}

bool runs_hooks(const Hooks& hooks) {
    return !hooks.prestart.empty() || !hooks.create_runtime.empty() || !hooks.create_container.empty() ||
           !hooks.start_container.empty();
}

// The descriptor that tells us to give up, where hooks could hold us up. Without any, the start takes a few
// milliseconds, and signals are the payload's from the beginning.
int interruptible(const Plan& plan, const SignalForwarder& signals) {
    return runs_hooks(plan.hooks) ? signals.fd() : -1;
}

// Of a keeper that has ended. Its payload, which has ended with it, may have spoken before.
Error last_words(const Channel& channel) {
    for (;;) {
        Result<std::optional<Packet>> packet = channel.receive();
        if (!packet) return packet.error();
        if (!*packet) return plain_error("the sandbox's first process was killed while it was set up");
        if ((*packet)->message == Message::failed) return (*packet)->error;
    }
}

// What the other end of the link says next. If it says nothing, the launcher's channel has the reason.
Result<Packet> expect_from_keeper(const Channel& link, const Channel& channel, Message wanted) {
    std::optional<Packet> packet = TRY(link.receive());
    if (!packet) return last_words(channel);
    if (packet->message != wanted) return plain_error("keeper and supervisor disagree on what comes next");
    return std::move(*packet);
}

// For the payload's process, while it waits.
ReadyHandlers handlers_for(const Launch& how, const Channel& channel, pid_t pid, int pidfd) {
    const auto hand_over = [&how, &channel, pid, pidfd](const ListenerOffer& offer) -> Result<int> {
        const ContainerState state{.record = how.container.record, .status = Status::created, .pid = pid};
        TRY(hand_over_listener(offer, channel, {pid, pidfd, state}, *how.container.plan.seccomp));
        return -1;
    };
    const auto look = [&how, &channel, pid, pidfd](WaitingPlace gate) {
        const auto read = [&how, pid] { return read_receipt(how.container.plan, pid); };
        return inspect({pid, pidfd, gate}, channel, read, how.options.on_receipt);
    };
    return {hand_over, look};
}

Result<KeptPayload> await_kept_payload(const Launch& how, const Channel& channel, Channel link, const Child& keeper) {
    const KeeperPlan& plan = *how.container.plan.keeper;
    if (plan.waits) {
        TRY(expect_from_keeper(link, channel, Message::created));
        if (how.options.before_start) TRY(how.options.before_start(keeper));
        TRY(link.send(Message::go));
    }
    KeptPayload payload{std::move(link), {}, {}};
    if (!plan.payload) {
        TRY(expect(channel, Message::ready));
        return payload;
    }
    payload.pidfd = TRY(expect_from_keeper(payload.link, channel, Message::born)).fd;
    const pid_t pid = TRY_IN("payload", pid_of(payload.pidfd.get()));
    ReadyHandlers handlers = handlers_for(how, channel, pid, payload.pidfd.get());
    handlers.on_listener = [&](const ListenerOffer& offer) -> Result<int> {
        if (how.options.before_exec) TRY(how.options.before_exec(pid));
        payload.listener = TRY(adopt_listener(offer, channel, pid, payload.pidfd.get()));
        return payload.listener.get();
    };
    TRY(await_payload(channel, false, handlers));
    return payload;
}

bool terminal_is_for_us(const Launch& how) {
    return how.container.plan.process.terminal && how.options.child.console_socket.empty();
}

Result<UniqueFd> await_goal(const Launch& how, const Channel& channel, const Child& child, bool expect_terminal) {
    const Plan& plan = how.container.plan;
    if (how.wait_for_start) {
        TRY(expect(channel, Message::created, how.signals.fd()));
        TRY(channel.receive());  // the end: the child has let go of all that is ours
        return UniqueFd();
    }
    return await_payload(channel, expect_terminal, handlers_for(how, channel, child.pid(), child.pidfd.get()),
                         interruptible(plan, how.signals));
}

// The supervisor's end of the link to a keeper; the other goes to the child.
Result<Channel> give_link(InitContext& context) {
    std::pair<Channel, Channel> ends = TRY(Channel::make_pair());
    context.keeper.emplace(KeeperContext{std::move(ends.second), find_own_words()});
    return std::move(ends.first);
}

// To whom it may concern: the pid of the process that is, or becomes, the payload.
Result<PidFile> announce(const ChildOptions& options, const Child& child) {
    PidFile pid_file = TRY(take_step(Step::pid_file, [&] { return PidFile::write(options.pid_file, child.pid()); }));
    TRY(send_pidfd(child, options.pidfd_socket));
    return pid_file;
}

// With a pid namespace that others live in: the child sets all up outside of it, and another one takes over inside.
Result<Started> start_inside(const Launch& how, const StateDir& state, const Channel& channel, const Child& outside,
                             MovedDevices net_devices) {
    const int signal_fd = interruptible(how.container.plan, how.signals);
    how.poststop.arm();
    TRY(channel.send(Message::go, outside.pid()));
    TRY(run_create_hooks(how.container, channel, outside.pid(), signal_fd));
    UniqueFd master;
    if (terminal_is_for_us(how)) master = TRY(expect(channel, Message::terminal, signal_fd)).fd;
    Child child = TRY(expect_born(channel, outside.pidfd.get(), signal_fd));
    TRY(take_step(Step::state, [&] { return state.record_init(child.pid()); }));
    PidFile pid_file = TRY(announce(how.options.child, child));
    TRY(channel.send(Message::go, child.pid()));
    TRY(await_goal(how, channel, child, false));
    return Started{std::move(child), std::move(net_devices), std::move(pid_file), std::move(master), {}};
}

// From an empty group to a child that is created, or whose payload runs.
Result<Started> start_in(const Launch& how, const StateDir& state, Cgroup& cgroup) {
    const Plan& plan = how.container.plan;
    const ChildOptions& options = how.options.child;
    std::pair<Channel, Channel> pair = TRY(Channel::make_pair());
    ParentEnds ends{std::move(pair.first), {}};
    if (plan.namespaces.joins(CLONE_NEWPID)) ends.channel.give_up_at(-1, how.signals.fd());
    InitContext context = TRY(make_context(how.container, options, std::move(pair.second)));
    context.outfit.streams = how.options.streams;
    if (plan.keeper) ends.link = TRY(give_link(context));
    if (how.wait_for_start)
        context.start_socket = TRY(take_step(Step::state, [&] { return state.make_start_socket(); }));
    Child child = TRY(take_step(Step::clone, [&] { return start_child(plan, ends, std::move(context), cgroup); }));
    const Channel& channel = ends.channel;
    const CgroupPath& place = plan.cgroup.place;
    if (!place.v1.empty() || !place.scope.empty())
        TRY(take_step(Step::admit, [&] { return cgroup.attach(plan.cgroup, child.pid()); }));
    TRY(prepare_child(plan, child.pid(), state, how.options.streams == nullptr));
    MovedDevices net_devices = TRY(move_net_devices(plan, child.pid()));
    if (plan.namespaces.joins(CLONE_NEWPID)) return start_inside(how, state, channel, child, std::move(net_devices));
    PidFile pid_file = TRY(announce(options, child));
    how.poststop.arm();
    TRY(channel.send(Message::go, child.pid()));
    TRY(run_create_hooks(how.container, channel, child.pid(), interruptible(plan, how.signals)));
    Started started{std::move(child), std::move(net_devices), std::move(pid_file), {}, {}};
    if (ends.link) started.payload = TRY(await_kept_payload(how, channel, std::move(*ends.link), started.child));
    else started.master = TRY(await_goal(how, channel, started.child, terminal_is_for_us(how)));
    return started;
}

// From nothing. If it fails, `oom` is what the kernel has counted until then: a child that was killed tells nothing.
Result<RunningContainer> launch_once(const Launch& how, OomCount& oom) {
    const NewContainer& container = how.container;
    UniqueFd turn = how.options.before_state ? TRY(how.options.before_state()) : UniqueFd();
    StateDir state = TRY(take_step(
        Step::state, [&] { return StateDir::create(how.options.state_root, container.record, container.config); }));
    turn.reset();
    Cgroup cgroup = TRY(take_step(Step::cgroup, [&] { return Cgroup::create(container.plan.cgroup); }));
    Result<Started> started = start_in(how, state, cgroup);
    if (!started) {
        oom = count_oom(container.plan.cgroup.place);
        return std::move(started).error();
    }
    return RunningContainer{std::move(state),
                            std::move(cgroup),
                            std::move(started->child),
                            std::move(started->net_devices),
                            std::move(started->pid_file),
                            std::move(started->master),
                            std::move(started->payload)};
}

// Whether the container could be created with another memory limit. Its hooks do not run, nobody hears of it, and
// nothing of it is left.
bool starts_with(uint64_t limit, const Launch& how) {
    Plan plan = how.container.plan;
    plan.hooks = {};
    plan.net_devices.clear();
    plan.keeper.reset();
    plan.process.terminal = false;
    for (std::vector<CgroupWrite>* writes : {&plan.cgroup.writes, &plan.cgroup.v1_writes}) {
        for (CgroupWrite& write : *writes) {
            if (is_memory_limit(write)) write.value = std::to_string(limit);
        }
    }
    LaunchOptions options = how.options;
    options.child = {.seccomp_cache = options.child.seccomp_cache, .detach = true};
    const NewContainer container{plan, how.container.record, how.container.config};
    PoststopHooks no_hooks(container);
    OomCount ignored;
    return launch_once({container, options, how.signals, no_hooks, true}, ignored).has_value();
}

Result<RunningContainer> launch(const Launch& how) {
    const Plan& plan = how.container.plan;
    if (!plan.process.selinux_label.empty()) TRY(require_selinux("process.selinuxLabel"));
    if (!plan.mount_label.empty()) TRY(require_selinux("linux.mountLabel"));
    OomCount oom;
    Result<RunningContainer> launched = launch_once(how, oom);
    if (launched || !oom.at_limit) return launched;
    const auto suffices = [&](uint64_t limit) { return starts_with(limit, how); };
    return memory_limit_too_low(oom, plan, find_enough_memory(oom.limit, suffices));
}

Result<void> protect_binary(const Plan& plan, char** argv) {
    if (!plan.protect_binary) return {};
    return take_step(Step::own_binary, [&] { return run_from_readonly_binary(argv); });
}

}  // namespace

ContainerRecord make_record(const Plan& plan, const Spec& spec, StringMap annotations) {
    ContainerRecord record;
    record.id = plan.id;
    record.oci_version = spec.oci_version;
    record.bundle = plan.bundle;
    record.rootfs = plan.root.path;
    record.created = rfc3339_now();
    record.cgroup = plan.cgroup.place;
    record.limits = {plan.cgroup.writes, plan.cgroup.v1_writes};
    record.owner = ::geteuid();
    record.poststart_hooks = !spec.hooks.poststart.empty();
    record.poststop_hooks = !spec.hooks.poststop.empty();
    record.annotations = std::move(annotations);
    return record;
}

void RunningContainer::commit() {
    pid_file.commit();
    net_devices.commit();
    child.guard.release();
    keep();
}

void RunningContainer::keep() {
    cgroup.commit();
    state.commit();
}

Result<RunningContainer> launch_container(const NewContainer& container, const LaunchOptions& options,
                                          const SignalForwarder& signals) {
    TRY(protect_binary(container.plan, options.argv));
    PoststopHooks no_hooks(container);
    return launch({container, options, signals, no_hooks, false});
}

Result<void> create_container(const NewContainer& container, const LaunchOptions& options) {
    TRY(protect_binary(container.plan, options.argv));
    const SignalForwarder signals = TRY(SignalForwarder::create());
    PoststopHooks poststop(container);
    RunningContainer launched = TRY(launch({container, options, signals, poststop, true}));
    TRY(launched.state.mark_created());
    launched.state.unlock();
    launched.commit();
    poststop.disarm();
    return {};
}

Result<int> run_container(const NewContainer& container, const LaunchOptions& options) {
    const Plan& plan = container.plan;
    TRY(protect_binary(plan, options.argv));
    const SignalForwarder signals = TRY(SignalForwarder::create());
    PoststopHooks poststop(container);
    RunningContainer launched = TRY(launch({container, options, signals, poststop, false}));
    if (!plan.hooks.poststart.empty()) {
        TRY(run_hooks("poststart", plan.hooks.poststart,
                      hook_state(container.record, Status::running, launched.child.pid()), signals.fd()));
    }
    launched.state.unlock();
    if (options.child.detach) {
        launched.commit();
        poststop.disarm();
        return 0;
    }
    launched.pid_file.commit();
    launched.net_devices.commit();
    const pid_t init = launched.child.pid();
    const int exit_code = TRY(supervise_child(std::move(launched.child), signals, std::move(launched.master)));
    const std::string oom = describe_oom(count_oom(plan.cgroup.place), plan, init, exit_code);
    if (!oom.empty()) log_warning(oom);
    if (options.keep) {
        launched.keep();
        poststop.disarm();
    }
    return exit_code;
}

}  // namespace pinfold
