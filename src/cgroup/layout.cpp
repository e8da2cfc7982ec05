// Where this host keeps its cgroup v2 hierarchy. Two statfs() calls at most: reading mountinfo would cost more
// than all other questions that a start asks, and every distribution mounts it at one of these two places.
#include "cgroup/layout.hpp"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/vfs.h>
#include <unistd.h>

namespace pinfold {

namespace {

constexpr const char* kPure = "/sys/fs/cgroup";
constexpr const char* kHybrid = "/sys/fs/cgroup/unified";

bool is_cgroup2(const char* path) {
    struct statfs info {};
    return ::statfs(path, &info) == 0 && info.f_type == CGROUP2_SUPER_MAGIC;
}

}  // namespace

CgroupHost find_cgroup_host() {
    CgroupHost host;
    if (is_cgroup2(kPure)) host.mount = kPure;
    else if (is_cgroup2(kHybrid)) host.mount = kHybrid;
    host.hybrid = host.mount == kHybrid;
    host.writable = !host.mount.empty() && ::faccessat(AT_FDCWD, host.mount.c_str(), W_OK, AT_EACCESS) == 0;
    return host;
}

}  // namespace pinfold
