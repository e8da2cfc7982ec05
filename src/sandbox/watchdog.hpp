// A process that ends an exec at its deadline, should its supervisor not: be that stopped, starved or killed. A
// sandbox's own job has its init for that; but one more program in a container is nobody's child there.
#pragma once

#include <chrono>

#include "base/process.hpp"
#include "cgroup/path.hpp"
#include "pinfold/result.hpp"
#include "process/spawn.hpp"

namespace pinfold {

class Watchdog {
public:
    // Before anything of the container is joined: it belongs to the host. It goes with this object.
    static Result<Watchdog> start(const CgroupPath& group, bool marked, std::chrono::nanoseconds deadline);

    // From now on it is up to it, too. `mark` is for one that was said to be marked.
    Result<void> watch(pid_t pid, int pidfd, int mark) const;

private:
    Watchdog(pid_t pid, Channel link) : child_(pid), link_(std::move(link)) {}

    ChildGuard child_;
    Channel link_;
};

// SIGKILL to all that is in the group, also where the kernel cannot do that at once; and to all that is in the cgroup
// namespace that the descriptor is of, if it is of one.
void kill_everyone(const CgroupPath& group, int mark);

}  // namespace pinfold
