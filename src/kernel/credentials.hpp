// Who the payload is: user, groups, keyring, and the promise of no new privileges.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "pinfold/result.hpp"

namespace pinfold {

struct Identity {
    uid_t uid = 0;
    gid_t gid = 0;
    std::vector<gid_t> groups;
    bool set_groups = true;  // false where the user namespace denies setgroups
};

// Keeps the permitted capabilities across the change; apply_capabilities() decides on them afterwards.
Result<void> change_identity(const Identity& identity);

// A session keyring of the container's own, so that it does not share its caller's keys.
Result<void> join_new_keyring(const std::string& name);

Result<void> forbid_new_privileges();

// "/root" from the container's /etc/passwd, "/" where it says nothing. Call it as the user itself.
std::string home_directory(uid_t uid);

}  // namespace pinfold
