// The child: from the clone to execve. Everything here was decided in the plan; what is left is to do it, in order. The
// lists stand at the end of the file.
#include "process/child_steps.hpp"

#include <fcntl.h>
#include <grp.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>
#include <span>

#include "base/log.hpp"
#include "base/strings.hpp"
#include "kernel/selinux.hpp"
#include "process/file_steps.hpp"
#include "process/hooks.hpp"
#include "process/payload_steps.hpp"
#include "process/spawn.hpp"
#include "seccomp/start_calls.hpp"

namespace pinfold {

namespace {

bool always(const ChildRequest&) { return true; }

Result<void> start_session(ChildContext& context) {
    context.host_pid = TRY(context.handshake.await_go());
    if (::setsid() < 0) return errno_error("setsid");
    ::umask(0);  // modes below are exact; the payload's umask is set with its user
    return {};
}

Actions tell_session(const ChildRequest&) { return {"wait for the parent, then a new session"}; }

// Who we are: the caller's uid, unknown in the new namespace, with all capabilities in it.
Result<void> enter_user_namespace(ChildContext& context) {
    const IdMaps& maps = *context.plan().id_maps;
    if (!maps.deny_setgroups && ::setgroups(0, nullptr) != 0) return errno_error("drop the caller's groups");
    return become_namespace_root(maps);
}

Actions tell_user_namespace(const ChildRequest&) { return {"become root in the user namespace"}; }

bool has_late_namespaces(const ChildRequest& request) { return request.plan->namespaces.create_in_child != 0; }

Result<void> create_late_namespaces(ChildContext& context) {
    if (::unshare(static_cast<int>(context.plan().namespaces.create_in_child)) != 0) return errno_error("unshare");
    return {};
}

Actions tell_late_namespaces(const ChildRequest& request) {
    return new_namespaces(request.plan->namespaces.create_in_child);
}

bool has_own_network(const ChildRequest& request) { return request.plan->namespaces.creates(CLONE_NEWNET); }

Result<void> raise_loopback(ChildContext&) { return bring_loopback_up(); }

Actions tell_loopback(const ChildRequest&) { return {"bring lo up"}; }

Result<void> join_keyring(ChildContext& context) {
    const Plan& plan = context.plan();
    const std::string& label = plan.process.selinux_label;
    if (!label.empty()) TRY_IN("SELinux", set_context_for_keys(label, context.host_pid));
    return join_new_keyring(plan.keyring, plan.sandbox_init
                                              ? ", or use a profile that forbids keyctl, add_key and request_key"
                                              : ", or use --no-new-keyring");
}

Actions tell_keyring(const ChildRequest& request) {
    return {concat("join the new session keyring ", request.plan->keyring)};
}

Result<void> set_hostname(ChildContext& context) {
    const std::string& name = context.plan().hostname;
    if (::sethostname(name.c_str(), name.size()) != 0) return errno_error(concat("set ", quoted(name)));
    return {};
}

Actions tell_hostname(const ChildRequest& request) { return {request.plan->hostname}; }

Result<void> set_domainname(ChildContext& context) {
    const std::string& name = context.plan().domainname;
    if (::setdomainname(name.c_str(), name.size()) != 0) return errno_error(concat("set ", quoted(name)));
    return {};
}

Actions tell_domainname(const ChildRequest& request) { return {request.plan->domainname}; }

bool has_create_hooks(const ChildRequest& request) {
    const Hooks& hooks = request.plan->hooks;
    return !hooks.prestart.empty() || !hooks.create_runtime.empty() || !hooks.create_container.empty();
}

// Before the root changes: the hooks' paths are the host's, and what they add to the mounts is still masked below.
// They bring network devices in, too, for which there may be settings.
Result<void> await_create_hooks(ChildContext& context) {
    const Hooks& hooks = context.plan().hooks;
    if (!hooks.prestart.empty() || !hooks.create_runtime.empty()) TRY(context.handshake.mounted());
    if (hooks.create_container.empty()) return {};
    return run_hooks("createContainer", hooks.create_container,
                     hook_state(*context.record, Status::created, context.host_pid));
}

void add_hooks(std::string_view kind, const std::vector<Hook>& hooks, std::string_view where, Actions& actions) {
    for (const Hook& hook : hooks) actions.push_back(concat(kind, ": run ", hook.path, " ", where));
}

Actions tell_create_hooks(const ChildRequest& request) {
    const Hooks& hooks = request.plan->hooks;
    Actions actions;
    add_hooks("prestart", hooks.prestart, "on the host", actions);
    add_hooks("createRuntime", hooks.create_runtime, "on the host", actions);
    add_hooks("createContainer", hooks.create_container, "in the container's namespaces", actions);
    return actions;
}

Result<void> set_sysctls(ChildContext& context) { return apply_sysctls(context.plan().sysctls); }

Actions tell_sysctls(const ChildRequest& request) {
    return each(request.plan->sysctls,
                [](const SysctlSetting& setting) { return concat(setting.key, " = ", setting.value); });
}

bool waits_for_files(const ChildRequest& request) {
    return request.plan->sandbox_init && request.plan->sandbox_init->waits;
}

Result<void> wait_for_files(ChildContext& context) { return await_files(context.sandbox_init->link); }

Actions tell_files(const ChildRequest&) { return {"wait until files have been copied in"}; }

// Of all descriptors from `place` on: the start socket, there, and the channel, right after it.
Result<void> keep_only(ChildContext& context, int place) {
    const int socket = ::fcntl(context.start_socket.get(), F_DUPFD_CLOEXEC, place + 2);
    const int channel = ::fcntl(context.handshake.channel().fd(), F_DUPFD_CLOEXEC, place + 2);
    if (socket < 0 || channel < 0) return errno_error("move descriptors");
    context.start_socket.reset();  // before its number, or the channel's, is used again
    context.handshake.close();
    if (::dup3(socket, place, O_CLOEXEC) < 0) return errno_error("keep the start socket");
    if (::dup3(channel, place + 1, O_CLOEXEC) < 0) return errno_error("keep the channel");
    context.handshake.go_on_over(UniqueFd(place + 1));
    if (::close_range(static_cast<unsigned>(place) + 2, UINT_MAX, 0) != 0) return errno_error("close_range");
    return {};
}

bool waits_for_start(const ChildRequest& request) { return request.waits_for_start; }

bool waits_beside_others(const ChildRequest& request) { return request.waits_for_start || has_start_hooks(request); }

// From here on programs of the container's may run beside us, hooks or those of exec, and with CAP_SYS_PTRACE they can
// have whatever we have: so there is neither a right of the host's nor a word of our caller's.
Result<void> lower_capabilities(ChildContext& context) {
    wipe(context.words);
    return set_waiting_capabilities(context);
}

// A created container: it holds no descriptor but its streams, the preserved ones and the socket on which `start`
// will speak to it, so that nothing of the host's can be reached through it, however long it waits.
Result<void> await_start(ChildContext& context) {
    const int place = static_cast<int>(3 + context.process().preserve_fds);
    stop_logging();
    TRY(keep_only(context, place));
    TRY(context.handshake.created());  // from here on there is no more than the parent may find
    int connection = -1;
    while ((connection = ::accept4(place, nullptr, nullptr, SOCK_CLOEXEC)) < 0) {
        if (errno != EINTR) return errno_error("wait for start");
    }
    context.handshake.go_on_over(UniqueFd(connection));
    ::close(place);
    return {};
}

Actions tell_start(const ChildRequest&) { return {"wait for the container's start"}; }

// As part of start, inside, as the payload's user. They are programs of the image: nothing of the host's is open in the
// process beside them, and if that has more rights than they, they may not trace it.
Result<void> run_start_hooks(ChildContext& context) {
    TRY(close_all_but(std::array{context.handshake.channel().fd()}, 3 + context.process().preserve_fds));
    return run_hooks("startContainer", context.plan().hooks.start_container,
                     hook_state(*context.record, Status::created, context.host_pid), -1,
                     kept_capabilities(context.request) != 0);
}

Actions tell_start_hooks(const ChildRequest& request) {
    Actions actions;
    add_hooks("startContainer", request.plan->hooks.start_container, "in the container", actions);
    return actions;
}

// Goes on in the payload's process: the steps below this one are taken there.
Result<void> stay_as_init(ChildContext& context) {
    return become_sandbox_init(*context.plan().sandbox_init, std::move(*context.sandbox_init), context.handshake);
}

Actions tell_sandbox_init(const ChildRequest&) { return {"stay, and start the payload as a child"}; }

Result<void> join_pid_namespace(ChildContext& context) {
    if (::setns(context.pid_namespace.get(), CLONE_NEWPID) == 0) return {};
    return errno_error("join it").with_hint("it must belong to the user namespace of the container");
}

Actions tell_pid_namespace(const ChildRequest&) { return {"join it, for what is cloned next"}; }

Result<void> take_inside(ChildContext& context);

// The parent, which is also that of the clone, hears of it on the channel.
Result<void> clone_inside(ChildContext& context) {
    TRY(close_all_but(std::array{context.handshake.channel().fd(), context.start_socket.get()},
                      3 + context.process().preserve_fds));
    TRY(context.handshake.clone_sibling(0, [&] { context.handshake.fail(take_inside(context).error()); }));
    ::_exit(0);
}

Actions tell_clone_inside(const ChildRequest&) { return {"clone the process that is seen inside"}; }

// Into the container. At first with the caller's credentials, or as the namespace's root, and all of the host's file
// system in view; at the end root in the container.
constexpr ChildStep kSetUp[] = {
    {"session", always, start_session, tell_session},
    {"user namespace", asks<&Plan::id_maps>, enter_user_namespace, tell_user_namespace},
    {"namespaces", has_late_namespaces, create_late_namespaces, tell_late_namespaces},
    {"loopback", has_own_network, raise_loopback, tell_loopback},
    {"keyring", asks<&Plan::keyring>, join_keyring, tell_keyring},
    {"hostname", asks<&Plan::hostname>, set_hostname, tell_hostname},
    {"domainname", asks<&Plan::domainname>, set_domainname, tell_domainname},
    {"mount namespace", has_own_mounts, cut_off_mounts, tell_cut_off},
    {"root", has_own_mounts, open_root, tell_root},
    {"mounts", prepares_mounts, prepare_mounts, tell_prepared_mounts},
    {"root", has_own_mounts, place_root, tell_placed_root},
    {"mounts", mounts_and_asks<&Plan::mounts>, place_mounts, tell_mounts},
    {"devices", mounts_and_asks<&Plan::devices>, make_devices, tell_devices},
    {"links", mounts_and_asks<&Plan::links>, make_links, tell_links},
    {"hooks", has_create_hooks, await_create_hooks, tell_create_hooks},
    {"sysctl", asks<&Plan::sysctls>, set_sysctls, tell_sysctls},
    {"AppArmor", asks<&ProcessPlan::apparmor_profile>, set_apparmor_for_exec, tell_apparmor},
    {"SELinux", asks<&ProcessPlan::selinux_label>, set_selinux_for_exec, tell_selinux},
    {"terminal", mounts_and_asks<&ProcessPlan::terminal>, set_up_terminal, tell_terminal},
    {"masked paths", mounts_and_asks<&Plan::masked_paths>, mask_paths, tell_masked_paths},
    {"read-only paths", mounts_and_asks<&Plan::readonly_paths>, make_paths_readonly, tell_readonly_paths},
    {"pivot_root", has_own_mounts, enter_root, tell_entered_root},
};

// From there to the payload: its user, then its rights, then its program.
constexpr ChildStep kBecomePayload[] = {
    {"files", waits_for_files, wait_for_files, tell_files},
    {"cwd", always, enter_cwd, tell_cwd},
    {"personality", asks<&ProcessPlan::personality>, set_personality, tell_personality},
    {"scheduler", asks<&ProcessPlan::scheduler>, set_scheduler, tell_scheduler},
    {"I/O priority", asks<&ProcessPlan::io_priority>, set_io_priority, tell_io_priority},
    {"memory policy", asks<&ProcessPlan::memory_policy>, set_memory_policy, tell_memory_policy},
    {"rlimits", asks<&ProcessPlan::rlimits>, set_rlimits, tell_rlimits},
    {"bounding set", always, limit_bounding_set, tell_bounding_set},
    {"user", always, change_user, tell_user},
    {"executable", asks<&ProcessPlan::args>, find_program, tell_program},
    {"descriptors", always, drop_inherited, tell_descriptors},
    {"seccomp", filters<FilterTime::early>, load_filter, tell_filter},
    {"waiting rights", waits_beside_others, lower_capabilities, tell_waiting_capabilities},
    {"start", waits_for_start, await_start, tell_start},
    {"hooks", has_start_hooks, run_start_hooks, tell_start_hooks},
    {"sandbox init", asks<&Plan::sandbox_init>, stay_as_init, tell_sandbox_init},
    {"ready", always, announce_ready, tell_ready},
    {"seccomp", filters<FilterTime::before_capabilities>, load_filter, tell_filter},
    {"no new privileges", asks<&ProcessPlan::no_new_privileges>, forbid_new_privileges, tell_no_new_privileges},
    {"Landlock", asks<&ProcessPlan::landlock>, enter_landlock, tell_landlock},
    {"capabilities", always, set_capabilities, tell_capabilities},
    {"seccomp", filters<FilterTime::last>, load_filter, tell_filter},
    {"exec", always, execute_program, tell_exec},
};

// Instead, where others live in the pid namespace that the payload is to be in. They see nobody of us but the payload,
// and that only when all is set up.
constexpr ChildStep kJoin[] = {{"pid namespace", always, join_pid_namespace, tell_pid_namespace}};

constexpr ChildStep kOutside[] = {
    {"cwd", always, enter_cwd, tell_cwd},
    {"personality", asks<&ProcessPlan::personality>, set_personality, tell_personality},
    {"scheduler", inherits_scheduler, set_scheduler, tell_scheduler},
    {"I/O priority", asks<&ProcessPlan::io_priority>, set_io_priority, tell_io_priority},
    {"memory policy", asks<&ProcessPlan::memory_policy>, set_memory_policy, tell_memory_policy},
    {"rlimits", asks<&ProcessPlan::rlimits>, set_inherited_rlimits, tell_rlimits},
    {"bounding set", always, limit_bounding_set, tell_bounding_set},
    {"user", always, change_user, tell_user},
    {"streams", always, hide_and_take_streams, tell_streams},
    {"no new privileges", asks<&ProcessPlan::no_new_privileges>, forbid_new_privileges, tell_no_new_privileges},
    {"Landlock", asks<&ProcessPlan::landlock>, enter_landlock, tell_landlock},
    {"seccomp", filters<FilterTime::early>, load_filter, tell_filter},
    {"capabilities", always, set_waiting_capabilities, tell_waiting_capabilities},
    {"clone", always, clone_inside, tell_clone_inside},
};

// The program's path is found here, where it may be one in /proc.
constexpr ChildStep kInside[] = {
    {"session", always, start_session_inside, tell_session},
    {"terminal", asks<&ProcessPlan::terminal>, claim_terminal_inside, tell_claimed_terminal},
    {"scheduler", sets_scheduler_inside, set_scheduler, tell_scheduler},
    {"rlimits", asks<&ProcessPlan::rlimits>, set_rlimits, tell_rlimits},
    {"descriptors", always, drop_inherited, tell_descriptors},
    {"start", waits_for_start, await_start, tell_start},
    {"hooks", has_start_hooks, run_start_hooks, tell_start_hooks},
    {"executable", asks<&ProcessPlan::args>, find_program, tell_program},
    {"ready", always, announce_ready, tell_ready},
    {"seccomp", filters<FilterTime::before_capabilities>, load_filter, tell_filter},
    {"capabilities", keeps_capabilities, set_capabilities, tell_capabilities},
    {"seccomp", filters<FilterTime::last>, load_filter, tell_filter},
    {"exec", always, execute_program, tell_exec},
};

Result<void> take_inside(ChildContext& context) { return take_steps(kInside, context.request, context); }

bool is_among_others(const ChildRequest& request) {
    return request.plan == nullptr || request.plan->namespaces.joins(CLONE_NEWPID);
}

// Returns only on failure.
Result<void> become_payload(ChildContext& context) {
    // Until the payload runs, a parent that dies takes this half-made container with it. Before all else: even a line
    // for the log can wait for a reader.
    TRY(depend_on_parent(context.handshake.channel()));
    if (context.pid_namespace) wipe(context.words);  // before any of us is seen there
    TRY(take_steps(kSetUp, context.request, context));
    if (!context.pid_namespace) return take_steps(kBecomePayload, context.request, context);
    TRY(take_steps(kJoin, context.request, context));
    return become_payload_among_others(context);
}

}  // namespace

void run_child(ChildContext context) {
    const Result<void> failed = become_payload(context);
    context.handshake.fail(failed.error());
    ::_exit(1);
}

// Who waits beside programs of the container's would have to keep the right to load it, for them to take over; who is
// among them from the start could be made to call what it denies, too.
bool can_filter_early(const ChildRequest& request, const SeccompFilter& filter) {
    const bool is_watched =
        request.process.pauses_before_exec || (filter.flags & SECCOMP_FILTER_FLAG_NEW_LISTENER) != 0;
    const bool keeps_right = waits_beside_others(request) && !request.process.no_new_privileges &&
                             !request.process.landlock && !request.plan->sandbox_init;
    if (is_watched || (!is_among_others(request) && !keeps_right)) return false;
    return allows_end_of_start(filter.program, {request.waits_for_start, has_start_hooks(request)});
}

Result<void> become_payload_among_others(ChildContext& context) {
    return take_steps(kOutside, context.request, context);
}

void tell_child_steps(const ChildRequest& request, std::vector<ToldStep>& told) {
    tell_steps(kSetUp, request, "child", told);
    if (!is_among_others(request)) return tell_steps(kBecomePayload, request, "child", told);
    tell_steps(kJoin, request, "child", told);
    tell_steps(kOutside, request, "child", told);
}

void tell_steps_inside(const ChildRequest& request, std::vector<ToldStep>& told) {
    if (is_among_others(request)) tell_steps(kInside, request, "child", told);
}

void log_silent_steps(const ChildRequest& request) {
    bool is_silent = is_among_others(request);
    for (const ChildStep& step : is_silent ? std::span<const ChildStep>(kInside) : kBecomePayload) {
        if (is_silent && step.is_asked_for(request)) log_debug(step.name);
        is_silent = is_silent || step.take == drop_inherited;
    }
}

}  // namespace pinfold
