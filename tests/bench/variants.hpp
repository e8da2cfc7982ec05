// What is measured: each way to start the payload, with and without cgroups where it can do both.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "measure.hpp"
#include "workplace.hpp"

namespace pinfold::bench {

struct Programs {
    std::string pinfold;
    std::string floor;
    std::string launcher;
    std::string payload;
};

struct Variant {
    std::string name;
    std::string program;  // its path, empty where it is not installed
    bool cgroup = false;
    std::string skip_reason;  // empty: it runs
    std::function<Command(const std::string& id)> command;
};

struct Surroundings {
    const Workplace& workplace;
    const Programs& programs;
    std::string bundle;
    std::string cgroup_directory;  // what the bundle's cgroupsPath is on this machine
};

std::vector<Variant> list_variants(const Surroundings& at);

}  // namespace pinfold::bench
