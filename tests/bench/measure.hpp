// One run of one command: timed, or with its system calls counted. And the figures drawn from many runs.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "pinfold/result.hpp"
#include "pinfold/unique_fd.hpp"

namespace pinfold::bench {

struct Command {
    std::vector<std::string> argv;  // "@" is another name each time
    bool pretend_memlock = false;   // see launch.cpp
    uid_t user = 0;
    int times = 1;
    int at_once = 1;
};

// What one run of a scenario gave. Scenarios of several commands add them up.
struct Sample {
    double wall_ms = 0;
    double cpu_ms = 0;         // user and system, of the command and of all that it waited for
    double memory_kb = 0;      // the peak of the largest of these processes, or what a scenario measures
    double rate = 0;           // runs per second
    double instructions = -1;  // in user mode; -1: not counted
    double calls = 0;          // system calls; 0: not counted

    void add(const Sample& more);
};

class Runner {
public:
    explicit Runner(std::string launcher) : launcher_(std::move(launcher)) {}
    // One that counts system calls by strace and takes no times; `directory` is for its files.
    Runner(std::string launcher, std::string strace, std::string directory)
        : launcher_(std::move(launcher)), strace_(std::move(strace)), directory_(std::move(directory)) {}

    // Standard input and output are /dev/null. Any end but exit code 0 is an error with the command's own words.
    Result<Sample> run(const Command& command);
    // Instead of its figures, what it has written to standard error.
    Result<std::string> run_for_errors(const Command& command);
    bool counts() const { return !strace_.empty(); }
    // Of all commands since the last time, until their last process has ended.
    Result<double> take_calls();

private:
    struct Ended {
        Sample sample;
        std::string errors;
    };
    Result<Ended> launch(const Command& command);
    std::vector<std::string> words_for(const Command& command) const;

    std::string launcher_;
    std::string strace_;
    std::string directory_;
    std::vector<UniqueFd> tracers_;  // readable once one has ended
};

struct Summary {
    double median = 0;
    double minimum = 0;
    double maximum = 0;
    double p10 = 0;
    double p90 = 0;
};

Summary summarize(std::vector<double> values);

}  // namespace pinfold::bench
