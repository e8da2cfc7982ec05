// Awaiting what happens in a group.
#pragma once

#include <cstdint>

#include "cgroup/control_files.hpp"
#include "cgroup/path.hpp"
#include "pinfold/result.hpp"
#include "pinfold/unique_fd.hpp"

namespace pinfold {

class GroupWatch {
public:
    enum class Event : uint8_t {
        none,   // before the deadline
        oom,    // a process was killed for want of memory
        empty,  // the last process has gone, or the group itself
    };

    static Result<GroupWatch> create(const CgroupPath& place);

    int group() const noexcept { return group_.get(); }
    Result<Event> next(const Deadline& deadline);

private:
    bool is_empty();
    uint64_t oom_kills();
    Result<void> await_change(const Deadline& deadline);

    CgroupPath place_;
    UniqueFd group_;
    UniqueFd events_;  // of cgroup v2; without, one process of the group at a time tells of its end
    UniqueFd member_;
    UniqueFd removals_;       // of groups beside this one, and of itself
    UniqueFd memory_events_;  // empty as long as the group has no memory controller
    UniqueFd oom_signal_;     // of cgroup v1, which tells that it is about to kill
    Deadline kill_follows_{std::chrono::milliseconds(0)};
    uint64_t oom_kills_ = 0;  // known so far
};

}  // namespace pinfold
