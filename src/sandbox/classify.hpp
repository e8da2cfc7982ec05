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
    std::optional<bool> disk_full{};  // nothing: it cannot be seen
};

// Of a job that never ran.
SandboxResult failed_result(const Error& error);

// What shells and Docker exit with where the program itself is the problem: 127 it is not there, 126 it cannot be
// executed. By the words that engines go by as well.
std::optional<int> program_failure(std::string_view message);

void take_output(Output& output, SandboxResult& result);

// Status, codes, usage and how often the limits were met, which must have been read back before, as the output must
// have been taken.
void classify(const JobEnd& end, const JobCounts& counts, SandboxResult& result);

// What is kept of the receipt: its digest, and the lines where they are asked for or one of them does not hold.
void keep_receipt(bool asked, SandboxResult& result);

}  // namespace pinfold
