// Mounts as descriptors: made detached, given their attributes, then placed on an opened target.
// No path of the container is walked twice, so there is nothing to swap in between.
#pragma once

#include <sys/mount.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "pinfold/result.hpp"
#include "pinfold/unique_fd.hpp"

namespace pinfold {

struct FilesystemOption {
    std::string key;
    std::string value;  // empty with is_flag
    bool is_flag = false;
    int fd = -1;  // instead of a value
};

struct FilesystemRequest {
    std::string type;
    std::string source;
    std::vector<FilesystemOption> options;
    uint64_t attributes = 0;  // MOUNT_ATTR_*
};

// A detached mount of a new file system, with its attributes. Fails with the kernel's own explanation where it gives
// one. Values of more than 255 bytes take mount(2), for which the caller has to be in a mount namespace of its own.
Result<UniqueFd> make_filesystem(const FilesystemRequest& request);

// A detached bind mount of a path or, with an empty path, of the descriptor itself.
Result<UniqueFd> clone_tree(int dir, const std::string& path, bool recursive);

// MOUNT_ATTR_* bits to set and to clear, and MS_PRIVATE and the like (0: leave).
struct MountChange {
    uint64_t set = 0;
    uint64_t clear = 0;
    uint64_t propagation = 0;
    int userns_fd = -1;  // with MOUNT_ATTR_IDMAP

    bool empty() const { return set == 0 && clear == 0 && propagation == 0; }
};
Result<void> change_mount(int mount_fd, const MountChange& change, bool recursive);

Result<void> place_mount(int mount_fd, int target_fd);

}  // namespace pinfold
