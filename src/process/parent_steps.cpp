// The parent of a new container. What it makes on the host is held by guards: whichever step fails, the ones before it
// are undone. The list of steps stands in the middle of the file: what they do above it, what follows below.
#include "process/parent_steps.hpp"

#include <fcntl.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>

#include "base/clock.hpp"
#include "base/fs.hpp"
#include "base/log.hpp"
#include "base/strings.hpp"
#include "cgroup/cgroup.hpp"
#include "cgroup/path.hpp"
#include "json/writer.hpp"
#include "kernel/init_process.hpp"
#include "kernel/own_binary.hpp"
#include "kernel/selinux.hpp"
#include "kernel/terminal.hpp"
#include "process/file_steps.hpp"
#include "process/hooks.hpp"
#include "process/listener.hpp"
#include "process/memory_report.hpp"
#include "process/pid_file.hpp"
#include "process/spawn.hpp"
#include "process/step.hpp"
#include "seccomp/cache.hpp"

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

// What the steps are chosen by.
struct StartRequest {
    const Plan& plan;
    const LaunchOptions& options;
    bool waits_for_start = false;  // stop when all is set up but the payload

    ChildRequest child() const { return {plan.process, plan.seccomp, &plan, waits_for_start}; }
};

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

// A start on its way.
struct ParentContext {
    StartRequest request;
    const NewContainer& container;
    const SignalForwarder& signals;
    PoststopHooks& poststop;
    std::optional<ParentEnds> ends;
    std::optional<ChildContext> for_child;  // until the clone, which takes it over
    RunningContainer made;

    const Plan& plan() const { return request.plan; }
    const LaunchOptions& options() const { return request.options; }
    const Channel& channel() const { return ends->channel; }
};

using ParentStep = Step<StartRequest, ParentContext>;

bool always(const StartRequest&) { return true; }

template <auto Part>
bool asks(const StartRequest& request) {
    if constexpr (std::is_invocable_v<decltype(Part), const Plan&>) return is_set(std::invoke(Part, request.plan));
    else return is_set(std::invoke(Part, request.plan.process));
}

bool joins_pid_namespace(const StartRequest& request) { return request.plan.namespaces.joins(CLONE_NEWPID); }

Actions tell_own_binary(const StartRequest&) { return {"run from a read-only clone of pinfold's own file"}; }

Result<void> claim_state(ParentContext& context) {
    const LaunchOptions& options = context.options();
    const UniqueFd turn = options.before_state ? TRY(options.before_state()) : UniqueFd();
    const NewContainer& container = context.container;
    context.made.state.emplace(TRY(StateDir::create(options.state_root, container.record, container.config)));
    return {};
}

Actions tell_state(const StartRequest&) { return {"write the state"}; }

bool has_group(const StartRequest& request) { return request.plan.cgroup.place.exists(); }

Result<void> make_group(ParentContext& context) {
    context.made.cgroup = TRY(Cgroup::create(context.plan().cgroup));
    return {};
}

std::string write_words(const CgroupWrite& write) {
    std::string words = concat(write.property, ": write ", quoted(write.value), " to ", write.file);
    if (!write.alternate_file.empty())
        words +=
            concat(", and ", quoted(write.alternate_value), " to ", write.alternate_file, ", as far as there are such");
    return words;
}

void add_limits(const CgroupPlan& cgroup, Actions& actions) {
    for (const auto* writes : {&cgroup.writes, &cgroup.v1_writes, &cgroup.device_writes}) {
        for (const CgroupWrite& write : *writes) actions.push_back(write_words(write));
    }
    if (cgroup.filter_devices)
        actions.push_back(concat("attach a device program of ", cgroup.device_rules.size(), " rules"));
    if (cgroup.owner) actions.push_back(concat("give the group to user ", *cgroup.owner));
}

