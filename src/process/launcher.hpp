// The parent of a new container: makes what it needs on the host, clones its first process, runs its hooks.
#pragma once

#include <string>

#include "pinfold/result.hpp"
#include "plan/plan.hpp"
#include "process/child.hpp"
#include "state/store.hpp"

namespace pinfold {

struct LaunchOptions {
    ChildOptions child;
    std::string state_root;
    bool keep = false;
    char** argv = nullptr;  // to start pinfold again from a protected binary
};

// What is remembered of the container; the configuration's text is kept beside it.
struct NewContainer {
    const Plan& plan;
    ContainerRecord record;
    std::string config;
};

// Leaves it `created`: set up whole, its payload to be run by start_container().
Result<void> create_container(const NewContainer& container, const LaunchOptions& options);

// Runs a container to its end and returns its exit code; 0 at once with detach.
Result<int> run_container(const NewContainer& container, const LaunchOptions& options);

}  // namespace pinfold
