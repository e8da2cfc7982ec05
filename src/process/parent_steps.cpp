// The parent of a new container. What it makes on the host is held by guards: whichever step fails, the ones before it
// are undone.
#include "process/parent_steps.hpp"

#include <fcntl.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>

#include "base/clock.hpp"
#include "base/fs.hpp"
#include "base/log.hpp"
#include "base/process.hpp"
#include "base/strings.hpp"
#include "cgroup/cgroup.hpp"
#include "json/json.hpp"
#include "kernel/selinux.hpp"
#include "kernel/surroundings.hpp"
#include "process/hooks.hpp"
#include "process/host_steps.hpp"
#include "process/memory_report.hpp"
#include "process/pid_file.hpp"
#include "process/spawn.hpp"
#include "process/step.hpp"

namespace pinfold {

namespace {

using ParentStep = Step<StartRequest, ParentContext>;

bool always(const StartRequest&) { return true; }

template <auto Part>
bool asks(const StartRequest& request) {
    if constexpr (std::is_invocable_v<decltype(Part), const Plan&>) return is_set(std::invoke(Part, request.plan));
    else return is_set(std::invoke(Part, request.plan.process));
}

// The common case: one clone, straight into all namespaces and the group. With namespaces to join, the child comes from
// a joiner, which is gone afterwards.
Result<void> clone_child(ParentContext& context) {
    const NamespacePlan& namespaces = context.plan().namespaces;
    // That was decided on before, of this very plan: decide_ending().
    if (runs_from_clone(context.request)) return plain_error("pinfold's own file would be in the container's reach");
    ChildContext child = std::move(*context.for_child);
    context.for_child.reset();
    const int group = context.made.cgroup.fd();
    const auto close_ours = [&] { context.ends->close(); };
    if (namespaces.needs_joiner()) {
        context.made.child.emplace(TRY(spawn_by_joiner(std::move(child), context.handshake(), group, close_ours)));
        return {};
    }
    int pidfd = -1;
    const pid_t pid = TRY(clone_into(cloned_namespaces(context.plan()), group, pidfd));
    if (pid == 0) {
        close_ours();
        run_child(std::move(child));
    }
    context.made.child.emplace(Child{ChildGuard(pid), UniqueFd(pidfd)});
    return {};
}

// Before anything is made. The first one chooses who takes the last steps, which the second one asks for: pinfold may
// have to start anew.
constexpr Step<StartRequest, EndingContext> kDecide[] = {
    {"seccomp", has_filter, compile_filter, tell_compilation},
    {"own binary", runs_from_clone, run_from_clone, tell_own_binary},
};

// From nothing to a child that may hear its `go`; until then it takes the steps that need nothing of ours.
constexpr ParentStep kSteps[] = {
    {"network", makes_network, begin_network, tell_begun_network},
    {"state", always, claim_state, tell_state},
    {"cgroup", has_group, make_group, tell_group},
    {"trampoline", ends_in_trampoline, prepare_trampoline, tell_prepared_trampoline},
    {"mounts", opens_sources, open_sources, tell_sources},
    {"start socket", waits_for_start, make_start_socket, tell_start_socket},
    {"clone", always, clone_child, tell_clone},
    {"cgroup", attaches_later, attach_child, tell_attachment},
    {"id maps", maps_ids, map_ids, tell_id_maps},
    {"rlimits", asks<&ProcessPlan::rlimits>, raise_limits, tell_raised_limits},
    {"oom_score_adj", asks<&ProcessPlan::oom_score_adj>, write_oom_score, tell_oom_score},
    {"standard streams", gives_streams, give_streams, tell_stream_owner},
    {"record", always, record_init, tell_record},
    {"network devices", asks<&Plan::net_devices>, move_net_devices, tell_net_devices},
    {"pid file", announces_child, announce, tell_announcement},
    {"network", makes_network, finish_network, tell_finished_network},
};

// Once another process has taken over from the child, inside a pid namespace that others live in.
constexpr ParentStep kTakenOver[] = {
    {"record", always, record_init, tell_record},
    {"pid file", announces, announce, tell_announcement},
};

// Those that run on the host's side while the child waits, its mounts made and its root not yet entered.
Result<void> run_create_hooks(ParentContext& context, int signal_fd) {
    const Hooks& hooks = context.plan().hooks;
    TRY(context.handshake().mounted());
    const std::string state = hook_state(context.container.record, Status::created, context.made.child->pid());
    TRY(run_hooks("prestart", hooks.prestart, state, signal_fd));
    TRY(run_hooks("createRuntime", hooks.create_runtime, state, signal_fd));
    return context.handshake().go();
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

// Why a sandbox init has ended. Its payload, which has ended with it, may have spoken before.
Error last_words(const Channel& channel) {
    for (;;) {
        Result<std::optional<Packet>> packet = channel.receive();
        if (!packet) return packet.error();
        if (!*packet) return plain_error("the sandbox's first process was killed while it was set up");
        if ((*packet)->message == Message::failed) return (*packet)->error;
    }
}

// What the other end of the link says next. If it says nothing, the first channel has the reason.
Result<Packet> expect_from_sandbox_init(const Channel& link, const Channel& channel, Message wanted) {
    std::optional<Packet> packet = TRY(link.receive());
    if (!packet) return last_words(channel);
    if (packet->message != wanted) return unexpected(packet->message, wanted);
    return std::move(*packet);
}

// The payload's process, while it waits.
ReadyChild ready_child(const ParentContext& context, pid_t pid, int pidfd) {
    const auto on_listener = [&context, pid](UniqueFd listener) -> Result<UniqueFd> {
        const ContainerState state{.record = context.container.record, .status = Status::created, .pid = pid};
        TRY(send_listener(listener.get(), state, pid, *context.plan().seccomp));
        return UniqueFd();
    };
    const auto read = [&context, pid]() -> Result<Receipt> { return read_receipt(context.plan(), pid); };
    const bool listens = context.plan().seccomp && has_listener(*context.plan().seccomp);
    return {pid,
            pidfd,
            on_listener,
            read,
            context.options().on_receipt,
            listens,
            context.plan().process.pauses_before_exec};
}

Result<SandboxPayload> await_sandbox_payload(ParentContext& context, Channel link) {
    const SandboxInitPlan& plan = *context.plan().sandbox_init;
    ParentSide& handshake = context.handshake();
    const Channel& channel = handshake.channel();
    if (plan.waits) {
        TRY(expect_from_sandbox_init(link, channel, Message::created));
        if (context.options().before_start) TRY(context.options().before_start(*context.made.child));
        TRY(link.send(Message::go));
    }
    SandboxPayload payload{std::move(link), {}, {}};
    if (!plan.payload) {
        TRY(handshake.ready());
        return payload;
    }
    payload.pidfd = TRY(expect_from_sandbox_init(payload.link, channel, Message::born)).fd;
    const pid_t pid = TRY_IN("payload", pid_of(payload.pidfd.get()));
    ReadyChild child = ready_child(context, pid, payload.pidfd.get());
    child.on_listener = [&](UniqueFd listener) -> Result<UniqueFd> {
        if (context.options().before_exec) TRY(context.options().before_exec(pid));
        return listener;
    };
    payload.listener = TRY(handshake.payload(child));
    log_silent_steps(context.request.child());
    return payload;
}

// Until the child is created, or its payload runs.
Result<void> await_goal(ParentContext& context) {
    if (context.request.waits_for_start) return context.handshake().created(context.signals.fd());
    const Child& child = *context.made.child;
    TRY(context.handshake().payload(ready_child(context, child.pid(), child.pidfd.get())));
    log_silent_steps(context.request.child());
    return {};
}

// The supervisor's end of the link to a sandbox init; the other goes to the child.
Result<Channel> give_link(ChildContext& child) {
    std::pair<Channel, Channel> ends = TRY(Channel::make_pair());
    child.sandbox_init.emplace(SandboxInitContext{std::move(ends.second), find_argv_region()});
    return std::move(ends.first);
}

Topics topics_of(const StartRequest& request) {
    const Plan& plan = request.plan;
    return {.joiner = plan.namespaces.needs_joiner(),
            .joiner_waits = plan.namespaces.user_before_time,
            .host_hooks = !plan.hooks.prestart.empty() || !plan.hooks.create_runtime.empty(),
            .terminal = plan.process.terminal && request.options.child.console_socket.empty(),
            .takes_over = joins_pid_namespace(request),
            .waits_for_start = request.waits_for_start};
}

// What parent and child have of each other, before there are two of them.
Result<void> connect(ParentContext& context, const Topics& topics) {
    const Plan& plan = context.plan();
    const LaunchOptions& options = context.options();
    std::pair<ParentSide, ChildSide> sides = TRY(ParentSide::make_pair(topics));
    context.ends.emplace(ParentEnds{std::move(sides.first), {}});
    if (topics.takes_over) context.handshake().give_up_at(-1, context.signals.fd());
    ChildContext& child = context.for_child.emplace(
        ChildContext{.request = context.request.child(), .handshake = std::move(sides.second)});
    child.record = &context.container.record;
    child.trees.mounts.resize(plan.mounts.size());
    child.setup = TRY(make_setup(plan.process, options.child));
    child.setup.streams = options.streams;
    child.setup.filter = context.container.ending.filter;
    if (topics.takes_over || topics.waits_for_start || !plan.hooks.start_container.empty())
        child.words = find_argv_region();
    if (plan.sandbox_init) context.ends->link = TRY(give_link(child));
    return {};
}

// The rest of the handshake. Where others live in the container's pid namespace, the child sets all up outside of it,
// and another process takes over inside.
Result<void> converse(ParentContext& context, const Topics& topics) {
    const int signal_fd = interruptible(context.plan(), context.signals);
    ParentSide& handshake = context.handshake();
    handshake.heed(signal_fd);
    context.poststop.arm();
    TRY(handshake.go(context.made.child->pid(), context.network.get()));
    context.network.reset();
    if (topics.host_hooks) TRY(run_create_hooks(context, signal_fd));
    if (topics.terminal) context.made.master = TRY(handshake.terminal());
    if (context.ends->link) {
        context.made.payload = TRY(await_sandbox_payload(context, std::move(*context.ends->link)));
        return {};
    }
    if (topics.takes_over) {
        Child inside = TRY(handshake.born(context.made.child->pidfd.get()));
        context.made.child.emplace(std::move(inside));
        TRY(take_steps(kTakenOver, context.request, context));
        TRY(handshake.go(context.made.child->pid()));
    }
    return await_goal(context);
}

Result<void> take_all_steps(ParentContext& context) {
    const Topics topics = topics_of(context.request);
    TRY(connect(context, topics));
    TRY(take_steps(kSteps, context.request, context));
    return converse(context, topics);
}

// How a container is to be started.
struct Launch {
    const NewContainer& container;
    const LaunchOptions& options;
    const SignalForwarder& signals;
    PoststopHooks& poststop;
    bool waits_for_start;
};

// From nothing. If it fails, `oom` is what the kernel has counted until then: a child that was killed tells nothing.
Result<RunningContainer> launch_once(const Launch& how, OomCount& oom) {
    const NewContainer& container = how.container;
    ParentContext context{{container.plan, how.options, how.waits_for_start, container.ending.last},
                          container,
                          how.signals,
                          how.poststop,
                          {},
                          {},
                          {}};
    Result<void> taken = take_all_steps(context);
    if (taken) return std::move(context.made);
    context.made.drop_child();
    oom = count_oom(how.container.plan.cgroup.place);
    return std::move(taken).error();
}

// Whether the container could be created with another memory limit. Its hooks do not run, nobody hears of it, and
// nothing of it is left.
bool starts_with(uint64_t limit, const Launch& how) {
    LaunchOptions options = how.options;
    options.child = {.seccomp_cache = options.child.seccomp_cache, .detach = true};
    NewContainer container{with_memory_limit(how.container.plan, limit), how.container.record, how.container.config};
    Result<Ending> ending = decide_ending(container.plan, options, true);
    if (!ending) return false;
    container.ending = std::move(*ending);
    PoststopHooks no_hooks(container.plan.hooks.poststop, container.record);
    OomCount ignored;
    return launch_once({container, options, how.signals, no_hooks, true}, ignored).has_value();
}

Result<RunningContainer> launch(const Launch& how) {
    const Plan& plan = how.container.plan;
    if (!plan.process.selinux_label.empty()) TRY(require_selinux("process.selinuxLabel"));
    if (!plan.mount_label.empty()) TRY(require_selinux("linux.mountLabel"));
    OomCount oom;
    Result<RunningContainer> launched = launch_once(how, oom);
    if (launched) return launched;
    if (!oom.at_limit) return explain_start(std::move(launched).error(), look_around());
    const auto suffices = [&](uint64_t limit) { return starts_with(limit, how); };
    return memory_limit_too_low(oom, plan, find_enough_memory(oom.limit, suffices));
}

}  // namespace

Result<Ending> decide_ending(const Plan& plan, const LaunchOptions& options, bool waits_for_start) {
    EndingContext context{{plan, options, waits_for_start}, {}};
    context.request.last = choose_last_steps(context.request.child(), nullptr);
    TRY(take_steps(kDecide, context.request, context));
    return Ending{std::move(context.filter), context.request.last};
}

std::string dump_plan(const Plan& plan, const LaunchOptions& options, bool waits_for_start) {
    StartRequest request{plan, options, waits_for_start};
    const Result<SeccompFilter> filter = plan.seccomp ? compile_seccomp(*plan.seccomp) : plain_error("none");
    request.last = choose_last_steps(request.child(), filter ? &*filter : nullptr);
    std::vector<ToldStep> steps;
    tell_steps(kDecide, request, "parent", steps);
    tell_steps(kSteps, request, "parent", steps);
    tell_child_steps(request.child(), steps);
    if (joins_pid_namespace(request)) tell_steps(kTakenOver, request, "parent", steps);
    tell_steps_inside(request.child(), steps);
    // On the host, by whoever starts the container, and by whoever removes it.
    const auto tell_hooks = [&](const char* kind, const std::vector<Hook>& hooks) {
        const auto words = [&](const Hook& hook) { return concat(kind, ": run ", hook.path, " on the host"); };
        if (!hooks.empty()) steps.push_back({"hooks", "parent", each(hooks, words)});
    };
    tell_hooks("poststart", plan.hooks.poststart);
    tell_hooks("poststop", plan.hooks.poststop);
    const auto to_json = [](const ToldStep& step) -> Json {
        return {
            Json::Object{{"step", json_of(step.name)}, {"by", json_of(step.by)}, {"actions", json_of(step.actions)}}};
    };
    return json_text(
        {Json::Object{{"id", json_of(plan.id)}, {"bundle", json_of(plan.bundle)}, {"steps", json_of(steps, to_json)}}});
}

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
    record.listens = plan.seccomp && has_listener(*plan.seccomp);
    record.pauses = plan.process.pauses_before_exec;
    record.annotations = std::move(annotations);
    return record;
}

void RunningContainer::commit_announcements() {
    if (pid_file) pid_file->commit();
    if (net_devices) net_devices->commit();
}

void RunningContainer::commit() {
    commit_announcements();
    child->guard.release();
    keep();
}

void RunningContainer::keep() {
    cgroup.commit();
    state->commit();
}

void RunningContainer::drop_child() {
    pid_file.reset();
    net_devices.reset();
    child.reset();
}

Result<RunningContainer> launch_container(NewContainer container, const LaunchOptions& options,
                                          const SignalForwarder& signals) {
    container.ending = TRY(decide_ending(container.plan, options, false));
    const std::vector<Hook> none;
    PoststopHooks no_hooks(none, container.record);
    return launch({container, options, signals, no_hooks, false});
}

Result<void> create_container(const NewContainer& container, const LaunchOptions& options) {
    const SignalForwarder signals = TRY(SignalForwarder::create());
    PoststopHooks poststop(container.plan.hooks.poststop, container.record);
    RunningContainer launched = TRY(launch({container, options, signals, poststop, true}));
    TRY(launched.state->mark_created());
    launched.state->unlock();
    launched.commit();
    poststop.disarm();
    return {};
}

Result<int> run_container(const NewContainer& container, const LaunchOptions& options) {
    const Plan& plan = container.plan;
    const SignalForwarder signals = TRY(SignalForwarder::create());
    PoststopHooks poststop(container.plan.hooks.poststop, container.record);
    RunningContainer launched = TRY(launch({container, options, signals, poststop, false}));
    if (!plan.hooks.poststart.empty()) {
        TRY(run_hooks("poststart", plan.hooks.poststart,
                      hook_state(container.record, Status::running, launched.child->pid()), signals.fd()));
    }
    launched.state->unlock();
    if (options.child.detach) {
        launched.commit();
        poststop.disarm();
        return 0;
    }
    launched.commit_announcements();
    const pid_t init = launched.child->pid();
    const int exit_code = TRY(supervise_child(std::move(*launched.child), signals, std::move(launched.master)));
    if (const OomCount oom = count_oom(plan.cgroup.place); oom.kills != 0)
        log_warning(describe_oom(oom, plan, init, exit_code));
    if (options.keep) {
        launched.keep();
        poststop.disarm();
    }
    return exit_code;
}

}  // namespace pinfold
