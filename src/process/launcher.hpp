// The parent: makes what a container needs on the host, clones the child, and stays with it to the end.
#pragma once

#include <string>

#include "pinfold/result.hpp"
#include "plan/plan.hpp"

namespace pinfold {

struct LaunchOptions {
    std::string state_root;
    std::string pid_file;        // empty: none
    std::string console_socket;  // empty: the terminal stays with us
    std::string seccomp_cache;   // directory of compiled filters
    bool detach = false;
    bool keep = false;
    char** argv = nullptr;  // to start pinfold again from a protected binary
};

// Runs a container to its end and returns its exit code; 0 at once with detach.
Result<int> run_container(const Plan& plan, const Spec& spec, const LaunchOptions& options);

}  // namespace pinfold
