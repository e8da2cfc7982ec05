// Who the payload is: user, groups, keyring, and the promise of no new privileges.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "kernel/id_maps.hpp"
#include "pinfold/result.hpp"

namespace pinfold {

struct Identity {
    uid_t uid = 0;
    gid_t gid = 0;
    std::vector<gid_t> groups;
    bool set_groups = true;  // false where the user namespace denies setgroups
};

// In a user namespace that was just entered, with all capabilities over it but an id that it may not know: files that
// we make need an owner that it can name. Sets the parent-death signal again.
Result<void> become_namespace_root(const IdMaps& maps);

// Keeps the permitted capabilities across the change; apply_capabilities() decides on them afterwards.
Result<void> change_identity(const Identity& identity);

// A session keyring of the container's own, so that it does not share its caller's keys.
// The remedy, besides more keys, for the hint: ", or ...".
Result<void> join_new_keyring(const std::string& name, std::string_view remedy);

Result<void> forbid_new_privileges();

}  // namespace pinfold