Actions tell_group(const StartRequest& request) {
    const CgroupPlan& cgroup = request.plan.cgroup;
    const CgroupPath& place = cgroup.place;
    if (!place.scope.empty()) return {concat("look for the controllers of ", place.mount)};
    Actions actions;
    if (!place.mount.empty()) actions.push_back(concat("make the group ", place.mount, place.path));
    for (const std::string& mount : v1_mounts(place)) actions.push_back(concat("make the group ", mount, place.path));
    for (const std::string& controller : cgroup.controllers)
        actions.push_back(concat("enable the controller ", controller));
    add_limits(cgroup, actions);
    return actions;
}

bool has_filter(const StartRequest& request) { return request.plan.seccomp.has_value(); }

Result<void> compile_filter(ParentContext& context) {
    context.for_child->setup.filter =
        TRY(compile_seccomp_cached(*context.plan().seccomp, context.options().child.seccomp_cache));
    return {};
}

Actions tell_compilation(const StartRequest&) { return {"compile the filter, unless it was before"}; }

bool opens_sources(const StartRequest& request) {
    const auto is_ours = [&](const MountRequest& mount) { return is_opened_by_parent(request.plan, mount); };
    return request.plan.parent_opens_sources || std::ranges::any_of(request.plan.mounts, is_ours);
}

// For a child that could not: its user namespace has no rights over the host's files.
Result<void> open_sources(ParentContext& context) {
    const Plan& plan = context.plan();
    OpenedTrees& trees = context.for_child->trees;
    if (plan.parent_opens_sources && plan.root.uses_path())
        trees.root = TRY_IN("root", clone_tree(AT_FDCWD, plan.root.path, true));
    for (size_t i = 0; i < plan.mounts.size(); ++i) {
        const MountRequest& mount = plan.mounts[i];
        if (is_opened_by_parent(plan, mount)) trees.mounts[i] = TRY_IN(mount.label, open_bind_source(mount));
    }
    return {};
}

Actions tell_sources(const StartRequest& request) {
    const Plan& plan = request.plan;
    Actions actions;
    if (plan.parent_opens_sources)
        actions.push_back(plan.root.uses_path() ? concat("open ", plan.root.path) : "nothing for the root");
    for (const MountRequest& mount : plan.mounts) {
        if (is_opened_by_parent(plan, mount))
            actions.push_back(concat(mount.label, ": open ", mount.filesystem.source));
    }
    return actions;
}

bool waits_for_start(const StartRequest& request) { return request.waits_for_start; }

Result<void> make_start_socket(ParentContext& context) {
    context.for_child->start_socket = TRY(context.made.state->make_start_socket());
    return {};
}

Actions tell_start_socket(const StartRequest&) {
    return {"make the socket at which the container waits for its start"};
}

// The common case: one clone, straight into all namespaces and the cgroup. With namespaces to join, the child comes
// from a joiner, which is gone afterwards.
Result<void> clone_child(ParentContext& context) {
    const bool joins = context.plan().namespaces.needs_joiner();
    ChildContext child = std::move(*context.for_child);
    context.for_child.reset();
    const int group = context.made.cgroup.fd();
    const auto close_ours = [&] { context.ends->close(); };
    if (joins) context.made.child.emplace(TRY(spawn_by_joiner(std::move(child), context.channel(), group, close_ours)));
    else context.made.child.emplace(TRY(spawn(std::move(child), group, close_ours)));
    return {};
}

Actions tell_clone(const StartRequest& request) {
    const NamespacePlan& namespaces = request.plan.namespaces;
    Actions actions;
    for (const NamespaceToJoin& one : namespaces.join)
        actions.push_back(concat("join the ", namespace_name(one.flag), " namespace ", one.path));
    if (namespaces.create_time) actions.push_back("new time namespace");
    for (const auto& [clock, offset] : namespaces.clock_offsets)
        actions.push_back(concat("shift ", clock, " by ", offset.seconds, " s ", offset.nanoseconds, " ns"));
    for (std::string& created : new_namespaces(namespaces.create)) actions.push_back(std::move(created));
    actions.push_back("clone the child");
    return actions;
}

// What takes a process: the clone goes straight into a group of cgroup v2.
bool attaches_later(const StartRequest& request) {
    const CgroupPath& place = request.plan.cgroup.place;
    return !place.v1.empty() || !place.scope.empty();
}

