// Network devices of the host that become a container's.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "kernel/netlink.hpp"
#include "pinfold/result.hpp"

namespace pinfold {

struct NetDeviceMove {
    std::string host_name;
    std::string name;  // in the container
};

// The devices of one container. Unless commit() was called they go back to where they came from: a virtual device
// would be gone with the container's namespace. After that, what becomes of them is the kernel's business.
class MovedDevices {
public:
    // Into the network namespace of that process. Each keeps its addresses and is up afterwards.
    static Result<MovedDevices> move(const std::vector<NetDeviceMove>& devices, pid_t process);

    MovedDevices() = default;
    MovedDevices(MovedDevices&& other) noexcept = default;
    MovedDevices& operator=(MovedDevices&&) = delete;
    ~MovedDevices();

    void commit() noexcept { moved_.clear(); }

private:
    // A network namespace, and how to speak to it.
    struct Side {
        UniqueFd ns;
        NetlinkSocket socket;
    };
    struct Moved {
        NetDeviceMove names;
        bool was_up;
    };

    Result<void> move_one(const NetDeviceMove& device);
    Result<void> give_back(const Moved& device) const;

    std::optional<Side> host_;
    std::optional<Side> container_;
    std::vector<Moved> moved_;
};

}  // namespace pinfold
