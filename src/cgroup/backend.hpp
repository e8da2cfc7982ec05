// What each way to keep a container's group can do: cgroup v2 (v2.hpp), cgroup v1 (v1.hpp), and a scope of systemd's in
// cgroup v2 (systemd.hpp). cgroup.cpp, which is what the rest of pinfold calls, decides which of them a container has.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <utility>
#include <vector>

#include "cgroup/limit_files.hpp"
#include "cgroup/plan.hpp"
#include "cgroup/v1_limits.hpp"
#include "pinfold/result.hpp"
#include "pinfold/unique_fd.hpp"

namespace pinfold {

// What a start has made so far, also where it failed in the middle.
struct NewGroup {
    UniqueFd fd;      // a process can be cloned into it
    CgroupPath made;  // what was not there before, and goes if the start fails
};

class CgroupBackend {
public:
    explicit CgroupBackend(CgroupPath place) : place_(std::move(place)) {}
    CgroupBackend(const CgroupBackend&) = delete;
    CgroupBackend& operator=(const CgroupBackend&) = delete;
    virtual ~CgroupBackend() = default;

    virtual Result<void> make(const CgroupPlan& plan, NewGroup& group) = 0;
    // attach() takes the container's first process, which waits; add_process() any later one. A clone may have put
    // either into the group already.
    virtual Result<void> attach(const CgroupPlan& /*plan*/, pid_t pid, NewGroup& /*group*/) { return add_process(pid); }
    virtual Result<void> add_process(pid_t pid) = 0;

    // An update calls this first: the descriptors that are opened here must outlive `undo`.
    virtual Result<void> open() = 0;
    // Each takes its own part of the resources, and enters what it has written.
    virtual Result<void> update_limits(const DividedResources& resources, Undo& undo, GroupLimits& written) = 0;
    virtual Result<void> update_devices(const DividedResources& resources) = 0;

    virtual bool is_frozen() = 0;
    virtual Result<void> freeze(std::chrono::milliseconds patience) = 0;
    virtual Result<void> thaw(std::chrono::milliseconds patience) = 0;
    virtual void thaw_for_kill() {}

    virtual bool kill() { return false; }
    virtual Result<void> remove() = 0;
    virtual Result<void> remove_empty() = 0;

protected:
    const CgroupPath place_;
};

}  // namespace pinfold
