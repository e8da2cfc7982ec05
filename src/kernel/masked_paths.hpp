// Paths that a container must not read (masked) or not write (read-only).
#pragma once

#include <span>
#include <string>

#include "kernel/safe_path.hpp"
#include "pinfold/result.hpp"

namespace pinfold {

// Files get the host's null device, directories an empty read-only file system of our own: never anything
// that the container provides (CVE-2025-31133). Call it before pivot_root; paths that do not exist are skipped.
// The label is SELinux's, of the empty file system; it may be empty.
Result<void> mask_paths(const RootFd& root, std::span<const std::string> paths, const std::string& label);

Result<void> make_paths_readonly(const RootFd& root, std::span<const std::string> paths);

}  // namespace pinfold
