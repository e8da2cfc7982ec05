// A job as a bundle for another runtime: its configuration, its root and all that is bound into it. It exists in the
// mount namespace of one process alone, and so it is gone with that.
#pragma once

#include <string>
#include <vector>

#include "cgroup/path.hpp"
#include "kernel/made_root.hpp"
#include "pinfold/result.hpp"
#include "pinfold/spec.hpp"
#include "pinfold/unique_fd.hpp"
#include "sandbox/build_config.hpp"
#include "sandbox/external_runtime.hpp"

namespace pinfold {

struct ExternalBundle {
    Spec spec;
    std::string script;  // of a bind in it; empty: none

    // What the root and binds are made of, by descriptor or path.
    const JobConfig& config;
    std::string home;  // the state root, over which it is laid
};

ExternalBundle plan_bundle(const JobConfig& config, const ExternalRuntime& runtime, const CgroupPath& group,
                           const std::string& state_root);

// Where the things are, below its home.
std::string bundle_path(const ExternalBundle& bundle);

// Leaves the caller in a mount namespace of its own, where it is in place.
Result<void> lay_out(const ExternalBundle& bundle);

}  // namespace pinfold
