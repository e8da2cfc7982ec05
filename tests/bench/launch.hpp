// What the launcher tells the benchmark about the one command that it ran.
#pragma once

#include <cstdint>

namespace pinfold::bench {

constexpr int kLaunchReportFd = 3;
constexpr int kCannotExecute = 127;

struct LaunchReport {
    int64_t wall_ns = 0;
    int64_t cpu_us = 0;
    int64_t max_rss_kb = 0;
    int64_t instructions = -1;  // in user mode, of the command and of all its children; -1: no counter here
    int32_t wait_status = 0;    // of several, the first that is not 0
};

}  // namespace pinfold::bench
