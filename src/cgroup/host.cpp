// Where this host keeps its cgroup hierarchies, and systemd its slices in them. A few statfs() calls: reading mountinfo
// would cost more than all other questions that a start asks, and every distribution mounts cgroup v2 at one of two
// places, and v1 by name.
#include "cgroup/host.hpp"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <iterator>
#include <vector>

#include "base/fs.hpp"
#include "base/strings.hpp"
#include "cgroup/control_files.hpp"

namespace pinfold {

namespace {

constexpr const char* kPure = "/sys/fs/cgroup";
constexpr const char* kHybrid = "/sys/fs/cgroup/unified";

constexpr const char* kV1Controllers[] = {"blkio",      "cpu",     "cpuacct", "cpuset",  "devices",
                                          "freezer",    "hugetlb", "memory",  "net_cls", "net_prio",
                                          "perf_event", "pids",    "rdma"};

// What is simply not there, or not for us, is an answer. Anything else is none: limits must not go by a guess.
Result<bool> answer(bool yes, const char* call, const std::string& path) {
    constexpr int kAnswers[] = {ENOENT, ENOTDIR, EACCES, EPERM, EROFS};
    if (yes || std::ranges::find(kAnswers, errno) != std::end(kAnswers)) return yes;
    return errno_error(concat(call, " ", path));
}

Result<bool> is_mounted(const std::string& path, long magic) {
    struct statfs info {};
    const bool there = TRY(answer(::statfs(path.c_str(), &info) == 0, "statfs", path));
    return there && info.f_type == magic;
}

// Controllers that share a hierarchy are links to where it is mounted: cpu -> cpu,cpuacct.
std::string follow(const std::string& path) {
    char target[PATH_MAX];
    const ssize_t size = ::readlink(path.c_str(), target, sizeof target);
    if (size <= 0) return path;
    const std::string_view name(target, size_t(size));
    return name.starts_with('/') ? std::string(name) : concat(kPure, '/', name);
}

Result<StringMap> find_v1() {
    StringMap found;
    for (const char* controller : kV1Controllers) {
        const std::string path = concat(kPure, '/', controller);
        if (TRY(is_mounted(path, CGROUP_SUPER_MAGIC))) found[controller] = follow(path);
    }
    return found;
}

Result<bool> is_writable(const std::string& path) {
    return answer(::faccessat(AT_FDCWD, path.c_str(), W_OK, AT_EACCESS) == 0, "access", path);
}

// The uppermost group around this process that somebody has given to this user: there, processes may be moved between
// groups and groups be made. Empty: none is.
Result<std::string> find_delegated(const std::string& mount) {
    const Result<std::string> own = group_of(::getpid());
    if (!own && own.error().code != 0 && own.error().code != ENOENT) return own.error();
    if (!own || own->size() < 2) return std::string();
    for (size_t end = own->find('/', 1);; end = own->find('/', end + 1)) {
        const std::string group = own->substr(0, end);
        if (TRY(is_writable(mount + group)) && TRY(is_writable(concat(mount, group, "/cgroup.procs")))) return group;
        if (end == std::string::npos) return std::string();
    }
}

// As sd_booted(3) has it.
constexpr const char* kSystemRuntime = "/run/systemd/system";

bool user_manager_runs() {
    const char* runtime = ::getenv("XDG_RUNTIME_DIR");
    return runtime != nullptr && ::access(concat(runtime, "/systemd").c_str(), F_OK) == 0;
}

// "0 1000 1": three numbers between blanks.
std::vector<uint32_t> numbers_of(std::string_view line) {
    std::vector<uint32_t> numbers;
    for (const std::string_view word : split(line, ' ')) {
        if (const auto number = parse_number<uint32_t>(word)) numbers.push_back(*number);
    }
    return numbers;
}

}  // namespace

Result<CgroupHost> find_cgroup_host() {
    CgroupHost host;
    if (TRY(is_mounted(kPure, CGROUP2_SUPER_MAGIC))) host.mount = kPure;
    else host.v1 = TRY(find_v1());
    if (host.mount.empty() && TRY(is_mounted(kHybrid, CGROUP2_SUPER_MAGIC))) host.mount = kHybrid;
    host.hybrid = host.mount == kHybrid;
    if (host.hybrid && !host.v1.empty()) {
        host.controllers = TRY(read_control(AT_FDCWD, concat(host.mount, "/cgroup.controllers")));
    }
    const std::string& top = host.mount.empty() && !host.v1.empty() ? host.v1.begin()->second : host.mount;
    host.writable = !top.empty() && TRY(is_writable(top));
    if (host.writable || host.mount.empty()) return host;
    host.home = TRY(find_delegated(host.mount));
    host.writable = !host.home.empty();
    if (host.writable) host.v1.clear();  // nobody delegates those: it would not be safe
    return host;
}

std::string system_manager_top(std::string_view group_of_init) {
    constexpr std::string_view kOwnScope = "/init.scope";
    if (group_of_init.ends_with(kOwnScope)) group_of_init.remove_suffix(kOwnScope.size());
    return group_of_init == "/" ? std::string() : std::string(group_of_init);
}

std::string user_manager_top(std::string_view system_top, uid_t uid) {
    return concat(system_top, "/user.slice/user-", uid, ".slice/user@", uid, ".service");
}

uid_t uid_on_host(std::string_view uid_map, uid_t uid) {
    for (const std::string_view line : split(uid_map, '\n')) {
        const std::vector<uint32_t> range = numbers_of(line);
        if (range.size() == 3 && uid >= range[0] && uid - range[0] < range[2]) return range[1] + (uid - range[0]);
    }
    return uid;
}

SystemdHost find_systemd_host(bool user) {
    SystemdHost host;
    host.user = user;
    host.running = ::access(kSystemRuntime, F_OK) == 0 && (!user || user_manager_runs());
    // Where other users' processes are hidden, the group is taken for the one that it is everywhere.
    const Result<std::string> init = group_of(1);
    if (init) host.top = system_manager_top(*init);
    if (!user) return host;
    const Result<std::string> map = read_file("/proc/self/uid_map");
    host.top = user_manager_top(host.top, map ? uid_on_host(*map, ::geteuid()) : ::geteuid());
    return host;
}

}  // namespace pinfold
