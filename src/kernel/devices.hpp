// Device nodes and the usual links in /dev.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <span>
#include <string>

#include "kernel/safe_path.hpp"
#include "pinfold/result.hpp"

namespace pinfold {

struct DeviceNode {
    std::string path;
    mode_t mode = 0;  // type and permissions, as mknod(2) takes them
    dev_t device = 0;
    uid_t uid = 0;
    gid_t gid = 0;
};

// Made with mknod, or bound from the host where a user namespace forbids mknod. Call it before pivot_root.
Result<void> make_devices(const RootFd& root, std::span<const DeviceNode> nodes, bool bind_from_host);

struct Link {
    std::string path;
    std::string target;
};

// What is there already is left alone.
Result<void> make_links(const RootFd& root, std::span<const Link> links);

// Binds the terminal's own end over /dev/console.
Result<void> bind_console(const RootFd& root, int slave_fd);

}  // namespace pinfold
