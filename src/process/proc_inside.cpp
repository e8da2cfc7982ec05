// A proc file system for a pid namespace that the process which mounts it is not in. Linux 6.18 takes the namespace as
// an option. On older kernels proc shows the namespace of who makes it, so somebody has to go there for it: a process
// that has an empty root, no descriptor but a socket, and no right but to mount.
#include "process/proc_inside.hpp"

#include <linux/magic.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/statfs.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "base/process.hpp"
#include "kernel/capabilities.hpp"
#include "kernel/namespaces.hpp"
#include "kernel/rootfs.hpp"
#include "process/spawn.hpp"

namespace pinfold {

namespace {

// In a user namespace the kernel mounts proc only for who has one in sight already. There it is enough that the process
// is not dumpable: that keeps off whoever has rights over no more than the namespace.
Result<void> leave_all_files() {
    if (!TRY(in_initial_user_namespace())) return {};
    if (::unshare(CLONE_NEWNS) != 0) return errno_error("unshare");
    TRY(isolate_mounts({}));
    UniqueFd nothing = TRY(make_filesystem({.type = "tmpfs", .source = "tmpfs"}));
    const RootFd empty = TRY(attach_root(std::move(nothing)));
    return enter_root(empty, {.readonly = true});
}

Result<void> mount_and_send(const FilesystemRequest& request, const Channel& channel) {
    TRY(depend_on_parent(channel));
    if (!TRY(channel.receive())) return plain_error("the parent is gone");
    if (::getpid() == 1) return plain_error("the joined pid namespace has no process yet, and would end with this one");
    const UniqueFd mount = TRY(make_filesystem(request));
    return channel.send(Message::mount, 0, mount.get());
}

// Who we are: root of the container's namespaces, all of the host's in reach; then, in the clone, nobody with one
// right.
Result<void> go_inside(int pid_namespace, const FilesystemRequest& request, const Channel& channel) {
    TRY(depend_on_parent(channel));
    if (::prctl(PR_SET_DUMPABLE, 0) != 0) return errno_error("set dumpable");
    TRY(leave_all_files());
    if (::setns(pid_namespace, CLONE_NEWPID) != 0) return errno_error("join the pid namespace");
    const uint64_t right = capability_bit("CAP_SYS_ADMIN").value_or(0);
    TRY(apply_capabilities({.effective = right, .permitted = right}));
    TRY(close_all_but(std::array{channel.fd()}, 0));
    return clone_as_sibling(0, channel, [&] {
        const Result<void> sent = mount_and_send(request, channel);
        if (!sent) channel.send_failure(sent.error());
        ::_exit(sent ? 0 : 1);
    });
}

Result<UniqueFd> make_proc_inside(int pid_namespace, const FilesystemRequest& request) {
    std::pair<Channel, Channel> ends = TRY(Channel::make_pair());
    int pidfd = -1;
    const pid_t pid = TRY(clone_into(0, -1, pidfd));
    if (pid == 0) {
        ends.first.close();
        const Result<void> gone = go_inside(pid_namespace, request, ends.second);
        if (!gone) ends.second.send_failure(gone.error());
        ::_exit(gone ? 0 : 1);
    }
    const ChildGuard guard(pid);
    const UniqueFd held(pidfd);
    ends.second.close();
    const Child inside = TRY(expect_born(ends.first, pidfd));
    TRY(ends.first.send(Message::go));
    UniqueFd mount = TRY(expect(ends.first, Message::mount)).fd;
    // Whoever lives there may have spoken in its place.
    struct statfs info {};
    if (::fstatfs(mount.get(), &info) != 0 || info.f_type != PROC_SUPER_MAGIC)
        return plain_error("what was mounted in the joined pid namespace is no proc file system");
    return mount;
}

}  // namespace

Result<UniqueFd> make_proc_of(int pid_namespace, const FilesystemRequest& request) {
    FilesystemRequest with_namespace = request;
    with_namespace.options.push_back({.key = "pidns", .fd = pid_namespace});
    Result<UniqueFd> mount = make_filesystem(with_namespace);
    if (mount || mount.error().code != EINVAL) return mount;
    return make_proc_inside(pid_namespace, request);
}

}  // namespace pinfold
