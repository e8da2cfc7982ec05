// Where a container's group is: what its record keeps, and what all later work on the group goes by.
#pragma once

#include <set>
#include <string>

#include "pinfold/spec.hpp"

namespace pinfold {

struct CgroupPath {
    std::string mount;  // of cgroup v2; empty: it is not mounted
    std::string path;   // below each mount, "/pinfold/web"; empty: the container has no group of its own
    StringMap v1;       // controllers of cgroup v1, each with the mount of its hierarchy
    std::string scope;  // the systemd unit that the group belongs to; empty: pinfold makes and removes it

    bool exists() const { return !path.empty(); }
};

// The mounts of cgroup v1, each once: one hierarchy may have several controllers.
inline std::set<std::string> v1_mounts(const CgroupPath& place) {
    std::set<std::string> mounts;
    for (const auto& [controller, mount] : place.v1) mounts.insert(mount);
    return mounts;
}

}  // namespace pinfold
