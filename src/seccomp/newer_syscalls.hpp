// System calls that are newer than a profile: ENOSYS for them, so that programs fall back to older ones.
#pragma once

#include <linux/filter.h>

#include <vector>

#include "pinfold/spec.hpp"

namespace pinfold {

// Instructions to put in front of the profile's program; empty where the profile needs none.
std::vector<sock_filter> newer_syscalls_prelude(const Seccomp& profile);

}  // namespace pinfold
