// One loop around a job that runs: its output, its deadlines, its forbidden calls, our signals, its end.
#pragma once

#include <chrono>
#include <optional>

#include "base/clock.hpp"
#include "cgroup/path.hpp"
#include "pinfold/result.hpp"
#include "process/spawn.hpp"
#include "process/supervise.hpp"
#include "sandbox/denials.hpp"
#include "sandbox/memory_watch.hpp"
#include "sandbox/streams.hpp"

namespace pinfold {

struct JobWatch {
    int process = -1;               // pidfd of a child of ours: the sandbox init or, without one, the payload
    const Channel* link = nullptr;  // to the sandbox init
    CgroupPath group;               // that all of it is in
    const SignalForwarder& signals;
    JobStreams& streams;
    Denials* denials = nullptr;  // null: nobody listens
    std::optional<std::chrono::nanoseconds> timeout;
    std::optional<std::chrono::nanoseconds> cpu_timeout;
    int receiver = -1;               // pidfd of whom signals are for, and the last one; -1: the process itself
    MemoryWatch* memory = nullptr;   // null: the kernel holds it
    int mark = -1;                   // cgroup namespace that all of it is in, where a group does not tell
    int64_t began = monotonic_ns();  // when the program was let go
    bool stays = false;              // it has no caller any more, whose signals would be for it
    PtyRelay* terminal = nullptr;    // null: it has none
};

struct JobEnd {
    std::optional<PayloadEnd> payload;            // nothing: it went with its init
    std::optional<std::chrono::nanoseconds> cpu;  // that it had used when it was killed, where no group counts it
    std::optional<uint64_t> peak_memory;  // of all that lived at once, as we have seen, where no group counts it
    bool timed_out = false;
    bool cpu_timed_out = false;  // of the two, it was the processor time
    bool out_of_memory = false;  // as we have seen; what the kernel did is counted elsewhere
    bool over_limit = false;     // of its output
    bool dropped = false;        // the oldest of that, from a log
    std::string output_error;    // why some of that could not be written; empty: it was, or nobody reads
    std::chrono::nanoseconds wall{};
    int64_t ended_at = 0;  // by monotonic_ns()
};

// Returns when nothing of the job runs any more but its init, which waits to be let go, unless it was killed too.
// Without a sandbox init the payload is reaped, and what else is in its group is killed.
Result<JobEnd> supervise_job(const JobWatch& watch);

}  // namespace pinfold
