// The id maps of a user namespace.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "pinfold/result.hpp"
#include "pinfold/unique_fd.hpp"

namespace pinfold {

struct IdRange {
    uint32_t inside = 0;
    uint32_t outside = 0;
    uint32_t count = 0;
};

struct IdMaps {
    std::vector<IdRange> uids;
    std::vector<IdRange> gids;
    // Without privileges only the caller's own ids can be mapped directly; more takes newuidmap and newgidmap.
    bool by_helper = false;
    // The kernel asks an unprivileged writer of gid_map to give up setgroups first.
    bool deny_setgroups = false;
};

// "0 1000 1\n1 100000 65536\n": what uid_map takes.
std::string id_map_lines(const std::vector<IdRange>& ranges);

// For the user namespace of another process.
Result<void> write_id_maps(pid_t pid, const IdMaps& maps);

// A user namespace of its own with these maps and no process in it, for an id-mapped mount.
Result<UniqueFd> make_user_namespace(const IdMaps& maps);

}  // namespace pinfold
