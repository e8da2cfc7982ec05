// A container's group in the cgroup v2 hierarchy, by files: made as planned, and removed with all it holds.
#pragma once

#include <sys/types.h>

#include <string>

#include "cgroup/plan.hpp"
#include "pinfold/result.hpp"
#include "pinfold/unique_fd.hpp"

namespace pinfold {

// Owns a group that was made for a container: it is removed, with whatever runs in it, unless commit() was called.
class CgroupDir {
public:
    // Limits and device program are in force before the first process can enter. A plan that is not enabled gives
    // an empty object. A group that holds processes or is frozen is refused, and is not removed; the same goes for
    // an empty one that was there before.
    static Result<CgroupDir> create(const CgroupPlan& plan);

    CgroupDir() noexcept = default;
    CgroupDir(CgroupDir&& other) noexcept;
    CgroupDir& operator=(CgroupDir&& other) noexcept;
    CgroupDir(const CgroupDir&) = delete;
    CgroupDir& operator=(const CgroupDir&) = delete;
    ~CgroupDir();

    // For clone3(CLONE_INTO_CGROUP); -1: there is no group.
    int fd() const noexcept { return fd_.get(); }
    // From now on the group stays until remove_cgroup().
    void commit() noexcept { owner_ = 0; }

private:
    void remove() noexcept;

    UniqueFd fd_;
    std::string mount_;
    std::string path_;
    pid_t owner_ = 0;  // who removes it, 0: nobody; a copy of this object in a forked child must not
};

// Kills what still runs in the group, removes the groups below it and then itself. One that is absent is removed.
// Only for groups that are known to be the container's own: whatever runs there dies.
Result<void> remove_cgroup(const std::string& mount, const std::string& path);

// The same for a group of which it is not known whether it became the container's: whatever runs there is left alone,
// and the group with it. Waits a little for a process that is about to end.
Result<void> remove_empty_cgroup(const std::string& mount, const std::string& path);

// Removes the groups between a group and kCgroupHome, and that one too, as far as nothing else is in them.
void remove_empty_home(const std::string& mount, const std::string& path);

}  // namespace pinfold
