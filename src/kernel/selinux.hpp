// SELinux contexts that a process takes for what it makes next.
#pragma once

#include <sys/types.h>

#include <string>

#include "pinfold/result.hpp"

namespace pinfold {

// An error where this host does not run SELinux: a label that is not set is a wall that is not there.
Result<void> require_selinux(std::string_view property);

// Of the caller, whose pid on the host this is: for its next execve, and for keyrings until then.
Result<void> set_context_for_exec(const std::string& context, pid_t host_pid);
Result<void> set_context_for_keys(const std::string& context, pid_t host_pid);

}  // namespace pinfold
