// Limits as properties of a systemd unit, each "NAME=VALUE" as pinfold-scope takes it. Pure.
#pragma once

#include <string>
#include <vector>

#include "cgroup/limits.hpp"
#include "cgroup/scope_name.hpp"

namespace pinfold {

// Of those writes that systemd has a property for: so it writes the same when it next writes these files at all.
std::vector<std::string> limit_properties(const std::vector<CgroupWrite>& writes);

// All that a new scope is started with, but for its process.
std::vector<std::string> scope_properties(const ScopeName& name, const std::string& id,
                                          const std::vector<CgroupWrite>& writes);

}  // namespace pinfold
