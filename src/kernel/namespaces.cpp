// Namespaces.
#include "kernel/namespaces.hpp"

#include <fcntl.h>
#include <linux/futex.h>
#include <linux/nsfs.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <atomic>
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

// By the owner of a file that is the kernel's own: where the host's root has no id in this namespace, it is nobody's.
bool is_hosts_root() {
    struct stat info {};
    return ::stat("/proc/sys/kernel", &info) != 0 || info.st_uid == 0;
}

bool owns_mount_namespace() {
    const UniqueFd mounts(::open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC));
    const UniqueFd owner(mounts ? ::ioctl(mounts.get(), NS_GET_USERNS) : -1);  // EPERM where it is one around
    return owner && is_own_user_namespace(owner.get());
}

Error namespace_error(int code, const char* call) {
    Error error = errno_error(code, call);
    if (code == ENOSPC) error.hint = "a limit of /proc/sys/user/max_*_namespaces is reached";
    if (code == EPERM) error.hint = "new namespaces take root, or a user namespace in linux.namespaces";
    if (code == EAGAIN) error.hint = "the limit of processes is reached: pids.max of a cgroup, or RLIMIT_NPROC";
    return error;
}

namespace {

constexpr const char* kRaiseLoopback = "bring the interface lo up";

ifreq loopback_up() {
    ifreq request{};
    std::strcpy(request.ifr_name, "lo");
    request.ifr_flags = IFF_UP | IFF_RUNNING;
    return request;
}

}  // namespace

Result<void> bring_loopback_up() {
    const UniqueFd socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    if (!socket) return errno_error("socket");
    ifreq request = loopback_up();
    if (::ioctl(socket.get(), SIOCSIFFLAGS, &request) != 0) return errno_error(kRaiseLoopback);
    return {};
}

// The thread has our memory and descriptors, but for a stack of its own no more than that: it shares errno, and with it
// whatever a C library has for a thread. So it makes system calls and nothing else.
struct NetworkAhead::Work {
    int lives = 1;                // set to 0, and woken at, by the kernel when the thread has ended
    const char* call = "thread";  // the last one that it made
    long result = -ECANCELED;     // of that call; the descriptor in the end
    ifreq loopback = loopback_up();
    alignas(16) char stack[16384];

    long make(const char* name, long number, long first, long second, long third) {
        call = name;
        return result = raw_call(number, first, second, third);
    }

    void run() {
        if (make("unshare", SYS_unshare, CLONE_NEWNET, 0, 0) < 0) return;
        const long socket = make("socket", SYS_socket, AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
        if (socket < 0) return;
        if (make(kRaiseLoopback, SYS_ioctl, socket, SIOCSIFFLAGS, reinterpret_cast<long>(&loopback)) >= 0)
            make("open the network namespace", SYS_ioctl, socket, SIOCGSKNS, 0);
        raw_call(SYS_close, socket);
    }

    static int begin(void* work) {
        static_cast<Work*>(work)->run();
        return 0;
    }
};

NetworkAhead::NetworkAhead(std::unique_ptr<Work> work) : work_(std::move(work)) {}

NetworkAhead::NetworkAhead(NetworkAhead&&) noexcept = default;

Result<NetworkAhead> NetworkAhead::begin() {
    auto work = std::make_unique_for_overwrite<Work>();
    constexpr int kThread = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM;
    if (::clone(Work::begin, work->stack + sizeof work->stack, kThread | CLONE_CHILD_CLEARTID, work.get(), nullptr,
                nullptr, &work->lives) < 0)
        return namespace_error(errno, "clone");
    return NetworkAhead(std::move(work));
}

Result<UniqueFd> NetworkAhead::take() {
    const std::atomic_ref lives(work_->lives);
    while (lives.load() != 0) ::syscall(SYS_futex, &work_->lives, FUTEX_WAIT, 1, nullptr, nullptr, 0);
    const std::unique_ptr<Work> work = std::move(work_);
    if (work->result < 0) return namespace_error(static_cast<int>(-work->result), work->call);
    return UniqueFd(static_cast<int>(work->result));
}

// Its memory must not go before it.
NetworkAhead::~NetworkAhead() {
    if (work_) [[maybe_unused]]
        const Result<UniqueFd> made = take();
}

}  // namespace pinfold