Result<void> attach_child(ParentContext& context) {
    return context.made.cgroup.attach(context.plan().cgroup, context.made.child->pid());
}

Actions tell_attachment(const StartRequest& request) {
    const CgroupPlan& cgroup = request.plan.cgroup;
    const CgroupPath& place = cgroup.place;
    if (place.scope.empty()) {
        return each(v1_mounts(place),
                    [&](const std::string& mount) { return concat("put the child into ", mount, place.path); });
    }
    Actions actions = {concat("let systemd start ", place.scope, ", the group ", place.mount, place.path)};
    for (const std::string& property : cgroup.scope_properties) actions.push_back(concat("with ", property));
    add_limits(cgroup, actions);
    return actions;
}

bool maps_ids(const StartRequest& request) { return request.plan.id_maps.has_value(); }

// The joiner's, where it needs them earlier, are written.
Result<void> map_ids(ParentContext& context) {
    if (context.plan().namespaces.user_before_time) return {};
    return write_id_maps(context.made.child->pid(), *context.plan().id_maps);
}

Actions tell_id_maps(const StartRequest& request) {
    const IdMaps& maps = *request.plan.id_maps;
    Actions actions;
    const auto add = [&](const char* what, const std::vector<IdRange>& ranges) {
        for (const IdRange& range : ranges) {
            actions.push_back(
                concat(what, " ", range.inside, " in the container is ", range.outside, " outside, for ", range.count));
        }
    };
    add("uid", maps.uids);
    add("gid", maps.gids);
    if (maps.by_helper) actions.push_back("written by newuidmap and newgidmap");
    return actions;
}

Result<void> raise_limits(ParentContext& context) {
    raise_hard_limits(context.made.child->pid(), context.plan().process.rlimits);
    return {};
}

Actions tell_raised_limits(const StartRequest&) { return {"raise the hard limits that are below what is asked for"}; }

Result<void> write_oom_score(ParentContext& context) {
    return set_oom_score(context.made.child->pid(), *context.plan().process.oom_score_adj);
}

Actions tell_oom_score(const StartRequest& request) { return {concat("write ", *request.plan.process.oom_score_adj)}; }

bool gives_streams(const StartRequest& request) {
    return request.plan.stream_owner.has_value() && request.options.streams == nullptr;
}

Result<void> give_streams(ParentContext& context) { return give_away_pipes(*context.plan().stream_owner); }

Actions tell_stream_owner(const StartRequest& request) {
    return {concat("pipes become those of uid ", *request.plan.stream_owner)};
}

Result<void> record_init(ParentContext& context) { return context.made.state->record_init(context.made.child->pid()); }

Actions tell_record(const StartRequest&) { return {"write which process is the first"}; }

Result<void> move_net_devices(ParentContext& context) {
    context.made.net_devices.emplace(TRY(MovedDevices::move(context.plan().net_devices, context.made.child->pid())));
    return {};
}

Actions tell_net_devices(const StartRequest& request) {
    return each(request.plan.net_devices, [](const NetDeviceMove& device) {
        return concat("move ", device.host_name, " into the container as ", device.name);
    });
}

bool announces(const StartRequest& request) {
    return !request.options.child.pid_file.empty() || !request.options.child.pidfd_socket.empty();
}

bool announces_child(const StartRequest& request) { return announces(request) && !joins_pid_namespace(request); }

// To whom it may concern: the pid of the process that is, or becomes, the payload.
Result<void> announce(ParentContext& context) {
    const ChildOptions& options = context.options().child;
    context.made.pid_file.emplace(TRY(PidFile::write(options.pid_file, context.made.child->pid())));
    return send_pidfd(*context.made.child, options.pidfd_socket);
}

Actions tell_announcement(const StartRequest& request) {
    const ChildOptions& options = request.options.child;
    Actions actions;
    if (!options.pid_file.empty()) actions.push_back(concat("write ", options.pid_file));
    if (!options.pidfd_socket.empty()) actions.push_back(concat("send a pidfd to ", options.pidfd_socket));
    return actions;
}

