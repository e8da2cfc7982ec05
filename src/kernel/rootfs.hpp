// The container's root: cut off from the host's mounts, attached, entered by pivot_root; and what in it must not be
// read (masked) or not be written (read-only).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "kernel/made_root.hpp"
#include "kernel/safe_path.hpp"
#include "pinfold/result.hpp"

namespace pinfold {

struct RootRequest {
    std::string path;  // absolute, on the host
    bool readonly = false;
    uint64_t propagation = 0;  // MS_SHARED, MS_SLAVE, MS_PRIVATE, MS_UNBINDABLE; 0: not configured
    bool recursive_propagation = false;
    std::optional<MadeRoot> made;  // instead of the directory itself
    bool pivot = true;             // false: chroot, for roots that cannot be pivoted (an initramfs)

    bool uses_path() const { return !made || made->over_directory; }
};

// In the new mount namespace: from here on no mount event reaches the host.
Result<void> isolate_mounts(const RootRequest& request);

// The tree of the directory, with its ids mapped, if that is asked for.
Result<UniqueFd> open_root_source(const RootRequest& request);

// The root's tree, placed over "/" where nothing needs to be searched for; the old root stays below it.
Result<RootFd> attach_root(UniqueFd tree);

// Afterwards "/" and the working directory are the container's root, and the host's tree is gone.
Result<void> enter_root(const RootFd& root, const RootRequest& request);

// Files get the host's null device, directories an empty read-only file system of our own: never anything
// that the container provides (CVE-2025-31133). Call it before pivot_root; paths that do not exist are skipped.
// The label is SELinux's, of the empty file system; it may be empty.
Result<void> mask_paths(const RootFd& root, std::span<const std::string> paths, const std::string& label);

Result<void> make_paths_readonly(const RootFd& root, std::span<const std::string> paths);

}  // namespace pinfold
