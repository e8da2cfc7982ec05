// The parent's steps on the host.
#include "process/host_steps.hpp"

#include <fcntl.h>
#include <sched.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/fs.hpp"
#include "base/log.hpp"
#include "base/strings.hpp"
#include "cgroup/path.hpp"
#include "kernel/fd_passing.hpp"
#include "kernel/own_binary.hpp"
#include "kernel/terminal.hpp"
#include "process/file_steps.hpp"
#include "process/payload_steps.hpp"
#include "process/trampoline.hpp"
#include "seccomp/cache.hpp"
#include "state/store.hpp"

namespace pinfold {

namespace {

// The size of the terminal that we were started from, if we were.
std::optional<winsize> own_window() {
    const Result<winsize> size = window_size(STDIN_FILENO);
    return size ? std::optional(*size) : std::nullopt;
}

// The document that the specification calls the container process state.
std::string process_state(const ContainerState& state, pid_t pid, const Seccomp& profile) {
    const std::string metadata =
        profile.listener_metadata.empty() ? "" : concat(",\"metadata\":", json_quoted(profile.listener_metadata));
    return concat("{\"ociVersion\":", json_quoted(state.record.oci_version), ",\"fds\":[\"seccompFd\"],\"pid\":", pid,
                  metadata, ",\"state\":", state_to_json_line(state), "}");
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

}  // namespace

Result<void> set_oom_score(pid_t pid, int score) {
    Result<void> written = write_file_at(AT_FDCWD, concat("/proc/", pid, "/oom_score_adj"), std::to_string(score));
    if (written || written.error().code != EACCES) return written;
    if (::geteuid() != 0 || !TRY(in_initial_user_namespace())) {
        log_warning(concat("oom_score_adj ", score,
                           " is lower than the caller's own, which only root may set; it is left as it is"));
        return {};
    }
    return std::move(written).error().with_hint("lowering it needs CAP_SYS_RESOURCE on the host");
}

// Pipes only: files and terminals that the caller has redirected to us stay its own. Without the right to, the payload
// can still use its streams, just not open them anew.
Result<void> give_away_pipes(uid_t owner) {
    for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
        struct stat info {};
        if (::fstat(fd, &info) != 0 || !S_ISFIFO(info.st_mode) || info.st_uid == owner) continue;
        if (::fchown(fd, owner, gid_t(-1)) != 0) log_debug(concat("standard stream ", fd, " stays the caller's"));
    }
    return {};
}

Result<void> send_pidfd(const Child& child, const std::string& socket) {
    if (socket.empty()) return {};
    const UniqueFd connection = TRY(connect_to_socket("pidfd socket", socket));
    return send_fd(connection.get(), child.pidfd.get(), "pidfd");
}

Result<PayloadSetup> make_setup(const ProcessPlan& process, const ChildOptions& options) {
    PayloadSetup setup{.window = process.window};
    if (!options.console_socket.empty())
        setup.console_socket = TRY(connect_to_socket("console socket", options.console_socket));
    else if (process.terminal && !setup.window) setup.window = own_window();
    return setup;
}

Result<void> send_listener(int listener, const ContainerState& state, pid_t pid, const Seccomp& profile) {
    const UniqueFd socket =
        TRY_IN("linux.seccomp.listenerPath", connect_to_socket("the listener's socket", profile.listener_path));
    TRY_IN("linux.seccomp.listenerPath", send_fd(socket.get(), listener, process_state(state, pid, profile)));
    return {};
}

bool joins_pid_namespace(const StartRequest& request) { return request.plan.namespaces.joins(CLONE_NEWPID); }

bool runs_from_clone(const StartRequest& request) {
    return request.plan.process.protect_binary && !request.last.in_trampoline;
}

Result<void> run_from_clone(EndingContext& context) {
    char** const argv = context.request.options.argv;
    if (argv == nullptr) return plain_error("pinfold's own file would be in the container's reach");
    return run_from_readonly_binary(argv);
}

Actions tell_own_binary(const StartRequest&) { return {"run from a read-only clone of pinfold's own file"}; }

bool makes_network(const StartRequest& request) { return request.plan.makes_network_ahead(); }

Result<void> begin_network(ParentContext& context) {
    context.network_ahead.emplace(TRY(NetworkAhead::begin()));
    return {};
}

Actions tell_begun_network(const StartRequest&) {
    return {"new network namespace, by a thread of its own", "bring lo up"};
}

Result<void> finish_network(ParentContext& context) {
    context.network = TRY(context.network_ahead->take());
    return {};
}

Actions tell_finished_network(const StartRequest&) { return {"wait until it is made"}; }

uint64_t cloned_namespaces(const Plan& plan) {
    return plan.makes_network_ahead() ? plan.namespaces.create & ~uint64_t{CLONE_NEWNET} : plan.namespaces.create;
}

Result<void> claim_state(ParentContext& context) {
    const LaunchOptions& options = context.options();
    const UniqueFd turn = options.before_state ? TRY(options.before_state()) : UniqueFd();
    const NewContainer& container = context.container;
    const auto claim = options.again ? StateDir::reopen : StateDir::create;
    context.made.state.emplace(TRY(claim(options.state_root, container.record, container.config)));
    return {};
}

Actions tell_state(const StartRequest&) { return {"write the state"}; }

bool has_group(const StartRequest& request) { return request.plan.cgroup.place.exists(); }

Result<void> make_group(ParentContext& context) {
    context.made.cgroup = TRY(Cgroup::create(context.plan().cgroup));
    return {};
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

// Others in the pid namespace may be able to trace what is seen there, and have its rights.
static Result<void> check_kept_rights(const ChildRequest& request) {
    const bool joins = request.plan->namespaces.joins(CLONE_NEWPID);
    if (!joins || (kept_capabilities(request) & ~request.process.capabilities.bounding) == 0) return {};
    return plain_error(
               "without process.noNewPrivileges, the right to load the filter would be in the sight of those who "
               "live in the pid namespace that is joined")
        .with_hint(
            "set process.noNewPrivileges; or use neither a listener nor org.pinfold.strict, and a filter that allows "
            "what a start takes");
}

// If pinfold is to start again anyway, the filter is for the one that comes then.
Result<void> compile_filter(EndingContext& context) {
    const StartRequest& request = context.request;
    if (request.plan.process.protect_binary && !can_end_in_trampoline(request.child())) return {};
    context.filter = TRY(compile_seccomp_cached(*request.plan.seccomp, request.options.child.seccomp_cache));
    context.request.last = choose_last_steps(request.child(), &*context.filter);
    return check_kept_rights(request.child());
}

Actions tell_compilation(const StartRequest&) { return {"compile the filter, unless it was before"}; }

bool ends_in_trampoline(const StartRequest& request) { return request.last.in_trampoline; }

Result<void> prepare_trampoline(ParentContext& context) {
    const std::optional<SeccompFilter>& filter = context.for_child->setup.filter;
    context.for_child->trampoline = TRY(make_trampoline(filter ? &*filter : nullptr));
    return {};
}

Actions tell_prepared_trampoline(const StartRequest&) { return {"make the file in memory that the child ends in"}; }

bool opens_sources(const StartRequest& request) {
    const auto is_ours = [&](const MountRequest& mount) { return is_opened_by_parent(request.plan, mount); };
    return request.plan.parent_opens_sources || std::ranges::any_of(request.plan.mounts, is_ours);
}

// For a child that could not: its user namespace has no rights over the host's files.
Result<void> open_sources(ParentContext& context) {
    const Plan& plan = context.plan();
    OpenedTrees& trees = context.for_child->trees;
    if (plan.parent_opens_sources && plan.root.uses_path()) trees.root = TRY_IN("root", open_root_source(plan.root));
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

Actions tell_clone(const StartRequest& request) {
    const NamespacePlan& namespaces = request.plan.namespaces;
    Actions actions;
    for (const NamespaceToJoin& one : namespaces.join)
        actions.push_back(concat("join the ", namespace_name(one.flag), " namespace ", one.path));
    if (namespaces.create_time) actions.push_back("new time namespace");
    for (const auto& [clock, offset] : namespaces.clock_offsets)
        actions.push_back(concat("shift ", clock, " by ", offset.seconds, " s ", offset.nanoseconds, " ns"));
    for (std::string& created : new_namespaces(cloned_namespaces(request.plan))) actions.push_back(std::move(created));
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

}  // namespace pinfold
