// Runs pinfold with one fault at one system call of one of its processes, by ptrace(2). strace's own injection counts
// in each process for itself and so strikes the n-th call of all of them: a child's first calls would never fail alone.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "process.hpp"

namespace pinfold::faults {

// A process is named by its way from the verb's own, "0": its second child is "0.2". One that ran before is "init".
struct Call {
    std::string process;
    long number = 0;     // the kernel's, of the system call
    int occurrence = 0;  // of this system call in this process, from 1 on
};

inline constexpr int kKilled = 0;

// The call is not made and fails with this error; or the process is killed there.
struct Fault {
    Call at;
    int error = kKilled;
};

// Whoever runs a verb reaps what it orphans, as the callers of a runtime do: the first process of a pid namespace ends
// only after all others were reaped.
struct TraceRequest {
    std::vector<std::string> argv;
    integration::SpawnOptions spawn;  // uid, env and fds are heeded
    std::optional<pid_t> init;        // a process of pinfold's that runs already, to be followed too
    const Fault* fault = nullptr;
    bool follow = true;  // otherwise it is only run
};

struct Traced {
    int status = 0;           // exit code, or 128 + signal
    bool struck = false;      // the fault's call was reached
    bool hung = false;        // did not end in time and was killed
    std::vector<Call> calls;  // all that pinfold made until the fault, not those of programs that it started
};

Traced trace(const TraceRequest& request);

std::string call_name(long number);

}  // namespace pinfold::faults
