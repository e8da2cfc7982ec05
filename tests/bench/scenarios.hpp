// What is measured: pinfold's verbs, and the same by others and by the kernel alone.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "measure.hpp"
#include "workplace.hpp"

namespace pinfold::bench {

// Paths; empty where there is no such program here.
struct Programs {
    std::string pinfold;
    std::string floor;
    std::string launcher;
    std::string payload;
    std::string waiter;
    std::string hello;
    std::string crun;
    std::string new_crun;
    std::string runc;
    std::string bwrap;
    std::string python;
    std::string strace;
    std::string docker_config;  // a config.json with Docker's seccomp profile
};

// Those of a phase are interleaved; a later phase begins when the containers of an earlier one are gone.
enum class Phase { starts, many_containers, own_cgroups };

struct Scenario {
    std::string name;
    std::string skip_reason{};  // empty: it runs
    Phase phase = Phase::starts;
    int every = 1;                                                         // how many rounds have one of it
    bool counts_calls = true;                                              // by strace, too
    std::function<Result<Sample>(Runner&, const std::string& id)> once{};  // the name is another one each time
    std::function<Result<void>(Runner&)> prepare{};                        // before the rounds of its phase
    std::function<Result<void>(Runner&)> clean_up{};                       // and after them
    std::function<Command(const std::string& id)> command{};               // where it is only one
};

struct Surroundings {
    const Workplace& workplace;
    Programs programs;
    std::string cgroup;  // the name of the group that bundles ask for
    bool slow = false;   // with those that take minutes
};

Result<std::vector<Scenario>> list_scenarios(const Surroundings& at);

// The first of that name in PATH; empty: there is none.
std::string find_program(const std::string& name);

}  // namespace pinfold::bench
