// Where this host keeps its cgroup v2 hierarchy.
#pragma once

#include <string>

#include "cgroup/systemd_host.hpp"

namespace pinfold {

struct CgroupHost {
    std::string mount;     // "/sys/fs/cgroup" or "/sys/fs/cgroup/unified"; empty: cgroup v2 is mounted at neither
    bool hybrid = false;   // v1 hierarchies beside it hold (some of) the controllers
    bool writable = true;  // this process may make groups at the top
    SystemdHost systemd;   // looked for only where it is asked for
};

CgroupHost find_cgroup_host();

}  // namespace pinfold
