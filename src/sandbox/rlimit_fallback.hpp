// Who holds a job to its limits: a cgroup where there is one, else the rlimits of its own user namespace.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "pinfold/result.hpp"
#include "pinfold/sandbox.hpp"
#include "pinfold/spec.hpp"
#include "pinfold/unique_fd.hpp"
#include "plan/plan.hpp"

namespace pinfold {

// Takes from the configuration what this host's cgroups cannot hold, where the caller is a normal user, and adds
// rlimits in its place. With `require_cgroup` that is an error, as it is for root, who is told by the plan.
Result<void> fall_back_to_rlimits(const SandboxJob& job, const HostFacts& host, Spec& spec);

// What is kept on the host's disk has no size of its own: an error where one was asked for, and not waived.
Result<void> check_disk(const SandboxJob& job);

// The file systems that a job writes to; `pid` is one of its processes. They outlive it as long as they are held.
std::vector<UniqueFd> open_disks(pid_t pid, const SandboxJob& job);
bool is_any_full(const std::vector<UniqueFd>& disks);

// A deadline: pinfold's own timer holds it.
using Seconds = std::chrono::duration<double>;
EnforcedLimit time_limit(std::string name, Seconds time);
// What may be printed: pinfold passes no more on.
EnforcedLimit printed_limit(uint64_t bytes);

// What a group holds, as it is by now.
void read_group_again(const CgroupPath& place, std::vector<EnforcedLimit>& limits);
// What the kernel says of the limits once the job runs; `pid` is one of its processes. Memory that no group holds is
// watched by the supervisor (memory_watch.hpp), or by nobody.
std::vector<EnforcedLimit> read_back_limits(const SandboxJob& job, const Plan& plan, pid_t pid, bool watched,
                                            const std::vector<UniqueFd>& disks);

// The same of a job that another runtime has created; `pid` is its first process, which may be that of a kernel.
std::vector<EnforcedLimit> read_back_external(const SandboxJob& job, const CgroupPath& place, pid_t pid);

}  // namespace pinfold
