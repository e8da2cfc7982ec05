// Users and groups by name, as the container's own /etc/passwd and /etc/group have them. Call these inside: the files
// are its own, and are read with no capability in effect.
#pragma once

#include <sys/types.h>

#include <string>

#include "kernel/credentials.hpp"
#include "pinfold/result.hpp"

namespace pinfold {

// "bob", "bob:staff", "1000", "1000:100". Without a group it is the user's own in /etc/passwd, with the groups that
// /etc/group lists the user in; for a number that is in no file, group 0.
Result<Identity> find_user(const std::string& text);

// "/root" for user 0, mostly; "/" where /etc/passwd says nothing.
std::string home_directory(uid_t uid);

}  // namespace pinfold
