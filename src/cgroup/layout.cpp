// Where this host keeps its cgroup hierarchies. A few statfs() calls: reading mountinfo would cost more than all other
// questions that a start asks, and every distribution mounts cgroup v2 at one of two places, and v1 by name.
#include "cgroup/layout.hpp"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <climits>

#include "base/strings.hpp"
#include "cgroup/control_files.hpp"
#include "cgroup/processes.hpp"

namespace pinfold {

namespace {

constexpr const char* kPure = "/sys/fs/cgroup";
constexpr const char* kHybrid = "/sys/fs/cgroup/unified";

constexpr const char* kLegacyControllers[] = {"blkio",      "cpu",     "cpuacct", "cpuset",  "devices",
                                              "freezer",    "hugetlb", "memory",  "net_cls", "net_prio",
                                              "perf_event", "pids",    "rdma"};

bool is_mounted(const char* path, long magic) {
    struct statfs info {};
    return ::statfs(path, &info) == 0 && info.f_type == magic;
}

// Controllers that share a hierarchy are links to where it is mounted: cpu -> cpu,cpuacct.
std::string follow(const std::string& path) {
    char target[PATH_MAX];
    const ssize_t size = ::readlink(path.c_str(), target, sizeof target);
    if (size <= 0) return path;
    const std::string_view name(target, size_t(size));
    return name.starts_with('/') ? std::string(name) : concat(kPure, '/', name);
}

StringMap find_legacy() {
    StringMap found;
    for (const char* controller : kLegacyControllers) {
        const std::string path = concat(kPure, '/', controller);
        if (is_mounted(path.c_str(), CGROUP_SUPER_MAGIC)) found[controller] = follow(path);
    }
    return found;
}

bool is_writable(const std::string& path) { return ::faccessat(AT_FDCWD, path.c_str(), W_OK, AT_EACCESS) == 0; }

// The uppermost group around this process that somebody has given to this user: there, processes may be moved between
// groups and groups be made. Empty: none is.
std::string find_delegated(const std::string& mount) {
    const Result<std::string> own = group_of(::getpid());
    if (!own || own->size() < 2) return {};
    for (size_t end = own->find('/', 1);; end = own->find('/', end + 1)) {
        const std::string group = own->substr(0, end);
        if (is_writable(mount + group) && is_writable(concat(mount, group, "/cgroup.procs"))) return group;
        if (end == std::string::npos) return {};
    }
}

}  // namespace

CgroupHost find_cgroup_host() {
    CgroupHost host;
    if (is_mounted(kPure, CGROUP2_SUPER_MAGIC)) host.mount = kPure;
    else host.legacy = find_legacy();
    if (host.mount.empty() && is_mounted(kHybrid, CGROUP2_SUPER_MAGIC)) host.mount = kHybrid;
    host.hybrid = host.mount == kHybrid;
    if (host.hybrid && !host.legacy.empty()) {
        const Result<std::string> list = read_control(AT_FDCWD, concat(host.mount, "/cgroup.controllers"));
        if (list) host.controllers = *list;
    }
    const std::string& top = host.mount.empty() && !host.legacy.empty() ? host.legacy.begin()->second : host.mount;
    host.writable = !top.empty() && is_writable(top);
    if (host.writable || host.mount.empty()) return host;
    host.home = find_delegated(host.mount);
    host.writable = !host.home.empty();
    if (host.writable) host.legacy.clear();  // nobody delegates those: it would not be safe
    return host;
}

}  // namespace pinfold
