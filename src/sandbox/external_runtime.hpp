// Other OCI runtimes that a job can be handed to: where they are, and what has to be said to each besides the job.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "pinfold/result.hpp"
#include "pinfold/sandbox.hpp"

namespace pinfold {

struct ExternalRuntime {
    std::string path;
    std::vector<std::string> flags;  // before each verb
    // Threads of its own that are in the job's group: as such, and for each process of the job.
    int64_t own_threads = 0;
    int64_t threads_per_process = 1;
};

// By name, looked for where programs are, the caller's PATH among these if that is wanted, or by path. One that is
// absent is an error that says how to get it.
Result<ExternalRuntime> find_runtime(const std::string& name, Network network, bool callers_path);

// Standard streams of a call, by number; -1: nowhere.
struct CallStreams {
    int in = -1;
    int out = -1;
    int err = -1;
};

// Runs it to its end, which it has two minutes for. The value is its exit code.
Result<int> call_runtime(const ExternalRuntime& runtime, const std::vector<std::string>& words,
                         const CallStreams& streams);

}  // namespace pinfold
