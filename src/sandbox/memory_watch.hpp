// What the processes of a sandbox have mapped, and the processor time that they have used, added up from outside, where
// no group counts it. A limit of a process holds none of what it shares with others, nor all of them together.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cgroup/path.hpp"

namespace pinfold {

class SamplingRound;

class MemoryWatch {
public:
    using Sizes = std::map<std::string, uint64_t>;  // of objects of shared memory, by device and inode

    // Nothing where a group holds the memory, or where this kernel does not tell whose children are whose.
    static std::optional<MemoryWatch> create(const CgroupPath& group, pid_t sandbox_init, uint64_t limit);

    // Anonymous and shared memory of all that descend from the sandbox init, each page counted once. Shared memory
    // counts by its size, touched or not: its pages stay when they are resident in no process. Below the limit it may
    // say too much: then nobody needs to know better. A process whose mappings cannot be read counts as a whole.
    // What is not counted by `end`, a time of monotonic_ns(), is left out: by then all of them are to be killed.
    uint64_t measure(int64_t end = INT64_MAX);
    bool is_above(uint64_t used) const { return used > limit_; }
    // Until so much more could be used that it has to be looked at again.
    std::chrono::nanoseconds rest(uint64_t used) const;

    // Of all that have descended from the sandbox init so far, but for what lived and was reaped unseen.
    std::chrono::nanoseconds cpu_time();

private:
    MemoryWatch(pid_t sandbox_init, uint64_t limit) : sandbox_init_(sandbox_init), limit_(limit) {}
    uint64_t size_of_shared(const std::vector<pid_t>& processes, const SamplingRound& round);

    pid_t sandbox_init_;
    uint64_t limit_;
    Sizes sizes_;
    std::map<std::pair<pid_t, uint64_t>, uint64_t> ticks_;  // of each process that was seen, by pid and start
};

}  // namespace pinfold
