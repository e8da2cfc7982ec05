// The child: from the clone to execve. Everything here was decided in the plan; what is left is to do it, in order. The
// lists stand at the end of the file.
#include "process/child_steps.hpp"

#include <fcntl.h>
#include <grp.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
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
#include "process/trampoline.hpp"
#include "seccomp/start_calls.hpp"

namespace pinfold {

namespace {

bool always(const ChildRequest&) { return true; }

// What only the parent can do, and what the very first steps need: id maps, groups that are not cloned into, devices of
// the network, our own number for a label; a limit on descriptors is not raised by both at a time.
bool waits_first(const ChildRequest& request) {
    const Plan& plan = *request.plan;
    const CgroupPath& place = plan.cgroup.place;
    return plan.id_maps || plan.namespaces.needs_joiner() || !place.v1.empty() || !place.scope.empty() ||
           !plan.net_devices.empty() || !plan.process.selinux_label.empty() || needs_more_descriptors(plan);
}

bool waits_later(const ChildRequest& request) { return !waits_first(request); }

Result<void> await_go(ChildContext& context) {
    Packet go = TRY(context.handshake.await_go());
    context.host_pid = go.pid;
    context.network = std::move(go.fd);
    return {};
}

Actions tell_go(const ChildRequest&) { return {"wait until the parent has taken its steps"}; }

Result<void> start_session(ChildContext&) {
    if (::setsid() < 0) return errno_error("setsid");
    ::umask(0);  // modes below are exact; the payload's umask is set with its user
    return {};
}

Actions tell_session(const ChildRequest&) { return {"a new session"}; }

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

bool has_cloned_network(const ChildRequest& request) {
    return request.plan->namespaces.creates(CLONE_NEWNET) && !request.plan->makes_network_ahead();
}

Result<void> raise_loopback(ChildContext&) { return bring_loopback_up(); }

Actions tell_loopback(const ChildRequest&) { return {"bring lo up"}; }

bool has_network_ahead(const ChildRequest& request) { return request.plan->makes_network_ahead(); }

Result<void> enter_network(ChildContext& context) {
    const UniqueFd network = std::move(context.network);
    if (::setns(network.get(), CLONE_NEWNET) != 0) return errno_error("enter the new network namespace");
    return {};
}

Actions tell_entered_network(const ChildRequest&) { return {"enter the namespace that the parent has made"}; }

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
    return request.plan != nullptr && request.plan->sandbox_init && request.plan->sandbox_init->waits;
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
// have whatever we have: so there is neither a right of the host's nor a word of our caller's. Without it they have
// what is dumpable; but who is to look at us from outside, and is no root, needs that too.
Result<void> lower_capabilities(ChildContext& context) {
    wipe(context.words);
    if (!context.plan().id_maps && ::prctl(PR_SET_DUMPABLE, 0) != 0) return errno_error("set dumpable");
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

Actions tell_sandbox_init(const ChildRequest&) {
    return {"stay, and start the payload as a child, with a session of its own"};
}

Result<void> claim_terminal_as_payload(ChildContext&) { return claim_terminal(STDIN_FILENO); }

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

// The trampoline's steps: a line of its list adds the system calls that take it. Everything else that they need, such
// as the numbers of descriptors, is known by then.
struct TrampolineContext {
    TrampolineImage image;
    ChildContext& child;
};

using TrampolineStep = Step<ChildRequest, TrampolineContext>;

// As clone_inside() does. The calls after the exit are made by the clone, which others see: not dumpable, and with
// nothing in its memory but these calls. The descriptor of it goes from the kernel into the letter. A payload that
// executes the trampoline once more, by /proc/self/exe, has no channel, and gets no further than to ask for it.
Result<void> add_clone(TrampolineContext& context) {
    TrampolineImage& image = context.image;
    const TrampolineImage::Letter born = image.add_letter(TRY(context.child.handshake.packet(Message::born)));
    image.call(SYS_fcntl, {uint64_t(image.socket()), F_GETFD}, "find the channel");
    image.call(SYS_prctl, {PR_SET_DUMPABLE, 0}, "set dumpable");
    image.call(SYS_clone, {CLONE_PARENT | CLONE_PIDFD, 0, born.descriptor, 0, 0}, "clone");
    image.skip_on_zero(2);
    image.call(SYS_sendmsg, {uint64_t(image.socket()), born.header, MSG_NOSIGNAL}, "send to the other process");
    image.call(SYS_exit_group, {0}, "exit");
    return {};
}

// What `go` says is of no interest, but without it the parent is gone: back to the exit.
Result<void> add_session(TrampolineContext& context) {
    TrampolineImage& image = context.image;
    TRY(context.child.handshake.leave_go());
    image.call(SYS_read, {uint64_t(image.socket()), image.add(std::string(1, '\0')), 1}, "hear from the other process");
    image.skip_on_zero(-2);
    image.call(SYS_setsid, {}, "setsid");
    return {};
}

Result<void> add_terminal(TrampolineContext& context) {
    context.image.call(SYS_ioctl, {STDIN_FILENO, TIOCSCTTY, 0}, "make the terminal the controlling one (TIOCSCTTY)");
    return {};
}

// Those that the clone could not inherit.
Result<void> add_rlimits(TrampolineContext& context) {
    TrampolineImage& image = context.image;
    for (const ResourceLimit& limit : context.child.rlimits_inside)
        image.call(SYS_prlimit64, {0, uint64_t(limit.resource), image.add(&limit.limit, sizeof limit.limit), 0},
                   limit.name);
    return {};
}

// As await_start() does. The connection to `start` has the lowest number that is free then: nothing is open but the
// payload's descriptors and the socket at which it is waited for.
Result<void> add_wait(TrampolineContext& context) {
    TrampolineImage& image = context.image;
    const auto channel = static_cast<uint64_t>(image.socket());
    const int socket = context.child.start_socket.get();
    const int lowest = static_cast<int>(first_own_descriptor(context.child.process()));
    rlimit numbers{};
    if (::getrlimit(RLIMIT_NOFILE, &numbers) == 0 && numbers.rlim_cur <= rlim_t(lowest))
        return plain_error(
                   concat("RLIMIT_NOFILE of ", numbers.rlim_cur, " leaves no descriptor to hear of the start by"))
            .with_hint(concat("allow at least ", lowest + 1));
    image.call(SYS_prctl, {PR_SET_DUMPABLE, 0}, "set dumpable");
    image.say(TRY(context.child.handshake.packet(Message::created)));
    image.speak_over(-1);
    image.call(SYS_close, {channel}, "close");
    image.call(SYS_accept4, {uint64_t(socket), 0, 0, SOCK_CLOEXEC}, "wait for start");
    image.call(SYS_close, {uint64_t(socket)}, "close");
    image.speak_over(socket == lowest ? lowest + 1 : lowest);
    return {};
}

// Who has waited speaks over a connection that is closed by execve. The channel has come through one.
Result<void> add_ready(TrampolineContext& context) {
    TrampolineImage& image = context.image;
    if (!context.child.request.waits_for_start)
        image.call(SYS_fcntl, {uint64_t(image.socket()), F_SETFD, FD_CLOEXEC}, "set close-on-exec");
    image.say(TRY(context.child.handshake.packet(Message::ready)));
    return {};
}

Result<void> add_filter(TrampolineContext& context) {
    const SeccompFilter& filter = *context.child.setup.filter;
    TrampolineImage& image = context.image;
    const uint64_t code = image.add(filter.program.data(), filter.program.size() * sizeof(sock_filter));
    const sock_fprog program{static_cast<unsigned short>(filter.program.size()),
                             // NOLINTNEXTLINE(performance-no-int-to-ptr): an address in another program
                             reinterpret_cast<sock_filter*>(code)};
    image.call(SYS_seccomp, {SECCOMP_SET_MODE_FILTER, filter.flags, image.add(&program, sizeof program)},
               "load seccomp filter");
    return {};
}

Result<void> add_exec(TrampolineContext& context) {
    context.image.execute(context.child.program);
    return {};
}

Result<void> write_trampoline(ChildContext& context);

// What the trampoline uses; all else from the first descriptor of ours on is closed by its execve.
Result<void> keep_for_trampoline(int fd) {
    if (fd >= 0 && ::fcntl(fd, F_SETFD, 0) != 0) return errno_error("keep a descriptor");
    return {};
}

// Returns only on failure.
Result<void> enter_trampoline(ChildContext& context) {
    TRY(write_trampoline(context));
    TRY(keep_for_trampoline(context.handshake.channel().fd()));
    TRY(keep_for_trampoline(context.start_socket.get()));
    return become_trampoline(context.trampoline.get(), context.process().args, context.env);
}

Actions tell_trampoline(const ChildRequest&) {
    return {"leave pinfold's own file behind: execute a sealed file in memory"};
}

// Whether others live where the payload is to be. They see nobody of us but the payload, and that only when all is set
// up: by another process, that takes over.
bool is_among_others(const ChildRequest& request) {
    return request.plan == nullptr || request.plan->namespaces.joins(CLONE_NEWPID);
}

bool is_alone(const ChildRequest& request) { return !is_among_others(request); }

// An exec joins it with the container's others.
bool joins_others(const ChildRequest& request) { return request.plan != nullptr && is_among_others(request); }

// Where its last steps are no more than system calls, or there is no other place.
bool ends_outside(const ChildRequest& request) { return is_alone(request) || request.last.in_trampoline; }

bool finds_program_early(const ChildRequest& request) { return ends_outside(request) && !request.process.args.empty(); }

// Inside, where it may be one in /proc.
bool finds_program_late(const ChildRequest& request) { return !ends_outside(request) && !request.process.args.empty(); }

bool has_terminal_inside(const ChildRequest& request) { return is_among_others(request) && request.process.terminal; }

bool has_rlimits_inside(const ChildRequest& request) {
    return is_among_others(request) && !request.process.rlimits.empty();
}

bool sets_scheduler_outside(const ChildRequest& request) {
    return is_alone(request) ? request.process.scheduler.has_value() : inherits_scheduler(request);
}

Result<void> set_rlimits_outside(ChildContext& context) {
    return is_alone(context.request) ? set_rlimits(context) : set_inherited_rlimits(context);
}

bool is_seen_while_waiting(const ChildRequest& request) { return is_alone(request) && waits_beside_others(request); }

bool sets_capabilities_last(const ChildRequest& request) { return is_alone(request) || keeps_capabilities(request); }

bool has_sandbox_init(const ChildRequest& request) { return request.plan != nullptr && request.plan->sandbox_init; }

bool has_terminal_below_init(const ChildRequest& request) {
    return has_sandbox_init(request) && request.process.terminal;
}

// Into the container. At first with the caller's credentials, or as the namespace's root, and all of the host's file
// system in view; at the end root in the container.
constexpr ChildStep kSetUp[] = {
    {"go", waits_first, await_go, tell_go},
    {"session", always, start_session, tell_session},
    {"user namespace", asks<&Plan::id_maps>, enter_user_namespace, tell_user_namespace},
    {"namespaces", has_late_namespaces, create_late_namespaces, tell_late_namespaces},
    {"loopback", has_cloned_network, raise_loopback, tell_loopback},
    {"keyring", asks<&Plan::keyring>, join_keyring, tell_keyring},
    {"hostname", asks<&Plan::hostname>, set_hostname, tell_hostname},
    {"domainname", asks<&Plan::domainname>, set_domainname, tell_domainname},
    {"mount namespace", has_own_mounts, cut_off_mounts, tell_cut_off},
    {"root", has_own_mounts, open_root, tell_root},
    kPrepareMounts<MountTime::before_network>,
    {"go", waits_later, await_go, tell_go},
    {"network", has_network_ahead, enter_network, tell_entered_network},
    kPrepareMounts<MountTime::in_network>,
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

// From there to the payload's user.
constexpr ChildStep kBecomeUser[] = {
    {"pid namespace", joins_others, join_pid_namespace, tell_pid_namespace},
    {"files", waits_for_files, wait_for_files, tell_files},
    {"cwd", always, enter_cwd, tell_cwd},
    {"personality", asks<&ProcessPlan::personality>, set_personality, tell_personality},
    {"scheduler", sets_scheduler_outside, set_scheduler, tell_scheduler},
    {"I/O priority", asks<&ProcessPlan::io_priority>, set_io_priority, tell_io_priority},
    {"memory policy", asks<&ProcessPlan::memory_policy>, set_memory_policy, tell_memory_policy},
    {"rlimits", asks<&ProcessPlan::rlimits>, set_rlimits_outside, tell_rlimits},
    {"bounding set", always, limit_bounding_set, tell_bounding_set},
    {"user", always, change_user, tell_user},
    {"executable", finds_program_early, find_program, tell_program},
    {"descriptors", ends_outside, drop_inherited, tell_descriptors},
    {"streams", is_among_others, hide_and_take_streams, tell_streams},
};

// What restricts the payload comes before its programs may run beside this process, as hooks, by an exec, or since they
// live there: they have no more than it has. Only a filter that forbids what is left to do comes later.
constexpr ChildStep kRestrict[] = {
    {"sandbox init", has_sandbox_init, stay_as_init, tell_sandbox_init},
    {"terminal", has_terminal_below_init, claim_terminal_as_payload, tell_claimed_terminal},
    {"no new privileges", asks<&ProcessPlan::no_new_privileges>, forbid_new_privileges, tell_no_new_privileges},
    {"Landlock", asks<&ProcessPlan::landlock>, enter_landlock, tell_landlock},
    {"seccomp", filters<FilterTime::early>, load_filter, tell_filter},
};

// Then, where others live, out of their sight: another process takes over, which begins with what a clone does not
// hand on.
constexpr ChildStep kCloneInside[] = {
    {"capabilities", always, set_waiting_capabilities, tell_waiting_capabilities},
    {"clone", always, clone_inside, tell_clone_inside},
};

constexpr ChildStep kTakeOver[] = {
    {"session", always, start_session_inside, tell_session},
    {"terminal", asks<&ProcessPlan::terminal>, claim_terminal_inside, tell_claimed_terminal},
    {"scheduler", sets_scheduler_inside, set_scheduler, tell_scheduler},
    {"rlimits", asks<&ProcessPlan::rlimits>, set_rlimits, tell_rlimits},
    {"descriptors", always, drop_inherited, tell_descriptors},
};

// To its program.
constexpr ChildStep kBecomePayload[] = {
    {"waiting rights", is_seen_while_waiting, lower_capabilities, tell_waiting_capabilities},
    {"start", waits_for_start, await_start, tell_start},
    {"hooks", has_start_hooks, run_start_hooks, tell_start_hooks},
    {"executable", finds_program_late, find_program, tell_program},
    {"ready", always, announce_ready, tell_ready},
    {"seccomp", filters<FilterTime::before_capabilities>, load_filter, tell_filter},
    {"capabilities", sets_capabilities_last, set_capabilities, tell_capabilities},
    {"seccomp", filters<FilterTime::last>, load_filter, tell_filter},
    {"exec", always, execute_program, tell_exec},
};

// Instead, where pinfold's own file has to be left behind first, or where the process waits for its start.
constexpr ChildStep kLeaveBinary[] = {
    {"capabilities", always, set_capabilities, tell_capabilities},
    {"trampoline", always, enter_trampoline, tell_trampoline},
};

constexpr TrampolineStep kInTrampoline[] = {
    {"clone", is_among_others, add_clone, tell_clone_inside},
    {"session", is_among_others, add_session, tell_session},
    {"terminal", has_terminal_inside, add_terminal, tell_claimed_terminal},
    {"rlimits", has_rlimits_inside, add_rlimits, tell_rlimits},
    {"start", waits_for_start, add_wait, tell_start},
    {"ready", always, add_ready, tell_ready},
    {"seccomp", filters<FilterTime::last>, add_filter, tell_filter},
    {"exec", always, add_exec, tell_exec},
};

Result<void> write_trampoline(ChildContext& context) {
    const std::optional<SeccompFilter>& filter = context.setup.filter;
    TrampolineContext trampoline{TRY(TrampolineImage::map(context.trampoline.get(), filter ? &*filter : nullptr)),
                                 context};
    trampoline.image.speak_over(context.handshake.channel().fd());
    for (const TrampolineStep& step : kInTrampoline) {
        if (!step.is_asked_for(context.request)) continue;
        trampoline.image.begin_step(step.name);
        TRY_IN(step.name, step.take(trampoline));
    }
    return trampoline.image.finish();
}

Result<void> take_inside(ChildContext& context) {
    TRY(take_steps(kTakeOver, context.request, context));
    return take_steps(kBecomePayload, context.request, context);
}

// Returns only on failure.
Result<void> become_payload_of_container(ChildContext& context) {
    // Until the payload runs, a parent that dies takes this half-made container with it. Before all else: even a line
    // for the log can wait for a reader.
    TRY(depend_on_parent(context.handshake.channel()));
    if (context.pid_namespace) wipe(context.words);  // before any of us is seen there
    TRY(take_steps(kSetUp, context.request, context));
    return become_payload(context);
}

}  // namespace

void run_child(ChildContext context) {
    const Result<void> failed = become_payload_of_container(context);
    context.handshake.fail(failed.error());
    ::_exit(1);
}

Result<void> become_payload(ChildContext& context) {
    TRY(take_steps(kBecomeUser, context.request, context));
    TRY(take_steps(kRestrict, context.request, context));
    if (context.request.last.in_trampoline) return take_steps(kLeaveBinary, context.request, context);
    if (is_among_others(context.request)) return take_steps(kCloneInside, context.request, context);
    return take_steps(kBecomePayload, context.request, context);
}

// What /proc/self is, only a process knows that lives in the pid namespace of that /proc.
static bool needs_own_proc(const ProcessPlan& process) {
    const auto names_proc = [](std::string_view text) { return text.find("/proc/") != text.npos; };
    return (!process.args.empty() && names_proc(process.args.front())) || names_proc(process.cwd) ||
           std::ranges::any_of(process.env,
                               [&](std::string_view entry) { return entry.starts_with("PATH=") && names_proc(entry); });
}

// The trampoline is written with the limits in force, in a process that has all of pinfold mapped.
static bool leaves_room_to_write(const ProcessPlan& process) {
    constexpr rlim_t kRoom = 64 << 20;
    return std::ranges::none_of(process.rlimits, [](const ResourceLimit& one) {
        return one.resource == RLIMIT_AS && one.limit.rlim_cur < kRoom;
    });
}

bool can_end_in_trampoline(const ChildRequest& request) {
    const ProcessPlan& process = request.process;
    if (!leaves_room_to_write(process)) return false;
    if (!has_trampoline() || !process.has_memory_programs) return false;
    if (!process.protect_binary && !request.waits_for_start) return false;
    // Whoever executes a program in a user namespace can be traced by its root, as one with pinfold's own memory
    // cannot.
    const bool joins = request.joins_users || (request.plan != nullptr && is_among_others(request));
    const bool is_looked_at = process.pauses_before_exec || (request.seccomp && has_listener(*request.seccomp));
    const bool does_more = has_start_hooks(request) || has_sandbox_init(request) || sets_scheduler_inside(request);
    const bool takes_label = !process.apparmor_profile.empty() || !process.selinux_label.empty();
    return !joins && !is_looked_at && !does_more && !takes_label &&
           !(is_among_others(request) && needs_own_proc(process));
}

namespace {

// Without no_new_privs a filter has to be loaded while there is the right to: before the trampoline.
bool filter_allows_trampoline(const ChildRequest& request, const SeccompFilter* filter) {
    return filter == nullptr || request.process.no_new_privileges ||
           allows_end_of_start(filter->program, {.waits = true, .trampoline = true});
}

// Where programs of the container's may look at the process, by tracing it: they could have it call what the filter
// denies, or have the right to load it. Who goes on in the trampoline loses that right.
bool can_filter_early(const ChildRequest& request, const SeccompFilter& filter) {
    if (request.last.in_trampoline && !request.process.no_new_privileges) return true;
    const bool is_watched =
        request.process.pauses_before_exec || (filter.flags & SECCOMP_FILTER_FLAG_NEW_LISTENER) != 0;
    if (is_watched || (is_alone(request) && !waits_beside_others(request))) return false;
    return allows_end_of_start(filter.program, {.waits = request.waits_for_start,
                                                .hooks = has_start_hooks(request),
                                                .trampoline = request.last.in_trampoline});
}

}  // namespace

LastSteps choose_last_steps(const ChildRequest& request, const SeccompFilter* filter) {
    ChildRequest chosen = request;
    chosen.last.in_trampoline = can_end_in_trampoline(request) && filter_allows_trampoline(request, filter);
    chosen.last.filters_early = filter != nullptr && can_filter_early(chosen, *filter);
    return chosen.last;
}

void tell_child_steps(const ChildRequest& request, std::vector<ToldStep>& told) {
    tell_steps(kSetUp, request, "child", told);
    tell_steps(kBecomeUser, request, "child", told);
    tell_steps(kRestrict, request, "child", told);
    if (request.last.in_trampoline) {
        tell_steps(kLeaveBinary, request, "child", told);
        return tell_steps(kInTrampoline, request, "child", told);
    }
    if (is_among_others(request)) return tell_steps(kCloneInside, request, "child", told);
    tell_steps(kBecomePayload, request, "child", told);
}

void tell_steps_inside(const ChildRequest& request, std::vector<ToldStep>& told) {
    if (is_alone(request)) return;
    tell_steps(kTakeOver, request, "child", told);
    tell_steps(kBecomePayload, request, "child", told);
}

void log_silent_steps(const ChildRequest& request) {
    const auto log = [&](const auto& steps) {
        for (const auto& step : steps) {
            if (step.is_asked_for(request)) log_debug(step.name);
        }
    };
    if (is_alone(request)) log(kRestrict);
    if (request.last.in_trampoline) {
        log(kLeaveBinary);
        return log(kInTrampoline);
    }
    if (is_among_others(request)) log(kTakeOver);
    log(kBecomePayload);
}

}  // namespace pinfold
