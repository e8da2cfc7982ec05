// The AppArmor profile that a process gets with its next execve.
#pragma once

#include <sys/types.h>

#include <string>

#include "pinfold/result.hpp"

namespace pinfold {

// For this very process, whose pid on the host is given: through the host's /proc, since the container's own could lead
// the words elsewhere (CVE-2019-16884). Call it while the host's /proc is in view. "unconfined" asks for nothing where
// there is no AppArmor.
Result<void> set_profile_for_exec(const std::string& profile, pid_t host_pid);

}  // namespace pinfold
