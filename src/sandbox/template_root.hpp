// Roots by recipe: a file that lists what of this machine a sandbox is shown. Those of bundles/ go by their names.
#pragma once

#include <string>

#include "pinfold/result.hpp"
#include "policy/policy.hpp"
#include "sandbox/host_root.hpp"

namespace pinfold {

// A name, or a path: that has a slash. What a file of the caller's shows is judged like what the caller binds.
Result<HostRoot> plan_template_root(const std::string& name, const Policies& policies, const User& user,
                                    Network network);

}  // namespace pinfold
