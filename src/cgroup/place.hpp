// Where a container's group is: what its record keeps, and what all later work on the group goes by.
#pragma once

#include <string>

#include "pinfold/spec.hpp"

namespace pinfold {

struct CgroupPlace {
    std::string mount;  // of cgroup v2; empty: it is not mounted
    std::string path;   // below each mount, "/pinfold/web"; empty: the container has no group of its own
    StringMap legacy;   // cgroup v1: controllers, each with the mount of its hierarchy
    std::string scope;  // the systemd unit that the group belongs to; empty: pinfold makes and removes it

    bool exists() const { return !path.empty(); }
};

}  // namespace pinfold
