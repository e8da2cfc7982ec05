// Where this host keeps its cgroup hierarchies.
#pragma once

#include <string>

#include "cgroup/systemd_host.hpp"
#include "pinfold/result.hpp"
#include "pinfold/spec.hpp"

namespace pinfold {

struct CgroupHost {
    std::string mount;          // "/sys/fs/cgroup" or "/sys/fs/cgroup/unified"; empty: cgroup v2 is mounted at neither
    bool hybrid = false;        // v1 hierarchies beside it hold (some of) the controllers
    bool writable = true;       // this process may make groups, at the top or below `home`
    StringMap legacy{};         // cgroup v1: controllers, each with the mount of its hierarchy
    std::string controllers{};  // of cgroup v2, as cgroup.controllers lists them; known only where v1 has some as well
    std::string home{};         // in cgroup v2, "/user.slice/...": all that a normal user may write to; empty: the top
    SystemdHost systemd{};      // looked for only where it is asked for

    bool mounts_any() const { return !mount.empty() || !legacy.empty(); }
};

Result<CgroupHost> find_cgroup_host();

}  // namespace pinfold
