// Who the payload is: user, groups, keyring, the promise of no new privileges, and its resource limits. Users by name
// are the container's own.
#pragma once

#include <sys/resource.h>
#include <sys/types.h>

#include <optional>
#include <span>
#include <string>
#include <string_view>
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

// As the container's own /etc/passwd and /etc/group have them. Call these inside: the files are its own, and are read
// with no capability in effect.
//
// "bob", "bob:staff", "1000", "1000:100". Without a group it is the user's own in /etc/passwd, with the groups that
// /etc/group lists the user in; for a number that is in no file, group 0.
Result<Identity> find_user(const std::string& text);

// "/root" for user 0, mostly; "/" where /etc/passwd says nothing.
std::string home_directory(uid_t uid);

// Resource limits of the payload.

struct ResourceLimit {
    int resource = 0;  // RLIMIT_*
    std::string name;  // "RLIMIT_NOFILE"
    rlimit limit{};
};

std::optional<int> rlimit_number(std::string_view name);

// What it is called in /proc/PID/limits.
std::string_view rlimit_title(int number);

// Parent side: lifts the hard limits that a child in a user namespace could not lift itself.
void raise_hard_limits(pid_t pid, std::span<const ResourceLimit> limits);

// Child side, late: a low RLIMIT_NOFILE must not break the set-up itself. A hard limit that cannot be raised is
// set as high as it goes, with a warning.
Result<void> apply_rlimits(std::span<const ResourceLimit> limits);

}  // namespace pinfold
