// A container's group, in cgroup v2, v1 or both, made by files or by systemd: as planned, and removed with all it
// holds. Which of the backends does the work follows from the group's path alone.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <memory>

#include "cgroup/backend.hpp"
#include "cgroup/plan.hpp"
#include "pinfold/result.hpp"

namespace pinfold {

// Owns a group that was made for a container: it is removed, with whatever runs in it, unless commit() was called.
class Cgroup {
public:
    // Limits and device program are in force before the first process can enter, or, in a scope, before that process
    // goes on: systemd starts one only around a process, so attach() does it. A plan without a group gives an empty
    // object. A group that holds processes or is frozen is refused, and is not removed; the same goes for an empty one
    // that was there before.
    static Result<Cgroup> create(const CgroupPlan& plan);

    // For clone3(CLONE_INTO_CGROUP); -1: there is no group that a process could be cloned into, or not before attach().
    int fd() const noexcept { return group_ ? group_->fd.get() : -1; }
    // Puts the container's first process, which waits, where the clone could not.
    Result<void> attach(const CgroupPlan& plan, pid_t pid);
    // From now on the group stays until remove_cgroup().
    void commit() noexcept { group_.get_deleter().owner = 0; }

private:
    struct Remover {
        pid_t owner;  // who removes it, 0: nobody; a copy of this object in a forked child must not
        void operator()(NewGroup* group) const noexcept;
    };
    std::unique_ptr<NewGroup, Remover> group_;
};

// Puts a process that waits into the groups that a clone cannot: those of cgroup v1, and a scope of systemd's that is
// not this user's to write to.
Result<void> add_process(const CgroupPath& place, pid_t pid);

// Changes the limits of a group that is in use. What is unset or zero stays as it is; what is said of one half of a
// pair (memory and swap, quota and period) is completed with what the group has. All of it comes into force, or an
// error says why none of it did: also where `keep`, which is told what was written, could not remember it.
using KeepLimits = std::function<Result<void>(const GroupLimits&)>;
Result<void> update_cgroup(const CgroupPath& place, const Resources& resources, const KeepLimits& keep = {});

// How long a process may take to reach a point where it can stop.
inline constexpr std::chrono::milliseconds kFreezePatience{10'000};

// The group itself was told to freeze, which is what thaw_group() can take back; a frozen group above it does not
// count. False also where there is no such group.
bool is_frozen(const CgroupPath& place);

// Stops all that runs in the group at once: by the freezer of cgroup v2, which needs no controller, or by that of v1
// where there is no v2. Returns when everything in the group and below it has stopped. What does not stop in time is
// let go again.
Result<void> freeze_group(const CgroupPath& place, std::chrono::milliseconds patience = kFreezePatience);

// Returns when the group runs again.
Result<void> thaw_group(const CgroupPath& place, std::chrono::milliseconds patience = kFreezePatience);

// What cgroup v1 has frozen, in the group or below it, dies of SIGKILL only once it is thawed: this lets it. What
// cgroup v2 has frozen dies anyway.
void thaw_for_kill(const CgroupPath& place);

// Sends SIGKILL to all of it at once. False where that takes a newer kernel, or there is no group.
bool kill_group(const CgroupPath& place);

// For who is about to forget a container: where the hierarchies are out of sight, every group of it seems to be gone,
// with all that runs in it.
Result<void> require_cgroup_mounts(const CgroupPath& place);

// Kills what still runs in the group, removes the groups below it and then itself. One that is absent is removed.
// Only for groups that are known to be the container's own: whatever runs there dies.
Result<void> remove_cgroup(const CgroupPath& place);

// The same for a group of which it is not known whether it became the container's: whatever runs there is left alone,
// and the group with it. Waits a little for a process that is about to end.
Result<void> remove_empty_cgroup(const CgroupPath& place);

// Removes the groups between a group and kCgroupHome, and that one too, as far as nothing else is in them.
void remove_empty_home(const CgroupPath& place);

}  // namespace pinfold
