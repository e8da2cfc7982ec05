// Who holds a job to its limits: a cgroup where there is one, else the rlimits of its own user namespace.
#pragma once

#include <string>
#include <vector>

#include "pinfold/result.hpp"
#include "pinfold/sandbox.hpp"
#include "pinfold/spec.hpp"
#include "plan/plan.hpp"

namespace pinfold {

// Takes from the configuration what this host's cgroups cannot hold, where the caller is a normal user, and adds
// rlimits in its place. With `require_cgroup` that is an error, as it is for root, who is told by the plan.
Result<void> fall_back_to_rlimits(const SandboxJob& job, const HostFacts& host, Spec& spec);

// What the kernel says of the limits once the job runs; `pid` is one of its processes. Memory that no group holds is
// watched by the supervisor (memory_watch.hpp), or by nobody.
std::vector<EnforcedLimit> read_back_limits(const SandboxJob& job, const Plan& plan, pid_t pid, bool watched);

// The same of a job that another runtime has created; `pid` is its first process, which may be that of a kernel.
std::vector<EnforcedLimit> read_back_external(const SandboxJob& job, const CgroupPath& place, pid_t pid);

}  // namespace pinfold
