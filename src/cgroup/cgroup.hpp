// A container's group, by files, in cgroup v2, v1 or both: made as planned, and removed with all it holds.
#pragma once

#include <sys/types.h>

#include <string>

#include "cgroup/oom.hpp"
#include "cgroup/plan.hpp"
#include "pinfold/result.hpp"
#include "pinfold/unique_fd.hpp"

namespace pinfold {

// Puts a process that waits into the groups that a clone cannot: those of cgroup v1.
Result<void> admit_process(const CgroupPlace& place, pid_t pid);

// Owns a group that was made for a container: it is removed, with whatever runs in it, unless commit() was called.
class Cgroup {
public:
    // Limits and device program are in force before the first process can enter. A plan that is not enabled gives
    // an empty object. A group that holds processes or is frozen is refused, and is not removed; the same goes for
    // an empty one that was there before.
    static Result<Cgroup> create(const CgroupPlan& plan);

    Cgroup() noexcept = default;
    Cgroup(Cgroup&& other) noexcept;
    Cgroup& operator=(Cgroup&& other) noexcept;
    Cgroup(const Cgroup&) = delete;
    Cgroup& operator=(const Cgroup&) = delete;
    ~Cgroup();

    // For clone3(CLONE_INTO_CGROUP); -1: there is no group that a process could be cloned into.
    int fd() const noexcept { return fd_.get(); }
    // Puts the container's first process, which waits, where the clone could not.
    Result<void> admit(pid_t pid) const { return admit_process(place_, pid); }
    // What it ran out of so far.
    OomCount oom() const { return fd() < 0 || place_.legacy.contains("memory") ? count_oom(place_) : count_oom(fd()); }
    // From now on the group stays until remove_cgroup().
    void commit() noexcept { owner_ = 0; }

private:
    Result<void> make_unified(const CgroupPlan& plan);
    void remove() noexcept;

    UniqueFd fd_;
    CgroupPlace place_;
    CgroupPlace made_;  // what of it was not there before
    pid_t owner_ = 0;   // who removes it, 0: nobody; a copy of this object in a forked child must not
};

// Kills what still runs in the group, removes the groups below it and then itself. One that is absent is removed.
// Only for groups that are known to be the container's own: whatever runs there dies.
Result<void> remove_cgroup(const CgroupPlace& place);

// The same for a group of which it is not known whether it became the container's: whatever runs there is left alone,
// and the group with it. Waits a little for a process that is about to end.
Result<void> remove_empty_cgroup(const CgroupPlace& place);

// Removes the groups between a group and kCgroupHome, and that one too, as far as nothing else is in them.
void remove_empty_home(const CgroupPlace& place);

}  // namespace pinfold
