// Which systemd unit a container's group is, and where systemd puts it. Pure.
#pragma once

#include <string>
#include <string_view>

#include "pinfold/result.hpp"

namespace pinfold {

struct ScopeName {
    std::string slice;  // "system.slice"
    std::string unit;   // "docker-web.scope"
};

// linux.cgroupsPath is "SLICE:PREFIX:NAME" here. An empty one stands for "DEFAULT:pinfold:ID", an empty slice for the
// default one, and without a prefix the name alone is the unit's.
Result<ScopeName> parse_scope_name(const std::string& cgroups_path, const std::string& id,
                                   const std::string& default_slice);

// Below the manager's own group: "/a.slice/a-b.slice/web.scope" for the slice "a-b.slice".
std::string scope_path(const ScopeName& name);

}  // namespace pinfold
