// Where this host keeps its cgroup hierarchies, and systemd its slices in them.
#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>

#include "pinfold/result.hpp"
#include "pinfold/spec.hpp"

namespace pinfold {

struct SystemdHost {
    bool running = false;
    bool user = false;  // the caller's own manager, not the system's
    std::string top;    // the group that the manager's slices lie in: empty, or ".../user@1000.service"
};

struct CgroupHost {
    std::string mount;          // "/sys/fs/cgroup" or "/sys/fs/cgroup/unified"; empty: cgroup v2 is mounted at neither
    bool hybrid = false;        // v1 hierarchies beside it hold (some of) the controllers
    bool writable = true;       // this process may make groups, at the top or below `home`
    StringMap v1{};             // controllers of cgroup v1, each with the mount of its hierarchy
    std::string controllers{};  // of cgroup v2, as cgroup.controllers lists them; known only where v1 has some as well
    std::string home{};         // in cgroup v2, "/user.slice/...": all that a normal user may write to; empty: the top
    SystemdHost systemd{};      // looked for only where it is asked for

    bool mounts_any() const { return !mount.empty() || !v1.empty(); }
};

Result<CgroupHost> find_cgroup_host();

// `user`: the caller is not root on this host, so its own manager is meant.
SystemdHost find_systemd_host(bool user);

// The pure parts of that, from the texts of /proc/1/cgroup and /proc/self/uid_map.
std::string system_manager_top(std::string_view group_of_init);
std::string user_manager_top(std::string_view system_top, uid_t uid);
uid_t uid_on_host(std::string_view uid_map, uid_t uid);

}  // namespace pinfold
