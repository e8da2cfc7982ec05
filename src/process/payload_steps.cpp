// The last steps of a process on its way to becoming a payload.
#include "process/payload_steps.hpp"

#include <fcntl.h>
#include <linux/close_range.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>
#include <utility>

#include "base/fs.hpp"
#include "base/log.hpp"
#include "base/process.hpp"
#include "base/strings.hpp"
#include "kernel/apparmor.hpp"
#include "kernel/credentials.hpp"
#include "kernel/fd_passing.hpp"
#include "kernel/safe_path.hpp"
#include "kernel/selinux.hpp"
#include "kernel/syscalls.hpp"
#include "process/pause_point.hpp"
#include "seccomp/load.hpp"

namespace pinfold {

namespace {

// Under the filter, whose listener is to be taken; then with all rights restricted, to be looked at.
constexpr PausePoint kListener(PausePoint::kListener), kBeforeExec(PausePoint::kBeforeExec);

// The directory may be reached through symlinks, but never through a magic link such as /proc/self/fd/7, and it must
// lie below the root: a descriptor of the host's that leaked in must not become a way out (CVE-2024-21626).
Result<void> change_directory(const std::string& path) {
    open_how how{};
    how.flags = O_PATH | O_DIRECTORY | O_CLOEXEC;
    how.resolve = RESOLVE_NO_MAGICLINKS;
    const UniqueFd directory(sys_openat2(AT_FDCWD, path.c_str(), how));
    if (!directory) return errno_error(path);
    if (::fchdir(directory.get()) != 0) return errno_error(path);
    char name[PATH_MAX];
    if (::syscall(SYS_getcwd, name, sizeof name) < 0) return errno_error(concat(path, ": getcwd"));
    if (name[0] != '/') return plain_error(concat(path, " is outside of the container's root"));
    return {};
}

Result<void> make_directories(const std::string& path) {
    const RootFd root(TRY(open_at(AT_FDCWD, "/", O_PATH | O_DIRECTORY)));
    TRY(root.make_directory(path));
    return {};
}

std::string_view search_path(const std::vector<std::string>& env) {
    for (const std::string& entry : env) {
        if (entry.starts_with("PATH=")) return std::string_view(entry).substr(5);
    }
    return "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
}

// 0 if it can be executed, else the errno that execve would give.
int check_executable(const std::string& path) {
    struct stat info {};
    if (::stat(path.c_str(), &info) != 0) return errno;
    if (!S_ISREG(info.st_mode)) return EACCES;
    return ::faccessat(AT_FDCWD, path.c_str(), X_OK, AT_EACCESS) == 0 ? 0 : errno;
}

// Engines look for these very words, in lower case, and turn them into exit codes 126 and 127.
Error exec_error(int code, const std::string& name) {
    const char* words = code == ENOENT ? "no such file or directory" : code == EACCES ? "permission denied" : nullptr;
    if (words == nullptr) return errno_error(code, concat("\"", name, "\""));
    return Error{code, concat("\"", name, "\": ", words), {}};
}

Result<void> take_streams(PayloadSetup& setup) {
    const Streams* streams = std::exchange(setup.streams, nullptr);
    if (streams == nullptr) return {};
    const std::pair<int, const UniqueFd*> places[] = {{0, &streams->in}, {1, &streams->out}, {2, &streams->err}};
    for (const auto& [number, fd] : places) {
        if (::dup2(fd->get(), number) < 0) return errno_error(concat("place descriptor ", number));
    }
    return {};
}

// Who changes its user is hidden from its parent, if that is no root. In namespaces of its own there is nobody else to
// hide from.
Result<void> let_parent_look(const ChildRequest& request) {
    if (request.plan == nullptr || request.plan->namespaces.needs_joiner()) return {};
    if (::prctl(PR_SET_DUMPABLE, 1) != 0) return errno_error("set dumpable");
    return {};
}

// A deadline cannot be cloned, and who asks for that loses all of it with the clone.
bool is_inherited(const SchedulerRequest& request) {
    constexpr uint32_t kDeadline = 6;
    constexpr uint64_t kResetOnFork = 1;
    return request.policy != kDeadline && (request.flags & kResetOnFork) == 0;
}

bool has_listener(const std::optional<SeccompFilter>& filter) {
    return filter && (filter->flags & SECCOMP_FILTER_FLAG_NEW_LISTENER) != 0;
}

// What is announced of the listener of a filter that is loaded later; nothing where it has none. The kernel takes the
// lowest number that is free. `any` is an open descriptor.
Result<ListenerOffer> offer_listener(const std::optional<SeccompFilter>& filter, int any) {
    if (!has_listener(filter)) return ListenerOffer{};
    const UniqueFd next(::dup(any));
    if (!next) return errno_error("dup");
    return ListenerOffer{next.get(), {kListener.address()}};
}

}  // namespace

unsigned first_own_descriptor(const ProcessPlan& process) { return 3 + process.preserve_fds; }

Result<void> hand_over_terminal(const Pty& pty, uid_t owner, const PayloadSetup& setup, ChildSide& handshake) {
    if (setup.window) TRY(set_window_size(pty.master.get(), setup.window->ws_row, setup.window->ws_col));
    TRY(own_terminal(pty.slave.get(), owner));
    if (setup.console_socket) TRY(send_fd(setup.console_socket.get(), pty.master.get(), "/dev/ptmx"));
    else TRY(handshake.terminal(pty.master.get()));
    return {};
}

Result<void> set_apparmor_for_exec(ChildContext& context) {
    return set_profile_for_exec(context.process().apparmor_profile, context.host_pid);
}

Actions tell_apparmor(const ChildRequest& request) {
    return {concat("profile ", request.process.apparmor_profile, " from execve on")};
}

Result<void> set_selinux_for_exec(ChildContext& context) {
    return set_context_for_exec(context.process().selinux_label, context.host_pid);
}

Actions tell_selinux(const ChildRequest& request) {
    return {concat("label ", request.process.selinux_label, " from execve on")};
}

// As root, since the payload's user may be given a directory that it could not enter itself; else as the user then.
Result<void> enter_cwd(ChildContext& context) {
    const std::string& path = context.process().cwd;
    Result<void> entered = change_directory(path);
    // Only at a container's start, when it may have been forgotten in the image. Who comes later has misspelt it.
    const bool is_missing = !entered && entered.error().code == ENOENT;
    if (is_missing && context.request.plan == nullptr)
        return std::move(entered).error().with_hint("it has to exist in the container");
    if (is_missing) {
        TRY(make_directories(path));
        entered = change_directory(path);
    }
    context.in_cwd = entered.has_value();
    if (!entered && entered.error().code != EACCES) return std::move(entered).error();
    return {};
}

Actions tell_cwd(const ChildRequest& request) { return {request.process.cwd}; }

Result<void> set_personality(ChildContext& context) { return apply_personality(*context.process().personality); }

Actions tell_personality(const ChildRequest& request) {
    return {concat("execution domain ", *request.process.personality)};
}

Result<void> set_scheduler(ChildContext& context) { return apply_scheduler(*context.process().scheduler); }

Actions tell_scheduler(const ChildRequest&) { return {"set the scheduling policy"}; }

Result<void> set_io_priority(ChildContext& context) { return apply_io_priority(*context.process().io_priority); }

Actions tell_io_priority(const ChildRequest&) { return {"set the I/O priority"}; }

Result<void> set_memory_policy(ChildContext& context) { return apply_memory_policy(*context.process().memory_policy); }

Actions tell_memory_policy(const ChildRequest&) { return {"set the memory policy"}; }

Result<void> set_rlimits(ChildContext& context) { return apply_rlimits(context.process().rlimits); }

Actions tell_rlimits(const ChildRequest& request) {
    return each(request.process.rlimits, [](const ResourceLimit& limit) {
        return concat(limit.name, ": soft ", limit.limit.rlim_cur, ", hard ", limit.limit.rlim_max);
    });
}

Result<void> limit_bounding_set(ChildContext& context) {
    return drop_bounding_set(context.process().capabilities.bounding);
}

Actions tell_bounding_set(const ChildRequest& request) {
    return {concat("keep ", hex(request.process.capabilities.bounding))};
}

Result<void> change_user(ChildContext& context) {
    const ProcessPlan& process = context.process();
    ::umask(process.umask.value_or(0022));
    TRY(change_identity(process.identity));
    if (!context.in_cwd) TRY_IN("cwd", change_directory(process.cwd));
    context.env = process.env;
    if (process.add_home) context.env.push_back(concat("HOME=", home_directory(process.identity.uid)));
    return {};
}

Actions tell_user(const ChildRequest& request) {
    const ProcessPlan& process = request.process;
    std::string groups;
    for (const gid_t group : process.identity.groups) groups += concat(groups.empty() ? "" : ",", group);
    Actions actions = {concat("uid ", process.identity.uid, ", gid ", process.identity.gid)};
    if (!process.identity.set_groups)
        actions.push_back("the caller's additional groups stay: setgroups is denied in this user namespace");
    else actions.push_back(groups.empty() ? "no additional groups" : concat("additional groups ", groups));
    if (process.umask) actions.push_back(concat("umask ", octal(*process.umask)));
    return actions;
}

Result<std::string> find_executable(const std::string& name, const std::vector<std::string>& env) {
    if (name.empty()) return exec_error(ENOENT, name);
    if (name.find('/') != std::string::npos) {
        const int problem = check_executable(name);
        if (problem != 0) return exec_error(problem, name);
        return name;
    }
    bool denied = false;
    for (const std::string_view directory : split(search_path(env), ':')) {
        const std::string candidate = concat(directory.empty() ? "." : directory, "/", name);
        const int problem = check_executable(candidate);
        if (problem == 0) return candidate;
        denied = denied || problem == EACCES;
    }
    if (denied) return exec_error(EACCES, name);
    return Error{ENOENT, concat("\"", name, "\": executable file not found in $PATH"), {}};
}

Result<void> find_program(ChildContext& context) {
    context.program = TRY(find_executable(context.process().args.front(), context.process().env));
    return {};
}

Actions tell_program(const ChildRequest& request) { return {concat("find ", quoted(request.process.args.front()))}; }

void reset_signals() {
    for (int number = 1; number < NSIG; ++number) ::signal(number, SIG_DFL);
    sigset_t none;
    ::sigemptyset(&none);
    ::sigprocmask(SIG_SETMASK, &none, nullptr);  // cannot fail
}

Result<void> drop_inherited(ChildContext& context) {
    stop_logging();
    TRY(take_streams(context.setup));
    if (::prctl(PR_SET_PDEATHSIG, 0) != 0) return errno_error("clear the parent-death signal");
    reset_signals();
    if (::close_range(first_own_descriptor(context.process()), UINT_MAX, CLOSE_RANGE_CLOEXEC) != 0)
        return errno_error("close_range");
    return {};
}

Actions tell_descriptors(const ChildRequest& request) {
    return {concat("close all from ", first_own_descriptor(request.process), " on when the program is executed")};
}

// Who waits holds nothing that others wait to see closed: the parent may die meanwhile, and with it its end of a link,
// or a lock. The userfaultfd that it waits by is for the peer alone to hold: when that ends, so does the wait.
Result<void> announce_ready(ChildContext& context) {
    const ProcessPlan& process = context.process();
    const std::optional<SeccompFilter>& filter = context.setup.filter;
    ChildSide& handshake = context.handshake;
    const int channel = handshake.channel().fd();
    if (process.pauses_before_exec || (context.request.seccomp && !context.request.seccomp->listener_path.empty()))
        TRY(let_parent_look(context.request));
    const bool waits = process.pauses_before_exec || has_listener(filter);
    if (waits) TRY(close_all_but(std::array{channel}, first_own_descriptor(process)));
    const UniqueFd faults = waits ? open_faults() : UniqueFd();
    context.readiness.listener = TRY_IN("seccomp listener", offer_listener(filter, channel));
    if (process.pauses_before_exec) context.readiness.before_exec.word = kBeforeExec.address();
    return handshake.ready(context.readiness, faults.get());
}

Actions tell_ready(const ChildRequest& request) {
    if (request.process.pauses_before_exec)
        return {"tell the parent, which looks at the process before it goes on to execve"};
    return {"tell the parent"};
}

FilterTime filter_time(const ChildRequest& request) {
    if (!request.seccomp) return FilterTime::never;
    if (request.last.filters_early) return FilterTime::early;
    return request.process.no_new_privileges ? FilterTime::last : FilterTime::before_capabilities;
}

Result<void> load_filter(ChildContext& context) {
    if (!context.process().no_new_privileges) TRY(raise_permitted_capabilities());
    const int listener = TRY(load_seccomp(*context.setup.filter));
    const ListenerOffer& offer = context.readiness.listener;
    if (offer.place.word == 0) return {};
    if (listener != offer.number) __builtin_trap();  // nobody would find it
    kListener.wait();
    return {};
}

Actions tell_filter(const ChildRequest& request) {
    size_t names = 0;
    for (const SyscallRule& rule : request.seccomp->syscalls) names += rule.names.size();
    return {concat("filter: default ", request.seccomp->default_action, ", ", request.seccomp->syscalls.size(),
                   " rules for ", names, " system calls")};
}

Result<void> forbid_new_privileges(ChildContext&) { return forbid_new_privileges(); }

Actions tell_no_new_privileges(const ChildRequest&) { return {"forbid new privileges"}; }

Result<void> enter_landlock(ChildContext& context) {
    return enter_landlock(*context.process().landlock, first_own_descriptor(context.process()));
}

Actions tell_landlock(const ChildRequest& request) {
    const LandlockRules& rules = *request.process.landlock;
    Actions actions = each(rules.places, [](const LandlockRules::Place& place) {
        return concat(place.path, place.writable ? " can be written" : " can be read");
    });
    const auto add_ports = [&](std::string_view what, const LandlockRules::Ports& ports) {
        if (!ports) return;
        std::string list;
        for (const uint16_t port : *ports) list += concat(' ', port);
        actions.push_back(concat(what, list.empty() ? " none" : list));
    };
    add_ports("TCP ports to listen on:", rules.tcp_bind);
    add_ports("TCP ports to connect to:", rules.tcp_connect);
    if (rules.own_abstract_sockets) actions.emplace_back("no abstract sockets but its own");
    return actions;
}

Result<void> set_capabilities(ChildContext& context) { return apply_capabilities(context.process().capabilities); }

Actions tell_capabilities(const ChildRequest& request) {
    const CapabilitySets& sets = request.process.capabilities;
    return {concat("effective ", hex(sets.effective)), concat("permitted ", hex(sets.permitted)),
            concat("inheritable ", hex(sets.inheritable)), concat("ambient ", hex(sets.ambient))};
}

Error execute(const std::string& path, const std::vector<std::string>& args, const std::vector<std::string>& env) {
    const std::vector<char*> argv = pointers(args);
    const std::vector<char*> envp = pointers(env);
    ::execve(path.c_str(), argv.data(), envp.data());
    return execution_error(errno, path);
}

Error execution_error(int code, const std::string& path) {
    Error error = exec_error(code, path);
    if (code == ENOENT)
        error.hint =
            "the file is there, so its interpreter or dynamic loader is missing from the root file system; in a script "
            "with line ends of Windows' (CR LF) the CR is a part of the interpreter's name";
    if (code == ENOEXEC) error.hint = "the file is not a program for this machine, and has no #! line";
    return error;
}

Result<void> execute_program(ChildContext& context) {
    if (context.process().pauses_before_exec) kBeforeExec.wait();
    return execute(context.program, context.process().args, context.env);
}

Actions tell_exec(const ChildRequest& request) { return {join(request.process.args, " ")}; }

bool inherits_scheduler(const ChildRequest& request) {
    return request.process.scheduler && is_inherited(*request.process.scheduler);
}

bool sets_scheduler_inside(const ChildRequest& request) {
    return request.process.scheduler && !is_inherited(*request.process.scheduler);
}

// These would bind the one that clones: it holds a descriptor more, and is a process more. One that cannot be raised is
// no tighter than what there is, and somebody has to warn of it.
static Result<bool> waits_for_clone(const ResourceLimit& wanted) {
    if (wanted.resource != RLIMIT_NPROC && wanted.resource != RLIMIT_NOFILE) return false;
    rlimit current{};
    if (::getrlimit(__rlimit_resource(wanted.resource), &current) != 0) return errno_error(wanted.name);
    return wanted.limit.rlim_max <= current.rlim_max;
}

// Decided once: asked again, the kernel could answer otherwise, and a limit would be set by nobody.
Result<void> set_inherited_rlimits(ChildContext& context) {
    std::vector<ResourceLimit> inherited;
    for (const ResourceLimit& wanted : context.process().rlimits)
        (TRY(waits_for_clone(wanted)) ? context.rlimits_inside : inherited).push_back(wanted);
    return apply_rlimits(inherited);
}

// The change of user may have made it dumpable, where the host's fs.suid_dumpable says so.
Result<void> hide_and_take_streams(ChildContext& context) {
    if (::prctl(PR_SET_DUMPABLE, 0) != 0) return errno_error("set dumpable");
    return take_streams(context.setup);
}

Actions tell_streams(const ChildRequest&) { return {"not dumpable, with the payload's streams"}; }

bool has_start_hooks(const ChildRequest& request) {
    return request.plan != nullptr && !request.plan->hooks.start_container.empty();
}

// To load a filter without no_new_privs, and to take a deadline; and, where hooks run before that, to keep them from
// taking these over. Nothing else is left to do that needs any.
uint64_t kept_capabilities(const ChildRequest& request) {
    uint64_t kept = 0;
    if (filters<FilterTime::before_capabilities>(request)) kept |= capability_bit("CAP_SYS_ADMIN").value_or(0);
    if (sets_scheduler_inside(request)) kept |= capability_bit("CAP_SYS_NICE").value_or(0);
    if (kept != 0 && has_start_hooks(request)) kept |= capability_bit("CAP_SETPCAP").value_or(0);
    return kept;
}

Result<void> set_waiting_capabilities(ChildContext& context) {
    const uint64_t kept = kept_capabilities(context.request) & TRY(own_permitted_capabilities());
    CapabilitySets sets = context.process().capabilities;
    sets.effective |= kept;
    sets.permitted |= kept;
    return apply_capabilities(sets);
}

Actions tell_waiting_capabilities(const ChildRequest& request) {
    Actions actions = tell_capabilities(request);
    if (const uint64_t kept = kept_capabilities(request)) actions.push_back(concat("and, until execve, ", hex(kept)));
    return actions;
}

bool keeps_capabilities(const ChildRequest& request) { return kept_capabilities(request) != 0; }

Result<void> start_session_inside(ChildContext& context) {
    TRY(depend_on_parent(context.handshake.channel()));
    context.host_pid = TRY(context.handshake.await_go()).pid;
    if (::setsid() < 0) return errno_error("setsid");
    return {};
}

Result<void> claim_terminal_inside(ChildContext&) { return claim_terminal(STDIN_FILENO); }

Actions tell_claimed_terminal(const ChildRequest&) { return {"make it the session's own"}; }

}  // namespace pinfold