// From nothing to a child that waits for its `go`.
constexpr ParentStep kSteps[] = {
    {"state", always, claim_state, tell_state},
    {"cgroup", has_group, make_group, tell_group},
    {"seccomp", has_filter, compile_filter, tell_compilation},
    {"mounts", opens_sources, open_sources, tell_sources},
    {"state", waits_for_start, make_start_socket, tell_start_socket},
    {"clone", always, clone_child, tell_clone},
    {"cgroup", attaches_later, attach_child, tell_attachment},
    {"id maps", maps_ids, map_ids, tell_id_maps},
    {"rlimits", asks<&ProcessPlan::rlimits>, raise_limits, tell_raised_limits},
    {"oom_score_adj", asks<&ProcessPlan::oom_score_adj>, write_oom_score, tell_oom_score},
    {"standard streams", gives_streams, give_streams, tell_stream_owner},
    {"state", always, record_init, tell_record},
    {"network devices", asks<&Plan::net_devices>, move_net_devices, tell_net_devices},
    {"pid file", announces_child, announce, tell_announcement},
};

// Before all of them, or never: it starts pinfold anew.
constexpr ParentStep kProtection = {"own binary", asks<&Plan::protect_binary>, nullptr, tell_own_binary};

// Once another process has taken over from the child, inside a pid namespace that others live in.
constexpr ParentStep kTakenOver[] = {
    {"state", always, record_init, tell_record},
    {"pid file", announces, announce, tell_announcement},
};

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
    return {pid, pidfd, on_listener, read, context.options().on_receipt};
}

Result<KeptPayload> await_kept_payload(const ParentContext& context, Channel link) {
    const KeeperPlan& plan = *context.plan().keeper;
    const Channel& channel = context.channel();
    if (plan.waits) {
        TRY(expect_from_keeper(link, channel, Message::created));
        if (context.options().before_start) TRY(context.options().before_start(*context.made.child));
        TRY(link.send(Message::go));
    }
    KeptPayload payload{std::move(link), {}, {}};
    if (!plan.payload) {
        TRY(expect(channel, Message::ready));
        return payload;
    }
    payload.pidfd = TRY(expect_from_keeper(payload.link, channel, Message::born)).fd;
    const pid_t pid = TRY_IN("payload", pid_of(payload.pidfd.get()));
    ReadyChild child = ready_child(context, pid, payload.pidfd.get());
    child.on_listener = [&](UniqueFd listener) -> Result<UniqueFd> {
        if (context.options().before_exec) TRY(context.options().before_exec(pid));
        return listener;
    };
    payload.listener = TRY(await_payload(channel, child));
    log_silent_steps(context.request.child());
    return payload;
}

// Until the child is created, or its payload runs.
Result<void> await_goal(const ParentContext& context, int signal_fd) {
    const Channel& channel = context.channel();
    if (context.request.waits_for_start) {
        TRY(expect(channel, Message::created, context.signals.fd()));
        TRY(channel.receive());  // the end: the child has let go of all that is ours
        return {};
    }
    const Child& child = *context.made.child;
    TRY(await_payload(channel, ready_child(context, child.pid(), child.pidfd.get()), signal_fd));
    log_silent_steps(context.request.child());
    return {};
}

// The supervisor's end of the link to a keeper; the other goes to the child.
Result<Channel> give_link(ChildContext& child) {
    std::pair<Channel, Channel> ends = TRY(Channel::make_pair());
    child.keeper.emplace(KeeperContext{std::move(ends.second), find_own_words()});
    return std::move(ends.first);
}

