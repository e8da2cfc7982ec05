// What the processes of a sandbox have mapped, added up from outside, where no group counts it. A limit of a process
// holds none of what it shares with others, nor all of them together.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <optional>

#include "cgroup/place.hpp"

namespace pinfold {

class MemoryWatch {
public:
    // Nothing where a group holds the memory, or where this kernel does not tell whose children are whose.
    static std::optional<MemoryWatch> create(const CgroupPlace& group, pid_t keeper, uint64_t limit);

    // Anonymous and shared memory of all that descend from the keeper, each page counted once. Below the limit it may
    // say too much: then nobody needs to know better.
    uint64_t measure() const;
    bool is_above(uint64_t used) const { return used > limit_; }
    // Until so much more could be used that it has to be looked at again.
    std::chrono::nanoseconds rest(uint64_t used) const;

private:
    MemoryWatch(pid_t keeper, uint64_t limit) : keeper_(keeper), limit_(limit) {}

    pid_t keeper_;
    uint64_t limit_;
};

}  // namespace pinfold
