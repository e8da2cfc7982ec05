// The default root of a sandbox: this machine's own programs and libraries, and nothing else of it.
#pragma once

#include <string>
#include <vector>

#include "kernel/made_root.hpp"
#include "pinfold/sandbox.hpp"
#include "pinfold/spec.hpp"
#include "pinfold/unique_fd.hpp"

namespace pinfold {

struct HostRoot {
    Skeleton skeleton;
    std::vector<Mount> mounts;      // read-only
    std::vector<UniqueFd> sources;  // of those that are named by number
};

// `user` gets the name "sandbox". With a network the machine's name servers are known too.
HostRoot plan_host_root(const User& user, Network network);

// Its parts, for other roots: a path of the machine, read-only; and the files of /etc that say who is who.
Mount shown(const std::string& path);
void add_names(HostRoot& root, const User& user, Network network);

}  // namespace pinfold
