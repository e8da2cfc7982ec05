// Roots by recipe: what of this machine a sandbox is shown, as a template lists it.
#pragma once

#include <string>

#include "pinfold/result.hpp"
#include "policy/policy.hpp"
#include "sandbox/host_root.hpp"
#include "sandbox/templates.hpp"

namespace pinfold {

// Of a template by its name or its file. What one shows that has not come with pinfold is judged like what the caller
// binds.
Result<HostRoot> plan_template_root(const std::string& name, const Policies& policies, const User& user,
                                    Network network);
Result<HostRoot> plan_template_root(const FoundTemplate& found, const Policies& policies, const User& user,
                                    Network network);

}  // namespace pinfold
