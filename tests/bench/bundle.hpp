// The bundle that pinfold, crun and runc start alike: what `runc spec` writes, plus a cgroup namespace, minus the
// terminal.
#pragma once

#include <string>

#include "pinfold/result.hpp"

namespace pinfold::bench {

struct BundleOptions {
    std::string directory;  // made, with config.json and rootfs in it
    std::string payload;    // becomes /bin/true
    std::string cgroups_path;
};

Result<void> make_bundle(const BundleOptions& options);

}  // namespace pinfold::bench