// What parent and child have of each other, before there are two of them.
Result<void> connect(ParentContext& context) {
    const Plan& plan = context.plan();
    const LaunchOptions& options = context.options();
    std::pair<Channel, Channel> pair = TRY(Channel::make_pair());
    context.ends.emplace(ParentEnds{std::move(pair.first), {}});
    if (joins_pid_namespace(context.request)) context.ends->channel.give_up_at(-1, context.signals.fd());
    ChildContext& child =
        context.for_child.emplace(ChildContext{.request = context.request.child(), .channel = std::move(pair.second)});
    child.record = &context.container.record;
    child.trees.mounts.resize(plan.mounts.size());
    child.setup = TRY(make_setup(plan.process, options.child));
    child.setup.streams = options.streams;
    if (joins_pid_namespace(context.request)) child.words = find_own_words();
    if (plan.keeper) context.ends->link = TRY(give_link(child));
    return {};
}

// The rest of the conversation. Where others live in the container's pid namespace, the child sets all up outside of
// it, and another process takes over inside.
Result<void> converse(ParentContext& context) {
    const Plan& plan = context.plan();
    const Channel& channel = context.channel();
    const int signal_fd = interruptible(plan, context.signals);
    const pid_t pid = context.made.child->pid();
    context.poststop.arm();
    TRY(channel.send(Message::go, pid));
    TRY(run_create_hooks(context.container, channel, pid, signal_fd));
    if (context.ends->link) {
        context.made.payload = TRY(await_kept_payload(context, std::move(*context.ends->link)));
        return {};
    }
    if (plan.process.terminal && context.options().child.console_socket.empty() && !context.request.waits_for_start)
        context.made.master = TRY(expect(channel, Message::terminal, signal_fd)).fd;
    if (joins_pid_namespace(context.request)) {
        Child inside = TRY(expect_born(channel, context.made.child->pidfd.get(), signal_fd));
        context.made.child.emplace(std::move(inside));
        TRY(take_steps(kTakenOver, context.request, context));
        TRY(channel.send(Message::go, context.made.child->pid()));
    }
    return await_goal(context, signal_fd);
}

Result<void> take_all_steps(ParentContext& context) {
    TRY(connect(context));
    TRY(take_steps(kSteps, context.request, context));
    return converse(context);
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
    ParentContext context{
        {how.container.plan, how.options, how.waits_for_start}, how.container, how.signals, how.poststop, {}, {}, {}};
    Result<void> taken = take_all_steps(context);
    if (taken) return std::move(context.made);
    context.made.drop_child();
    oom = count_oom(how.container.plan.cgroup.place);
    return std::move(taken).error();
}

// Whether the container could be created with another memory limit. Its hooks do not run, nobody hears of it, and
// nothing of it is left.
bool starts_with(uint64_t limit, const Launch& how) {
    const Plan plan = with_memory_limit(how.container.plan, limit);
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

}  // namespace

Result<void> protect_binary(const Plan& plan, char** argv) {
    if (!plan.protect_binary) return {};
    return take_step(kProtection.name, [&] { return run_from_readonly_binary(argv); });
}

std::string dump_plan(const Plan& plan, const LaunchOptions& options) {
    const StartRequest request{plan, options};
    std::vector<ToldStep> steps;
    tell_steps(std::span(&kProtection, 1), request, "parent", steps);
    tell_steps(kSteps, request, "parent", steps);
    tell_child_steps(request.child(), steps);
    if (joins_pid_namespace(request)) tell_steps(kTakenOver, request, "parent", steps);
    tell_steps_inside(request.child(), steps);
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

Result<RunningContainer> launch_container(const NewContainer& container, const LaunchOptions& options,
                                          const SignalForwarder& signals) {
    TRY(protect_binary(container.plan, options.argv));
    PoststopHooks no_hooks(container);
    return launch({container, options, signals, no_hooks, false});
}

Result<void> create_container(const NewContainer& container, const LaunchOptions& options) {
    const SignalForwarder signals = TRY(SignalForwarder::create());
    PoststopHooks poststop(container);
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
    PoststopHooks poststop(container);
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
    const std::string oom = describe_oom(count_oom(plan.cgroup.place), plan, init, exit_code);
    if (!oom.empty()) log_warning(oom);
    if (options.keep) {
        launched.keep();
        poststop.disarm();
    }
    return exit_code;
}

}  // namespace pinfold
