// Ways out: mounts, roots and namespaces.
#include <fcntl.h>
#include <linux/mount.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

#include "escape.hpp"
#include "text.hpp"

namespace probe {

namespace {

long unshare_all(int flags) {
    return in_child([=] { return ::unshare(flags); });
}

std::function<long()> unsharing(int flags) {
    return [=] { return unshare_all(flags); };
}

long join(const std::string& path) {
    const int target = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (target < 0) return -1;
    const long result = in_child([=] { return ::setns(target, 0); });
    ::close(target);
    return result;
}

long clone_namespace() {
    const long child = ::syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, 0, 0, 0, 0);
    if (child == 0) ::_exit(0);
    if (child > 0) ::waitpid(static_cast<pid_t>(child), nullptr, 0);
    return child;
}

long clone3_namespace() {
    clone_args arguments{};
    arguments.flags = CLONE_NEWUSER;
    arguments.exit_signal = SIGCHLD;
    const long child = ::syscall(SYS_clone3, &arguments, sizeof arguments);
    if (child == 0) ::_exit(0);
    if (child > 0) ::waitpid(static_cast<pid_t>(child), nullptr, 0);
    return child;
}

long change_mount() {
    mount_attr attributes{};
    attributes.propagation = MS_PRIVATE;
    return ::syscall(SYS_mount_setattr, AT_FDCWD, "/", 0, &attributes, sizeof attributes);
}

bool same_directory(const struct stat& one, const struct stat& other) {
    return one.st_dev == other.st_dev && one.st_ino == other.st_ino;
}

// The old way out of a chroot: leave the working directory outside of a new root, and climb.
long climb_out() {
    struct stat before {};
    struct stat after {};
    const int root = ::open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (root < 0 || ::fstat(root, &before) != 0 || ::chroot("/proc") != 0 || ::fchdir(root) != 0) return -1;
    for (int i = 0; i < 64; ++i) {
        if (::chdir("..") != 0) return -1;
    }
    if (::stat(".", &after) != 0) return -1;
    return same_directory(before, after) ? confined() : 0;
}

// In a user namespace of its own the payload has all capabilities; what was mounted before stays as it was.
long as_root_of_ones_own(const std::function<long()>& run) {
    return in_child([&] {
        if (::unshare(CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID) != 0) return -1L;
        return in_child(run);
    });
}

long fresh_proc() {
    return as_root_of_ones_own([] { return ::mount("proc", "/proc", "proc", 0, nullptr); });
}

long fresh_sysfs() {
    return as_root_of_ones_own(
        [] { return ::unshare(CLONE_NEWNET) == 0 ? ::mount("sysfs", "/sys", "sysfs", 0, nullptr) : -1; });
}

long settings_made_writable() {
    return as_root_of_ones_own([] {
        if (::mount(nullptr, "/proc/sys", nullptr, MS_REMOUNT | MS_BIND, nullptr) != 0) return -1;
        return ::open("/proc/sys/kernel/core_pattern", O_WRONLY | O_CLOEXEC);
    });
}

long mask_lifted() {
    return as_root_of_ones_own([] {
        if (::umount2("/proc/sys", MNT_DETACH) != 0) return -1;
        return ::open("/proc/sys/kernel/core_pattern", O_WRONLY | O_CLOEXEC);
    });
}

template <class... Arguments>
std::function<long()> call(long number, Arguments... arguments) {
    return [=] { return ::syscall(number, arguments...); };
}

}  // namespace

Attempts namespace_attempts() {
    constexpr int kOpenTreeAttr = 467;
    // A mount of the outer namespace cannot be changed in an inner one (EINVAL), nor looked past (EBUSY).
    const std::vector<int> locked = {EINVAL, EBUSY, EROFS, ENOENT};
    return {
        {"mount", [] { return ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr); }},
        {"remount", [] { return ::mount(nullptr, "/proc", nullptr, MS_REMOUNT | MS_BIND, nullptr); }},
        {"umount2", [] { return ::umount2("/proc", MNT_EXPIRE); }},
        {"pivot_root", call(SYS_pivot_root, "/", "/")},
        {"chroot", [] { return in_child([] { return ::chroot("/"); }); }},
        {"chroot, and a working directory outside of it", [] { return in_child(climb_out); }, {EXDEV}},
        {"fsopen", call(SYS_fsopen, "tmpfs", FSOPEN_CLOEXEC)},
        {"fsopen of cgroups, for their release_agent", call(SYS_fsopen, "cgroup", FSOPEN_CLOEXEC), {ENODEV}},
        {"fspick", call(SYS_fspick, AT_FDCWD, "/", FSPICK_CLOEXEC)},
        {"fsmount", call(SYS_fsmount, -1, 0, 0)},
        {"open_tree", call(SYS_open_tree, AT_FDCWD, "/", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC)},
        {"open_tree_attr", call(kOpenTreeAttr, AT_FDCWD, "/", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC, nullptr, 0)},
        {"move_mount", call(SYS_move_mount, -1, "", -1, "", 0)},
        {"mount_setattr", change_mount},
        {"unshare of users", unsharing(CLONE_NEWUSER)},
        {"unshare of mounts", unsharing(CLONE_NEWNS)},
        {"unshare of processes", unsharing(CLONE_NEWPID)},
        {"unshare of the network", unsharing(CLONE_NEWNET)},
        {"unshare of groups", unsharing(CLONE_NEWCGROUP)},
        {"setns of mounts", [] { return join("/proc/self/ns/mnt"); }},
        {"setns of the network", [] { return join("/proc/self/ns/net"); }},
        {"setns of the first process's users", [] { return join("/proc/1/ns/user"); }, {EINVAL}},
        {"clone with a user namespace", clone_namespace},
        {"clone3 with a user namespace", clone3_namespace},
        {"a /proc without masks, by a user namespace", fresh_proc},
        {"a /sys that can be written, by a user namespace", fresh_sysfs},
        {"/proc/sys made writable, by a user namespace", settings_made_writable, locked},
        {"/proc/sys uncovered, by a user namespace", mask_lifted, locked},
    };
}

}  // namespace probe
