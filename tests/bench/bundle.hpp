// The bundle that pinfold, crun and runc start alike: what `runc spec` writes, plus a cgroup namespace, minus the
// terminal.
#pragma once

#include <string>

#include "pinfold/result.hpp"

namespace pinfold::bench {

struct BundleOptions {
    std::string directory;  // made if it is not there, with config.json, which is replaced, and rootfs in it
    std::string payload;    // becomes /bin/true
    std::string waiter;     // becomes /bin/wait
    std::string cgroups_path;
    std::string program = "/bin/true";
    std::string seccomp{};  // JSON; empty: none
    long memory_limit = 0;  // bytes; 0: none
};

Result<void> make_bundle(const BundleOptions& options);

// The text of linux.seccomp in an engine's config.json.
Result<std::string> seccomp_section(const std::string& path);

}  // namespace pinfold::bench
