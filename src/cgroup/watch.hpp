// Awaiting what happens in a group.
#pragma once

#include <cstdint>

#include "cgroup/deadline.hpp"
#include "cgroup/place.hpp"
#include "pinfold/result.hpp"
#include "pinfold/unique_fd.hpp"

namespace pinfold {

class GroupWatch {
public:
    enum class Event : uint8_t {
        none,      // before the deadline
        oom,       // a process was killed for want of memory
        deserted,  // the last process has gone, or the group itself
    };

    static Result<GroupWatch> create(const CgroupPlace& place);

    int group() const noexcept { return group_.get(); }
    Result<Event> next(const Deadline& deadline);

private:
    bool is_deserted() const;
    uint64_t oom_kills();

    UniqueFd group_;
    UniqueFd events_;
    UniqueFd removals_;       // of groups beside this one, and of itself
    UniqueFd memory_events_;  // empty as long as the group has no memory controller
    uint64_t oom_kills_ = 0;  // known so far
};

}  // namespace pinfold
