// Namespaces.
#include "kernel/namespaces.hpp"

#include <fcntl.h>
#include <linux/nsfs.h>
#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>

#include "base/fs.hpp"
#include "base/strings.hpp"

#ifndef CLONE_NEWTIME
#define CLONE_NEWTIME 0x00000080
#endif

namespace pinfold {

namespace {

constexpr struct {
    uint64_t flag;
    const char* name;
} kNames[] = {
    {CLONE_NEWNS, "mount"}, {CLONE_NEWPID, "pid"},   {CLONE_NEWNET, "network"},   {CLONE_NEWUTS, "uts"},
    {CLONE_NEWIPC, "ipc"},  {CLONE_NEWUSER, "user"}, {CLONE_NEWCGROUP, "cgroup"}, {CLONE_NEWTIME, "time"},
};

Result<OpenedNamespace> open_namespace(const NamespaceToJoin& wanted) {
    UniqueFd fd = TRY(open_regular(AT_FDCWD, wanted.path));
    const int kind = ::ioctl(fd.get(), NS_GET_NSTYPE);
    if (kind < 0) return plain_error(concat(wanted.path, " is not a namespace file"));
    if (static_cast<uint64_t>(kind) != wanted.flag) {
        return plain_error(concat(wanted.path, " is a ", namespace_name(static_cast<uint64_t>(kind)), " namespace"));
    }
    return OpenedNamespace{wanted.flag, wanted.path, std::move(fd)};
}

Result<void> join(const OpenedNamespace& wanted) {
    if (::setns(wanted.fd.get(), static_cast<int>(wanted.flag)) == 0) return {};
    return errno_error(concat("join the ", namespace_name(wanted.flag), " namespace ", wanted.path));
}

}  // namespace

bool is_own_user_namespace(int fd) {
    struct stat own {
    }, other{};
    return ::stat("/proc/self/ns/user", &own) == 0 && ::fstat(fd, &other) == 0 && own.st_dev == other.st_dev &&
           own.st_ino == other.st_ino;
}

const char* namespace_name(uint64_t flag) {
    for (const auto& entry : kNames) {
        if (entry.flag == flag) return entry.name;
    }
    return "unknown";
}

Result<std::vector<OpenedNamespace>> open_namespaces(std::span<const NamespaceToJoin> wanted) {
    std::vector<OpenedNamespace> opened;
    for (const NamespaceToJoin& one : wanted) {
        opened.push_back(TRY_IN(concat("the ", namespace_name(one.flag), " namespace"), open_namespace(one)));
    }
    return opened;
}

Result<void> join_namespaces(const std::vector<OpenedNamespace>& namespaces) {
    std::vector<const OpenedNamespace*> after_user;
    const OpenedNamespace* user = nullptr;
    for (const OpenedNamespace& one : namespaces) {
        if (one.flag == CLONE_NEWUSER) {
            user = &one;
            continue;
        }
        Result<void> joined = join(one);
        if (joined) continue;
        if (joined.error().code != EPERM) return joined;
        after_user.push_back(&one);
    }
    if (user != nullptr && !is_own_user_namespace(user->fd.get())) TRY(join(*user));
    for (const OpenedNamespace* one : after_user) TRY(join(*one));
    return {};
}

Result<void> create_time_namespace(const std::map<std::string, ClockOffset>& offsets) {
    if (::unshare(CLONE_NEWTIME) != 0) return errno_error("create the time namespace");
    if (offsets.empty()) return {};
    std::string lines;
    for (const auto& [clock, offset] : offsets) {
        lines += concat(clock, " ", offset.seconds, " ", offset.nanoseconds, "\n");
    }
    return write_file_at(AT_FDCWD, "/proc/self/timens_offsets", lines);
}

Result<bool> in_initial_user_namespace() {
    constexpr ino_t kInitialUserNamespace = 0xEFFFFFFD;  // fixed by the kernel
    struct stat own {};
    if (::stat("/proc/self/ns/user", &own) == 0) return own.st_ino == kInitialUserNamespace;
    const Error error = errno_error("stat /proc/self/ns/user");
    TRY(require_proc());
    return error.code == ENOENT ? Result<bool>(false) : error;  // a kernel without user namespaces
}

Result<void> bring_loopback_up() {
    const UniqueFd socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    if (!socket) return errno_error("socket");
    ifreq request{};
    std::strcpy(request.ifr_name, "lo");
    request.ifr_flags = IFF_UP | IFF_RUNNING;
    if (::ioctl(socket.get(), SIOCSIFFLAGS, &request) != 0) return errno_error("bring the interface lo up");
    return {};
}

}  // namespace pinfold
