// The last steps of a process on its way to becoming a payload.
#include "process/payload.hpp"

#include <fcntl.h>
#include <linux/close_range.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>

#include "base/fs.hpp"
#include "base/log.hpp"
#include "base/strings.hpp"
#include "kernel/apparmor.hpp"
#include "kernel/fd_passing.hpp"
#include "kernel/safe_path.hpp"
#include "kernel/selinux.hpp"
#include "kernel/syscalls.hpp"
#include "kernel/users.hpp"
#include "process/child_memory.hpp"
#include "process/entry.hpp"
#include "process/executable.hpp"
#include "process/listener.hpp"
#include "process/step.hpp"

namespace pinfold {

namespace {

constexpr WaitingWord gate(WaitingWord::kGate);  // with all rights restricted and the program still to be executed

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

// As root, since the payload's user may be given a directory that it could not enter itself. False: as the user then.
Result<bool> enter_cwd(const std::string& path) {
    Result<void> entered = change_directory(path);
    if (!entered && entered.error().code == ENOENT) {
        TRY(make_directories(path));
        entered = change_directory(path);
    }
    if (entered) return true;
    if (entered.error().code == EACCES) return false;
    return std::move(entered).error();
}

Result<void> change_user(const ProcessPlan& process, bool in_cwd) {
    ::umask(process.umask.value_or(0022));
    TRY(change_identity(process.identity));
    if (!in_cwd) TRY_IN("cwd", change_directory(process.cwd));
    return {};
}

Result<void> load_filter(const ProcessPlan& process, const SeccompFilter& filter, const ListenerOffer& listener) {
    if (!process.no_new_privileges) TRY(raise_permitted_capabilities());
    return load_with_listener(filter, listener);
}

Result<void> restrict_rights(const ProcessPlan& process, const std::optional<SeccompFilter>& filter,
                             const ListenerOffer& listener) {
    const auto take = [&](Step step) -> Result<void> {
        switch (step) {
            case Step::no_new_privileges:
                return process.no_new_privileges ? take_step(step, forbid_new_privileges) : Result<void>();
            case Step::landlock:
                if (!process.landlock) return {};
                return take_step(step, [&] { return enter_landlock(*process.landlock, 3 + process.preserve_fds); });
            case Step::capabilities: return take_step(step, [&] { return apply_capabilities(process.capabilities); });
            case Step::seccomp:
                if (!filter) return {};
                return take_step(step, [&] { return load_filter(process, *filter, listener); });
            default: return plain_error("no step of these");
        }
    };
    for (const Step step : restrictions(process.no_new_privileges)) TRY(take(step));
    return {};
}

// Who waits holds nothing that others wait to see closed: the parent may die meanwhile, and with it its end of a link,
// or a lock.
Result<void> hold_only(const Channel& channel, unsigned first) {
    return close_all_but(std::array{channel.fd()}, first);
}

// A deadline cannot be cloned, and who asks for that loses all of it with the clone.
bool is_inherited(const SchedulerRequest& request) {
    constexpr uint32_t kDeadline = 6;
    constexpr uint64_t kResetOnFork = 1;
    return request.policy != kDeadline && (request.flags & kResetOnFork) == 0;
}

// These would bind the one that clones: it holds a descriptor more, and is a process more. One that cannot be raised is
// no tighter than what there is, and somebody has to warn of it.
bool waits_for_clone(const ResourceLimit& wanted) {
    if (wanted.resource != RLIMIT_NPROC && wanted.resource != RLIMIT_NOFILE) return false;
    rlimit current{};
    return ::getrlimit(__rlimit_resource(wanted.resource), &current) == 0 && wanted.limit.rlim_max <= current.rlim_max;
}

// To load a filter without no_new_privs, and to take a deadline. Nothing else is left to do that needs any.
uint64_t kept_capabilities(const ProcessPlan& process, const std::optional<SeccompFilter>& filter) {
    uint64_t kept = 0;
    if (filter && !process.no_new_privileges) kept |= capability_bit("CAP_SYS_ADMIN").value_or(0);
    if (process.scheduler && !is_inherited(*process.scheduler)) kept |= capability_bit("CAP_SYS_NICE").value_or(0);
    return kept;
}

Result<void> restrict_rights_ahead(const ProcessPlan& process, const std::optional<SeccompFilter>& filter) {
    if (process.no_new_privileges) TRY(take_step(Step::no_new_privileges, forbid_new_privileges));
    else if (process.landlock) TRY(take_step(Step::landlock, raise_permitted_capabilities));
    if (process.landlock)
        TRY(take_step(Step::landlock, [&] { return enter_landlock(*process.landlock, 3 + process.preserve_fds); }));
    const uint64_t kept = kept_capabilities(process, filter) & TRY(own_permitted_capabilities());
    CapabilitySets sets = process.capabilities;
    sets.effective |= kept;
    sets.permitted |= kept;
    return take_step(Step::capabilities, [&] { return apply_capabilities(sets); });
}

Result<void> restrict_rest(const ProcessPlan& process, const std::optional<SeccompFilter>& filter,
                           const ListenerOffer& listener) {
    const bool privileged = filter && !process.no_new_privileges;
    if (privileged) TRY(take_step(Step::seccomp, [&] { return load_with_listener(*filter, listener); }));
    if (kept_capabilities(process, filter) != 0)
        TRY(take_step(Step::capabilities, [&] { return apply_capabilities(process.capabilities); }));
    if (filter && !privileged) TRY(take_step(Step::seccomp, [&] { return load_with_listener(*filter, listener); }));
    return {};
}

// Of the faults the peer alone is to hold: when it ends, so does the wait.
Result<Readiness> announce(const ProcessPlan& process, const Outfit& outfit, const Channel& channel) {
    const bool waits = process.held || has_listener(outfit.filter);
    if (waits) TRY(hold_only(channel, 3 + process.preserve_fds));
    const UniqueFd faults = waits ? open_faults() : UniqueFd();
    Readiness readiness{.listener = TRY_IN("seccomp listener", offer_listener(outfit.filter, channel.fd()))};
    if (process.held) readiness.gate.word = gate.address();
    TRY(channel.send_ready(readiness, faults.get()));
    return readiness;
}

Result<void> find_program(const ProcessPlan& process, Executable& executable) {
    if (process.args.empty()) return {};
    executable.path =
        TRY(take_step(Step::executable, [&] { return find_executable(process.args.front(), process.env); }));
    return {};
}

// In this order: the bounding set while there is CAP_SETPCAP, then the user.
Result<Executable> change_to_user(const ProcessPlan& process) {
    const bool in_cwd = TRY(take_step(Step::cwd, [&] { return enter_cwd(process.cwd); }));
    if (process.personality) TRY(take_step(Step::personality, [&] { return apply_personality(*process.personality); }));
    if (process.scheduler) TRY(take_step(Step::scheduler, [&] { return apply_scheduler(*process.scheduler); }));
    if (process.io_priority) TRY(take_step(Step::io_priority, [&] { return apply_io_priority(*process.io_priority); }));
    if (process.memory_policy)
        TRY(take_step(Step::memory_policy, [&] { return apply_memory_policy(*process.memory_policy); }));
    TRY(take_step(Step::rlimits, [&] { return apply_rlimits(process.rlimits); }));
    TRY(take_step(Step::bounding_set, [&] { return drop_bounding_set(process.capabilities.bounding); }));
    TRY(take_step(Step::user, [&] { return change_user(process, in_cwd); }));
    Executable executable{"", process.env};
    if (process.add_home) executable.env.push_back(concat("HOME=", home_directory(process.identity.uid)));
    return executable;
}

}  // namespace

Result<void> hand_over_terminal(const Pty& pty, uid_t owner, const Outfit& outfit, const Channel& channel) {
    if (outfit.window) TRY(set_window_size(pty.master.get(), outfit.window->ws_row, outfit.window->ws_col));
    TRY(own_terminal(pty.slave.get(), owner));
    if (outfit.console_socket) TRY(send_fd(outfit.console_socket.get(), pty.master.get(), "/dev/ptmx"));
    else TRY(channel.send_terminal(pty.master.get()));
    return {};
}

Result<void> confine(const ProcessPlan& process, pid_t host_pid) {
    const std::string& profile = process.apparmor_profile;
    const std::string& label = process.selinux_label;
    if (!profile.empty()) TRY(take_step(Step::apparmor, [&] { return set_profile_for_exec(profile, host_pid); }));
    if (!label.empty()) TRY(take_step(Step::selinux, [&] { return set_context_for_exec(label, host_pid); }));
    return {};
}

Result<Executable> become_user(const ProcessPlan& process) {
    Executable executable = TRY(change_to_user(process));
    TRY(find_program(process, executable));
    return executable;
}

Result<void> take_streams(const Outfit& outfit) {
    if (outfit.streams == nullptr) return {};
    const Streams& streams = *outfit.streams;
    const std::pair<int, const UniqueFd*> places[] = {{0, &streams.in}, {1, &streams.out}, {2, &streams.err}};
    for (const auto& [number, fd] : places) {
        if (::dup2(fd->get(), number) < 0) return errno_error(concat("place descriptor ", number));
    }
    return {};
}

void reset_signals() {
    for (int number = 1; number < NSIG; ++number) ::signal(number, SIG_DFL);
    sigset_t none;
    ::sigemptyset(&none);
    ::sigprocmask(SIG_SETMASK, &none, nullptr);  // cannot fail
}

Result<void> let_go(const ProcessPlan& process) {
    if (::prctl(PR_SET_PDEATHSIG, 0) != 0) return errno_error("clear the parent-death signal");
    reset_signals();
    if (::close_range(3 + process.preserve_fds, UINT_MAX, CLOSE_RANGE_CLOEXEC) != 0) return errno_error("close_range");
    return {};
}

Result<void> execute_payload(const ProcessPlan& process, const Executable& executable, const Outfit& outfit,
                             const Channel& channel) {
    const Readiness readiness = TRY(announce(process, outfit, channel));
    TRY(restrict_rights(process, outfit.filter, readiness.listener));
    if (process.held) gate.wait();
    return in_step(Step::exec, execute(executable.path, process.args, executable.env));
}

Result<Executable> become_payload_ahead(const ProcessPlan& process, const Outfit& outfit) {
    ProcessPlan inherited = process;
    if (process.scheduler && !is_inherited(*process.scheduler)) inherited.scheduler.reset();
    std::erase_if(inherited.rlimits, waits_for_clone);
    Executable executable = TRY(change_to_user(inherited));
    // The change of user may have made it dumpable, where the host's fs.suid_dumpable says so.
    if (::prctl(PR_SET_DUMPABLE, 0) != 0) return errno_error("set dumpable");
    TRY_IN(step_name(Step::exec), take_streams(outfit));
    TRY(restrict_rights_ahead(process, outfit.filter));
    return executable;
}

Result<pid_t> settle_inside(const ProcessPlan& process, const Channel& channel) {
    TRY(depend_on_parent(channel));
    const std::optional<Packet> go = TRY(channel.receive());
    if (!go) return plain_error("the parent is gone");
    if (::setsid() < 0) return errno_error("setsid");
    if (process.terminal) TRY(take_step(Step::terminal, [] { return claim_terminal(STDIN_FILENO); }));
    if (process.scheduler && !is_inherited(*process.scheduler))
        TRY(take_step(Step::scheduler, [&] { return apply_scheduler(*process.scheduler); }));
    TRY(take_step(Step::rlimits, [&] { return apply_rlimits(process.rlimits); }));
    TRY(take_step(Step::let_go, [&] { return let_go(process); }));
    return go->pid;
}

Result<void> execute_inside(const ProcessPlan& process, Executable executable, const Outfit& outfit,
                            const Channel& channel) {
    TRY(find_program(process, executable));
    const Readiness readiness = TRY(announce(process, outfit, channel));
    TRY(restrict_rest(process, outfit.filter, readiness.listener));
    if (process.held) gate.wait();
    return in_step(Step::exec, execute(executable.path, process.args, executable.env));
}

}  // namespace pinfold
