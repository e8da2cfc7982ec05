// System calls that are newer than a profile: ENOSYS for them, so that programs fall back to older ones. And those that
// are newer than libseccomp, which a deny list denies all the same.
#pragma once

#include <linux/filter.h>

#include <string_view>
#include <vector>

#include "pinfold/spec.hpp"

namespace pinfold {

// Instructions to put in front of the profile's program; empty where the profile needs none.
std::vector<sock_filter> newer_syscalls_prelude(const Seccomp& profile);

// Whether these instructions deny a call of this name, whatever its arguments are, where a rule says so by an errno.
bool is_denied_by_number(std::string_view name);

}  // namespace pinfold
