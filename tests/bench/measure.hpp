// One timed run of one command, and the figures drawn from many runs.
#pragma once

#include <string>
#include <vector>

#include "pinfold/result.hpp"

namespace pinfold::bench {

struct Command {
    std::vector<std::string> argv;
    bool pretend_memlock = false;  // see launch.cpp
};

struct Sample {
    double wall_ms = 0;
    double cpu_ms = 0;    // user and system, of the command and of all that it waited for
    long max_rss_kb = 0;  // of the largest of these processes
    int exit_code = 0;    // 128 + n for a death by signal n
    std::string stderr_text;
};

// Standard input and output are /dev/null. A command that cannot be executed exits with 127.
Result<Sample> run_once(const std::string& launcher, const Command& command);

struct Summary {
    double median = 0;
    double minimum = 0;
    double p90 = 0;
};

Summary summarize(std::vector<double> values);

}  // namespace pinfold::bench
