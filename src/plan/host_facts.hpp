// What a plan depends on besides the config: facts about this host and this caller, gathered once.
#pragma once

#include <sys/types.h>

#include <cstdint>

#include "cgroup/host.hpp"

namespace pinfold {

struct HostFacts {
    uid_t uid = 0;
    gid_t gid = 0;
    uint64_t capabilities = 0;  // permitted, of pinfold itself
    CgroupHost cgroup;
    uid_t binary_owner = 0;  // of /proc/self/exe
    mode_t binary_mode = 0;

    bool initial_user_namespace = true;

    // Root in the user namespace that pinfold was called in, which need not be the host's.
    bool is_root() const { return uid == 0; }
    // Cannot make device nodes, and often no cgroups either.
    bool is_rootless() const { return !is_root() || !initial_user_namespace; }
};

Result<HostFacts> gather_host_facts();

}  // namespace pinfold
