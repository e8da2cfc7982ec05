// Other runtimes, for tests, each with the words under which it can run anything on this machine.
#pragma once

#include <string>
#include <vector>

#include "harness.hpp"

namespace pinfold::integration {

struct Peer {
    std::string name;
    std::vector<std::string> command;  // empty: it is not installed
    bool has_groups = true;            // it can make cgroups here
};

std::vector<Peer> peers();

// cgroup v1 beside v2: crun uses neither then.
bool has_mixed_cgroups();

}  // namespace pinfold::integration
