// One loop around a job that runs: its output, its deadlines, its forbidden calls, our signals, its end.
#pragma once

#include <chrono>
#include <optional>

#include "pinfold/result.hpp"
#include "process/launcher.hpp"
#include "sandbox/denials.hpp"
#include "sandbox/output.hpp"

namespace pinfold {

struct JobWatch {
    RunningContainer& container;
    CgroupPlace group;
    const SignalForwarder& signals;
    Output* output = nullptr;    // null: it writes to our streams itself
    Denials* denials = nullptr;  // null: nobody listens
    std::optional<std::chrono::nanoseconds> timeout;
    std::optional<std::chrono::nanoseconds> cpu_timeout;
};

struct JobEnd {
    std::optional<PayloadEnd> payload;  // nothing: it was killed with its keeper
    bool timed_out = false;
    std::chrono::nanoseconds wall{};
};

// Returns when nothing of the job runs any more but its keeper, which waits to be let go, unless it was killed too.
Result<JobEnd> supervise_job(const JobWatch& watch);

}  // namespace pinfold
