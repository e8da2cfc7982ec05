// The child: from the clone to execve. Everything here was decided in the plan; what is left is to do it, in order.
#include "process/init.hpp"

#include <fcntl.h>
#include <grp.h>
#include <linux/close_range.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>

#include "base/fs.hpp"
#include "base/strings.hpp"
#include "kernel/masked_paths.hpp"
#include "kernel/syscalls.hpp"
#include "kernel/terminal.hpp"
#include "process/executable.hpp"
#include "process/step.hpp"
#include "seccomp/load.hpp"

namespace pinfold {

namespace {

// Until the payload runs, a parent that dies takes this half-made container with it.
Result<void> start_session(const Channel& channel) {
    if (::prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) return errno_error("set the parent-death signal");
    const std::optional<Packet> go = TRY(channel.receive());
    if (!go) return plain_error("the parent is gone");
    if (::setsid() < 0) return errno_error("setsid");
    ::umask(0);  // modes below are exact; the payload's umask is set with its user
    return {};
}

// 0, or some other id where the container has no root.
uint32_t id_for_set_up(const std::vector<IdRange>& ranges) {
    const bool has_root =
        std::any_of(ranges.begin(), ranges.end(), [](const IdRange& range) { return range.inside == 0; });
    return has_root ? 0 : ranges.front().inside;
}

// Who we are: the caller's uid, unknown in the new namespace, with all capabilities in it. Files that we make
// need an owner that the namespace can name.
Result<void> become_namespace_root(const IdMaps& maps) {
    if (!maps.deny_setgroups && ::setgroups(0, nullptr) != 0) return errno_error("drop the caller's groups");
    const gid_t gid = id_for_set_up(maps.gids);
    const uid_t uid = id_for_set_up(maps.uids);
    if (::setresgid(gid, gid, gid) != 0) return errno_error(concat("change to group ", gid));
    if (::setresuid(uid, uid, uid) != 0) return errno_error(concat("change to user ", uid));
    // The change of ids has cleared it.
    if (::prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) return errno_error("set the parent-death signal");
    return {};
}

Result<void> create_late_namespaces(uint64_t flags) {
    if (::unshare(static_cast<int>(flags)) != 0) return errno_error("unshare");
    return {};
}

Result<void> set_hostname(const std::string& name) {
    if (::sethostname(name.c_str(), name.size()) != 0) return errno_error(concat("set ", quoted(name)));
    return {};
}

Result<void> set_domainname(const std::string& name) {
    if (::setdomainname(name.c_str(), name.size()) != 0) return errno_error(concat("set ", quoted(name)));
    return {};
}

Result<RootFd> open_root(const RootRequest& request, UniqueFd tree) {
    if (!tree) tree = TRY(clone_tree(AT_FDCWD, request.path, true));
    return attach_root(std::move(tree));
}

Result<void> make_mounts(const RootFd& root, const std::vector<MountRequest>& requests, std::vector<UniqueFd> trees) {
    trees.resize(requests.size());
    for (size_t i = 0; i < requests.size(); ++i)
        TRY_IN(requests[i].label, apply_mount(root, requests[i], std::move(trees[i])));
    return {};
}

Result<void> set_up_terminal(const RootFd& root, const ProcessPlan& process, const InitContext& context) {
    const Pty pty = TRY(open_container_pty(root.get()));
    if (context.window) TRY(set_window_size(pty.master.get(), context.window->ws_row, context.window->ws_col));
    TRY(own_terminal(pty.slave.get(), process.identity.uid));
    TRY(bind_console(root, pty.slave.get()));
    if (context.console_socket) TRY(send_fd(context.console_socket.get(), pty.master.get(), "/dev/ptmx"));
    else TRY(context.channel.send_terminal(pty.master.get()));
    return attach_terminal(pty.slave.get());
}

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

// What the payload must not inherit: the parent-death signal, blocked and ignored signals, every descriptor that the
// caller leaked to us, and the channel, whose end tells the parent that the payload runs.
Result<void> leave_nothing_open(const ProcessPlan& process, const Channel& channel) {
    if (::prctl(PR_SET_PDEATHSIG, 0) != 0) return errno_error("clear the parent-death signal");
    for (int number = 1; number < NSIG; ++number) ::signal(number, SIG_DFL);
    sigset_t none;
    ::sigemptyset(&none);
    if (::sigprocmask(SIG_SETMASK, &none, nullptr) != 0) return errno_error("unblock signals");
    if (::close_range(3 + process.preserve_fds, UINT_MAX, CLOSE_RANGE_CLOEXEC) != 0) return errno_error("close_range");
    return channel.send(Message::ready);
}

// A filter goes on last, so that it need not allow what the set-up does. Without no_new_privs it takes CAP_SYS_ADMIN,
// which the capabilities' step may drop: then that step, and only that, comes after it.
Result<void> restrict_rights(const ProcessPlan& process, const std::optional<SeccompFilter>& filter) {
    const bool privileged = filter && !process.no_new_privileges;
    if (privileged) {
        TRY(take_step(Step::seccomp, raise_permitted_capabilities));
        TRY(take_step(Step::seccomp, [&] { return load_seccomp(*filter); }));
    }
    TRY(take_step(Step::capabilities, [&] { return apply_capabilities(process.capabilities); }));
    if (process.no_new_privileges) TRY(take_step(Step::no_new_privileges, forbid_new_privileges));
    if (filter && !privileged) TRY(take_step(Step::seccomp, [&] { return load_seccomp(*filter); }));
    return {};
}

// Still the caller's credentials, or the namespace's root; all of the host's file system in view.
Result<void> enter_namespaces(const Plan& plan, const InitContext& context) {
    TRY(take_step(Step::session, [&] { return start_session(context.channel); }));
    if (plan.id_maps) TRY(take_step(Step::enter_user_namespace, [&] { return become_namespace_root(*plan.id_maps); }));
    if (const uint64_t late = plan.namespaces.create_in_child) {
        TRY(take_step(Step::late_namespaces, [&] { return create_late_namespaces(late); }));
    }
    if (plan.namespaces.creates(CLONE_NEWNET)) TRY(take_step(Step::loopback, bring_loopback_up));
    if (!plan.keyring.empty()) TRY(take_step(Step::keyring, [&] { return join_new_keyring(plan.keyring); }));
    if (!plan.hostname.empty()) TRY(take_step(Step::hostname, [&] { return set_hostname(plan.hostname); }));
    if (!plan.domainname.empty()) TRY(take_step(Step::domainname, [&] { return set_domainname(plan.domainname); }));
    return take_step(Step::sysctl, [&] { return apply_sysctls(plan.sysctls); });
}

// Ends with the host's file system out of reach.
Result<void> enter_file_system(const Plan& plan, InitContext& context) {
    TRY(take_step(Step::mount_namespace, [&] { return isolate_mounts(plan.root); }));
    const RootFd root = TRY(take_step(Step::root, [&] { return open_root(plan.root, std::move(context.trees.root)); }));
    TRY(take_step(Step::mounts, [&] { return make_mounts(root, plan.mounts, std::move(context.trees.mounts)); }));
    TRY(take_step(Step::devices, [&] { return make_devices(root, plan.devices, plan.bind_devices); }));
    TRY(take_step(Step::links, [&] { return make_links(root, plan.links); }));
    if (plan.process.terminal)
        TRY(take_step(Step::terminal, [&] { return set_up_terminal(root, plan.process, context); }));
    TRY(take_step(Step::masked_paths, [&] { return mask_paths(root, plan.masked_paths); }));
    TRY(take_step(Step::readonly_paths, [&] { return make_paths_readonly(root, plan.readonly_paths); }));
    return take_step(Step::pivot_root, [&] { return enter_root(root, plan.root); });
}

// From root in the container to the payload's user; returns the payload's path.
Result<std::string> become_user(const ProcessPlan& process) {
    const bool in_cwd = TRY(take_step(Step::cwd, [&] { return enter_cwd(process.cwd); }));
    if (process.personality) TRY(take_step(Step::personality, [&] { return apply_personality(*process.personality); }));
    if (process.scheduler) TRY(take_step(Step::scheduler, [&] { return apply_scheduler(*process.scheduler); }));
    if (process.io_priority) TRY(take_step(Step::io_priority, [&] { return apply_io_priority(*process.io_priority); }));
    if (process.memory_policy)
        TRY(take_step(Step::memory_policy, [&] { return apply_memory_policy(*process.memory_policy); }));
    TRY(take_step(Step::rlimits, [&] { return apply_rlimits(process.rlimits); }));
    TRY(take_step(Step::bounding_set, [&] { return drop_bounding_set(process.capabilities.bounding); }));
    TRY(take_step(Step::user, [&] { return change_user(process, in_cwd); }));
    return take_step(Step::executable, [&] { return find_executable(process.args.front(), process.env); });
}

// Returns only on failure.
Result<void> become_payload(const Plan& plan, InitContext& context) {
    TRY(enter_namespaces(plan, context));
    if (plan.new_mount_namespace()) TRY(enter_file_system(plan, context));
    const std::string path = TRY(become_user(plan.process));
    std::vector<std::string> env = plan.process.env;
    if (plan.process.add_home) env.push_back(concat("HOME=", home_directory(plan.process.identity.uid)));
    TRY(take_step(Step::exec, [&] { return leave_nothing_open(plan.process, context.channel); }));
    TRY(restrict_rights(plan.process, context.filter));
    return in_step(Step::exec, execute(path, plan.process.args, env));
}

}  // namespace

void run_init(const Plan& plan, InitContext context) {
    const Result<void> failed = become_payload(plan, context);
    context.channel.send_failure(failed.error());
    ::_exit(1);
}

}  // namespace pinfold
