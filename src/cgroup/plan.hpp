// What a container asks of cgroups, decided before anything is touched. Pure.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "cgroup/host.hpp"
#include "cgroup/limits.hpp"
#include "cgroup/path.hpp"
#include "pinfold/result.hpp"
#include "pinfold/spec.hpp"

namespace pinfold {

enum class CgroupManager : uint8_t { cgroupfs, systemd, disabled };

struct CgroupPlan {
    CgroupPath place;                      // none: no group is made, the container stays in its caller's
    bool hybrid = false;                   // for the hint where a controller is missing
    std::vector<std::string> controllers;  // to enable in every group above
    std::vector<CgroupWrite> writes;
    std::vector<std::string> scope_properties;  // what place.scope is started with
    std::vector<CgroupWrite> v1_writes;         // to cgroup v1
    std::vector<CgroupWrite> device_writes;     // to cgroup v1, where there is no v2 for a device program
    std::vector<DeviceRule> device_rules;       // oldest first, without the standard devices
    bool filter_devices = false;
    std::optional<uid_t> owner;    // who may make groups below it; nobody: root
    bool filter_may_fail = false;  // the caller may lack the right to bpf(2), but then its payload makes no nodes
};

// The parent of every group whose place the configuration does not say.
inline constexpr std::string_view kCgroupHome = "/pinfold";

Result<CgroupPlan> plan_cgroup(const Linux& config, const std::string& id, const CgroupHost& host,
                               CgroupManager manager, bool new_user_namespace_or_rootless);

}  // namespace pinfold
