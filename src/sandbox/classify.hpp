// What the end of a job amounts to.
#pragma once

#include <chrono>
#include <optional>

#include "cgroup/control_files.hpp"
#include "pinfold/sandbox.hpp"
#include "sandbox/output.hpp"
#include "sandbox/supervise_job.hpp"

namespace pinfold {

// What was counted of it from outside.
struct JobCounts {
    GroupUsage usage;
    std::optional<uint64_t> oom_kills;
    std::optional<std::chrono::nanoseconds> cpu_timeout;
};

// Of a job that never ran.
SandboxResult failed_result(const Error& error);

void take_output(Output& output, SandboxResult& result);

// Status, codes and usage; the output must have been taken before.
void classify(const JobEnd& end, const JobCounts& counts, SandboxResult& result);

}  // namespace pinfold
