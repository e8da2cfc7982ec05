// What the systemd manager needs to know of this host: whether systemd runs, and where it keeps its slices.
#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>

namespace pinfold {

struct SystemdHost {
    bool running = false;
    bool user = false;  // the caller's own manager, not the system's
    std::string top;    // the group that the manager's slices lie in: empty, or ".../user@1000.service"
};

// `user`: the caller is not root on this host, so its own manager is meant.
SystemdHost find_systemd_host(bool user);

// From the texts of /proc/1/cgroup and /proc/self/uid_map. Pure.
std::string system_manager_top(std::string_view group_of_init);
std::string user_manager_top(std::string_view system_top, uid_t uid);
uid_t uid_on_host(std::string_view uid_map, uid_t uid);

}  // namespace pinfold
