// Landlock.
#include "kernel/landlock.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/strings.hpp"
#include "kernel/syscalls.hpp"
#include "pinfold/unique_fd.hpp"

namespace pinfold {

namespace {

// The kernel's own, which the headers of Debian 12 have in part.
namespace right {
enum : uint64_t {  // to files
    execute = 1 << 0,
    write_file = 1 << 1,
    read_file = 1 << 2,
    read_directory = 1 << 3,
    remove_directory = 1 << 4,
    remove_file = 1 << 5,
    make_character = 1 << 6,
    make_directory = 1 << 7,
    make_file = 1 << 8,
    make_socket = 1 << 9,
    make_fifo = 1 << 10,
    make_block = 1 << 11,
    make_symlink = 1 << 12,
    refer = 1 << 13,
    truncate = 1 << 14,
    ioctl_device = 1 << 15,
};
enum : uint64_t { bind_tcp = 1 << 0, connect_tcp = 1 << 1 };
enum : uint64_t { abstract_sockets = 1 << 0 };
}  // namespace right

constexpr uint64_t kRead = right::execute | right::read_file | right::read_directory;
// Nobody makes devices.
constexpr uint64_t kWrite = right::write_file | right::remove_directory | right::remove_file | right::make_directory |
                            right::make_file | right::make_socket | right::make_fifo | right::make_symlink |
                            right::refer | right::truncate | right::ioctl_device;
constexpr uint64_t kAll = kRead | kWrite | right::make_character | right::make_block;
constexpr uint64_t kOfFiles =
    right::execute | right::write_file | right::read_file | right::truncate | right::ioctl_device;

struct RulesetAttributes {
    uint64_t files;
    uint64_t ports;
    uint64_t scopes;
};

struct [[gnu::packed]] PathRule {
    uint64_t allowed;
    int32_t parent;
};

struct PortRule {
    uint64_t allowed;
    uint64_t port;
};

constexpr int kPathRule = 1, kPortRule = 2;

int create_ruleset(const RulesetAttributes* attributes, size_t size, unsigned flags) {
    return static_cast<int>(::syscall(SYS_landlock_create_ruleset, attributes, size, flags));
}

uint64_t known_to(int abi) {
    uint64_t known = kAll;
    if (abi < 2) known &= ~right::refer;
    if (abi < 3) known &= ~right::truncate;
    if (abi < 5) known &= ~right::ioctl_device;
    return known;
}

// An older kernel takes a shorter struct.
size_t size_for(int abi) {
    if (abi < kLandlockTcp) return offsetof(RulesetAttributes, ports);
    return abi < kLandlockScopes ? offsetof(RulesetAttributes, scopes) : sizeof(RulesetAttributes);
}

class Ruleset {
public:
    static Result<Ruleset> create(const LandlockRules& rules) {
        RulesetAttributes attributes{known_to(rules.abi), 0, 0};
        if (rules.tcp_bind) attributes.ports |= right::bind_tcp;
        if (rules.tcp_connect) attributes.ports |= right::connect_tcp;
        if (rules.own_abstract_sockets) attributes.scopes = right::abstract_sockets;
        UniqueFd fd(create_ruleset(&attributes, size_for(rules.abi), 0));
        if (!fd) return errno_error("make the rules");
        return Ruleset(std::move(fd), attributes.files);
    }

    Result<void> allow(int fd, uint64_t rights, bool is_directory) const {
        const PathRule rule{rights & handled_ & (is_directory ? ~uint64_t{0} : kOfFiles), fd};
        if (rule.allowed == 0) return {};
        if (::syscall(SYS_landlock_add_rule, fd_.get(), kPathRule, &rule, 0) != 0) return errno_error("add a rule");
        return {};
    }

    Result<void> allow_ports(const LandlockRules::Ports& ports, uint64_t right) const {
        if (!ports) return {};
        for (const uint16_t port : *ports) {
            const PortRule rule{right, port};
            if (::syscall(SYS_landlock_add_rule, fd_.get(), kPortRule, &rule, 0) != 0)
                return errno_error(concat("add a rule for port ", port));
        }
        return {};
    }

    Result<void> enter() const {
        if (::syscall(SYS_landlock_restrict_self, fd_.get(), 0) != 0) return errno_error("lay the rules on ourselves");
        return {};
    }

private:
    Ruleset(UniqueFd fd, uint64_t handled) : fd_(std::move(fd)), handled_(handled) {}

    UniqueFd fd_;
    uint64_t handled_;
};

// What the payload could not reach anyway needs no rule, and neither does what is not there.
Result<void> allow_place(const Ruleset& ruleset, const LandlockRules::Place& place) {
    open_how how{};
    how.flags = O_PATH | O_CLOEXEC;
    how.resolve = RESOLVE_NO_MAGICLINKS;
    const UniqueFd fd(sys_openat2(AT_FDCWD, place.path.c_str(), how));
    if (!fd && (errno == ENOENT || errno == ENOTDIR || errno == EACCES)) return {};
    struct stat info {};
    if (!fd || ::fstat(fd.get(), &info) != 0) return errno_error(place.path);
    TRY_IN(place.path, ruleset.allow(fd.get(), place.writable ? kRead | kWrite : kRead, S_ISDIR(info.st_mode)));
    return {};
}

// /dev/stdout leads to whatever the caller has given us. Pipes and sockets are in no directory, and so under no rule.
Result<void> allow_stream(const Ruleset& ruleset, int fd) {
    struct stat info {};
    if (::fstat(fd, &info) != 0 || !(S_ISREG(info.st_mode) || S_ISCHR(info.st_mode))) return {};
    const int mode = ::fcntl(fd, F_GETFL) & O_ACCMODE;
    uint64_t rights = right::ioctl_device;
    if (mode != O_WRONLY) rights |= right::read_file;
    if (mode != O_RDONLY) rights |= right::write_file | right::truncate;
    return ruleset.allow(fd, rights, false);
}

}  // namespace

int landlock_abi() {
    constexpr unsigned kVersion = 1;
    return std::max(0, create_ruleset(nullptr, 0, kVersion));
}

Result<void> enter_landlock(const LandlockRules& rules, unsigned streams) {
    const Ruleset ruleset = TRY(Ruleset::create(rules));
    for (const LandlockRules::Place& place : rules.places) TRY(allow_place(ruleset, place));
    for (unsigned fd = 0; fd < streams; ++fd) TRY_IN(concat("descriptor ", fd), allow_stream(ruleset, int(fd)));
    TRY(ruleset.allow_ports(rules.tcp_bind, right::bind_tcp));
    TRY(ruleset.allow_ports(rules.tcp_connect, right::connect_tcp));
    return ruleset.enter();
}

}  // namespace pinfold
