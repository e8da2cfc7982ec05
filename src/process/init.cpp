// The child: from the clone to execve. Everything here was decided in the plan; what is left is to do it, in order.
#include "process/init.hpp"

#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <utility>

#include "base/log.hpp"
#include "base/strings.hpp"
#include "kernel/masked_paths.hpp"
#include "kernel/selinux.hpp"
#include "kernel/terminal.hpp"
#include "process/entry.hpp"
#include "process/hooks.hpp"
#include "process/keeper.hpp"
#include "process/payload.hpp"
#include "process/proc_inside.hpp"
#include "process/step.hpp"

namespace pinfold {

namespace {

Result<void> start_session(InitContext& context) {
    const std::optional<Packet> go = TRY(context.channel.receive());
    if (!go) return plain_error("the parent is gone");
    context.host_pid = go->pid;
    if (::setsid() < 0) return errno_error("setsid");
    ::umask(0);  // modes below are exact; the payload's umask is set with its user
    return {};
}

// Who we are: the caller's uid, unknown in the new namespace, with all capabilities in it.
Result<void> enter_user_namespace(const IdMaps& maps) {
    if (!maps.deny_setgroups && ::setgroups(0, nullptr) != 0) return errno_error("drop the caller's groups");
    return become_namespace_root(maps);
}

Result<void> create_late_namespaces(uint64_t flags) {
    if (::unshare(static_cast<int>(flags)) != 0) return errno_error("unshare");
    return {};
}

Result<void> join_keyring(const Plan& plan) {
    return join_new_keyring(plan.keyring, plan.keeper
                                              ? ", or use a profile that forbids keyctl, add_key and request_key"
                                              : ", or use --no-new-keyring");
}

Result<void> set_hostname(const std::string& name) {
    if (::sethostname(name.c_str(), name.size()) != 0) return errno_error(concat("set ", quoted(name)));
    return {};
}

Result<void> set_domainname(const std::string& name) {
    if (::setdomainname(name.c_str(), name.size()) != 0) return errno_error(concat("set ", quoted(name)));
    return {};
}

// Each mount is a descriptor until it is placed, and there may be more than the caller's limit allows. The payload gets
// that limit all the same.
class ManyDescriptors {
public:
    explicit ManyDescriptors(size_t mounts) {
        constexpr size_t kFew = 500;
        if (mounts <= kFew || ::getrlimit(RLIMIT_NOFILE, &before_) != 0) return;
        const rlimit most{before_.rlim_max, before_.rlim_max};
        raised_ = ::setrlimit(RLIMIT_NOFILE, &most) == 0;
    }
    ManyDescriptors(const ManyDescriptors&) = delete;
    ManyDescriptors& operator=(const ManyDescriptors&) = delete;
    ~ManyDescriptors() {
        if (raised_) ::setrlimit(RLIMIT_NOFILE, &before_);
    }

private:
    rlimit before_{};
    bool raised_ = false;
};

// Before all other mounts, as their numbers tell: some programs take the first of the list for the root.
Result<UniqueFd> open_root(const RootRequest& request, UniqueFd tree) {
    if (!tree && request.uses_path()) tree = TRY(clone_source(request.path, true));
    if (request.made && !request.made->over_directory) return make_root(*request.made, std::move(tree));
    return tree;
}

// Over its own directory, so that all paths of the host lead where they do without a container: over "/" it would be
// what "/usr/.." leads to, and a hook of the host's that is reached so would be a program of the image. Over "/" only
// where it has no directory, or none that we can reach, where the host would see the mount, and where it is not
// pivoted: whoever climbs out of a chroot has to be in it again.
Result<RootFd> place_root(const RootRequest& request, UniqueFd tree) {
    if (request.made && request.made->over_directory) tree = TRY(make_root(*request.made, std::move(tree)));
    const bool over_itself = !request.made && request.pivot && request.propagation != MS_SHARED;
    const UniqueFd place(over_itself ? ::open(request.path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC) : -1);
    if (!place) return attach_root(std::move(tree));
    TRY(change_mount(tree.get(), MountChange{.propagation = MS_PRIVATE}, true));
    TRY_IN("attach it to its directory", place_mount(tree.get(), place.get()));
    return RootFd(std::move(tree));
}

// The processes that proc shows are those of the pid namespace that is still to be entered, if there is one.
Result<UniqueFd> prepare_one(const MountRequest& request, int pid_namespace) {
    const bool is_proc = request.kind == MountRequest::Kind::filesystem && request.filesystem.type == "proc";
    return is_proc && pid_namespace >= 0 ? make_proc_of(pid_namespace, request.filesystem) : prepare_mount(request);
}

// All that the parent has not opened.
Result<void> prepare_mounts(const std::vector<MountRequest>& requests, InitContext& context) {
    std::vector<UniqueFd>& mounts = context.trees.mounts;
    for (size_t i = 0; i < requests.size(); ++i) {
        if (!mounts[i]) mounts[i] = TRY_IN(requests[i].label, prepare_one(requests[i], context.pid_namespace.get()));
    }
    return {};
}

Result<void> place_mounts(const RootFd& root, const std::vector<MountRequest>& requests, std::vector<UniqueFd> mounts) {
    for (size_t i = 0; i < requests.size(); ++i)
        TRY_IN(requests[i].label, apply_mount(root, requests[i], std::exchange(mounts[i], UniqueFd())));
    return {};
}

Result<void> set_up_terminal(const RootFd& root, const ProcessPlan& process, const InitContext& context) {
    const Pty pty = TRY(open_container_pty(root.get()));
    TRY(bind_console(root, pty.slave.get()));
    TRY(hand_over_terminal(pty, process.identity.uid, context.outfit, context.channel));
    return context.pid_namespace ? place_terminal(pty.slave.get()) : attach_terminal(pty.slave.get());
}

// Before the root changes: the hooks' paths are the host's, and what they add to the mounts is still masked below.
Result<void> run_create_hooks(const Plan& plan, const InitContext& context) {
    if (!plan.hooks.prestart.empty() || !plan.hooks.create_runtime.empty()) {
        TRY(context.channel.send(Message::mounted));
        if (!TRY(context.channel.receive())) return plain_error("the parent is gone");
    }
    if (plan.hooks.create_container.empty()) return {};
    return run_hooks("createContainer", plan.hooks.create_container,
                     hook_state(*context.record, Status::created, context.host_pid));
}

// As part of start, inside, as the payload's user.
Result<void> run_start_hooks(const Plan& plan, const InitContext& context) {
    if (plan.hooks.start_container.empty()) return {};
    return run_hooks("startContainer", plan.hooks.start_container,
                     hook_state(*context.record, Status::created, context.host_pid));
}

// Of all descriptors from `place` on: the start socket, there, and the channel, right after it.
Result<void> keep_only(InitContext& context, int place) {
    const int socket = ::fcntl(context.start_socket.get(), F_DUPFD_CLOEXEC, place + 2);
    const int channel = ::fcntl(context.channel.fd(), F_DUPFD_CLOEXEC, place + 2);
    if (socket < 0 || channel < 0) return errno_error("move descriptors");
    context.start_socket.reset();  // before its number, or the channel's, is used again
    context.channel.close();
    if (::dup3(socket, place, O_CLOEXEC) < 0) return errno_error("keep the start socket");
    if (::dup3(channel, place + 1, O_CLOEXEC) < 0) return errno_error("keep the channel");
    context.channel = Channel(UniqueFd(place + 1));
    if (::close_range(static_cast<unsigned>(place) + 2, UINT_MAX, 0) != 0) return errno_error("close_range");
    return {};
}

// A created container: it holds no descriptor but its streams, the preserved ones and the socket on which `start`
// will speak to it, so that nothing of the host's can be reached through it, however long it waits.
Result<void> await_start(const ProcessPlan& process, InitContext& context) {
    const int place = static_cast<int>(3 + process.preserve_fds);
    stop_logging();
    TRY(keep_only(context, place));
    TRY(context.channel.send(Message::created));
    context.channel.close();  // which the parent waits for: from here on there is no more than it may find
    int connection = -1;
    while ((connection = ::accept4(place, nullptr, nullptr, SOCK_CLOEXEC)) < 0) {
        if (errno != EINTR) return errno_error("wait for start");
    }
    context.channel = Channel(UniqueFd(connection));
    return {};
}

// Still the caller's credentials, or the namespace's root; all of the host's file system in view.
Result<void> enter_namespaces(const Plan& plan, InitContext& context) {
    TRY(take_step(Step::session, [&] { return start_session(context); }));
    if (plan.id_maps) TRY(take_step(Step::enter_user_namespace, [&] { return enter_user_namespace(*plan.id_maps); }));
    if (const uint64_t late = plan.namespaces.create_in_child) {
        TRY(take_step(Step::late_namespaces, [&] { return create_late_namespaces(late); }));
    }
    if (plan.namespaces.creates(CLONE_NEWNET)) TRY(take_step(Step::loopback, bring_loopback_up));
    const std::string& label = plan.process.selinux_label;
    if (!plan.keyring.empty() && !label.empty()) TRY_IN("SELinux", set_context_for_keys(label, context.host_pid));
    if (!plan.keyring.empty()) TRY(take_step(Step::keyring, [&] { return join_keyring(plan); }));
    if (!plan.hostname.empty()) TRY(take_step(Step::hostname, [&] { return set_hostname(plan.hostname); }));
    if (!plan.domainname.empty()) TRY(take_step(Step::domainname, [&] { return set_domainname(plan.domainname); }));
    return {};
}

// Hooks bring network devices in, for which there may be settings.
Result<void> complete_environment(const Plan& plan, const InitContext& context) {
    TRY(take_step(Step::create_hooks, [&] { return run_create_hooks(plan, context); }));
    TRY(take_step(Step::sysctl, [&] { return apply_sysctls(plan.sysctls); }));
    return confine(plan.process, context.host_pid);
}

// Ends with the host's file system out of reach.
Result<void> enter_file_system(const Plan& plan, InitContext& context) {
    TRY(take_step(Step::mount_namespace, [&] { return isolate_mounts(plan.root); }));
    const ManyDescriptors allowance(plan.mounts.size());
    OpenedTrees& trees = context.trees;
    trees.root = TRY(take_step(Step::root, [&] { return open_root(plan.root, std::move(trees.root)); }));
    TRY(take_step(Step::prepare_mounts, [&] { return prepare_mounts(plan.mounts, context); }));
    const RootFd root = TRY(take_step(Step::attach_root, [&] { return place_root(plan.root, std::move(trees.root)); }));
    TRY(take_step(Step::mounts, [&] { return place_mounts(root, plan.mounts, std::move(trees.mounts)); }));
    TRY(take_step(Step::devices, [&] { return make_devices(root, plan.devices, plan.bind_devices); }));
    TRY(take_step(Step::links, [&] { return make_links(root, plan.links); }));
    TRY(complete_environment(plan, context));
    if (plan.process.terminal)
        TRY(take_step(Step::terminal, [&] { return set_up_terminal(root, plan.process, context); }));
    TRY(take_step(Step::masked_paths, [&] { return mask_paths(root, plan.masked_paths, plan.mount_label); }));
    TRY(take_step(Step::readonly_paths, [&] { return make_paths_readonly(root, plan.readonly_paths); }));
    return take_step(Step::pivot_root, [&] { return enter_root(root, plan.root); });
}

// Who changes its user is hidden from its parent, if that is no root; but here is nobody else to hide from, unless the
// namespaces are others' too.
Result<void> let_parent_look(const Plan& plan) {
    if (plan.namespaces.needs_joiner()) return {};
    if (::prctl(PR_SET_DUMPABLE, 1) != 0) return errno_error("set dumpable");
    return {};
}

// In the process that is seen by others. Returns only on failure.
Result<void> become_payload_inside(const Plan& plan, const Executable& executable, InitContext& context) {
    context.host_pid = TRY(settle_inside(plan.process, context.channel));
    if (context.start_socket) TRY(take_step(Step::await_start, [&] { return await_start(plan.process, context); }));
    TRY(take_step(Step::start_hooks, [&] { return run_start_hooks(plan, context); }));
    return execute_inside(plan.process, executable, context.outfit, context.channel);
}

Result<void> join_pid_namespace(int fd) {
    if (::setns(fd, CLONE_NEWPID) == 0) return {};
    return errno_error("join the pid namespace").with_hint("it must belong to the user namespace of the container");
}

// Others live in the pid namespace that the payload is to be in. They see nobody of us but the payload, and that only
// when all is set up (entry.hpp).
Result<void> take_over_inside(const Plan& plan, InitContext& context) {
    const ProcessPlan& process = plan.process;
    TRY(take_step(Step::clone, [&] { return join_pid_namespace(context.pid_namespace.get()); }));
    const Executable executable = TRY(become_payload_ahead(process, context.outfit));
    TRY(close_all_but(std::array{context.channel.fd(), context.start_socket.get()}, 3 + process.preserve_fds));
    TRY(take_step(Step::clone, [&] {
        return clone_as_sibling(0, context.channel, [&] {
            context.channel.send_failure(become_payload_inside(plan, executable, context).error());
        });
    }));
    ::_exit(0);
}

// Returns only on failure.
Result<void> become_payload(const Plan& plan, InitContext& context) {
    // Until the payload runs, a parent that dies takes this half-made container with it. Before all else: even a line
    // for the log can wait for a reader.
    TRY(depend_on_parent(context.channel));
    if (context.pid_namespace) wipe(context.words);  // before any of us is seen there
    TRY(enter_namespaces(plan, context));
    if (plan.new_mount_namespace()) TRY(enter_file_system(plan, context));
    else TRY(complete_environment(plan, context));
    if (context.pid_namespace) return take_over_inside(plan, context);
    if (plan.keeper && plan.keeper->waits) TRY_IN("files", await_files(context.keeper->link));
    const Executable executable = TRY(become_user(plan.process));
    TRY_IN(step_name(Step::let_go), take_streams(context.outfit));
    TRY(take_step(Step::let_go, [&] { return let_go(plan.process); }));
    if (context.start_socket) TRY(take_step(Step::await_start, [&] { return await_start(plan.process, context); }));
    TRY(take_step(Step::start_hooks, [&] { return run_start_hooks(plan, context); }));
    if (plan.keeper)
        TRY(take_step(Step::keeper,
                      [&] { return become_keeper(*plan.keeper, std::move(*context.keeper), context.channel); }));
    if (plan.process.held || (plan.seccomp && !plan.seccomp->listener_path.empty())) TRY(let_parent_look(plan));
    return execute_payload(plan.process, executable, context.outfit, context.channel);
}

}  // namespace

void run_init(const Plan& plan, InitContext context) {
    const Result<void> failed = become_payload(plan, context);
    context.channel.send_failure(failed.error());
    ::_exit(1);
}

}  // namespace pinfold
