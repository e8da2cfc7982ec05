// Scopes: groups that systemd makes. It is asked through the program pinfold-scope, which alone links libsystemd.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "cgroup/place.hpp"
#include "pinfold/result.hpp"

namespace pinfold {

// pinfold-scope belongs to this build.
bool has_scope_program();

// Each returns when systemd has done it. Properties are those of scope_properties.hpp.
Result<void> start_scope(const CgroupPlace& place, pid_t pid, const std::vector<std::string>& properties);
Result<void> change_scope(const CgroupPlace& place, const std::vector<std::string>& properties);
Result<void> stop_scope(const CgroupPlace& place);  // one that is gone is stopped
// For a process that this user may not move itself.
Result<void> attach_to_scope(const CgroupPlace& place, pid_t pid);

// As remove_cgroup() and remove_empty_cgroup() say.
Result<void> remove_scope(const CgroupPlace& place);
Result<void> await_end_of_scope(const CgroupPlace& place);

}  // namespace pinfold
