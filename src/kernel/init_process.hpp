// A process that outlives the one that started it, found again by pid and start time: a pid alone may be reused.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <string>

#include "pinfold/result.hpp"
#include "pinfold/unique_fd.hpp"

namespace pinfold {

// In clock ticks since boot; 0 if there is no such process or it only waits to be reaped.
Result<uint64_t> process_start_time(pid_t pid);

// Holds the very process that was started at that time; empty if it has ended.
Result<UniqueFd> open_process(pid_t pid, uint64_t started);

// As this process's /proc has it; an error if it has ended, or is in no namespace below ours.
Result<pid_t> pid_of(int pidfd);

// True if it is there to receive it.
Result<bool> send_signal(int pidfd, int signal);

// After SIGKILL. One in uninterruptible sleep can outlive that for a while, but is not waited for for ever.
Result<void> await_end(int pidfd, std::chrono::seconds patience = std::chrono::seconds(10));

}  // namespace pinfold
