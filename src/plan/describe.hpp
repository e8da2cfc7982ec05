// What each step of a plan does, in words.
#pragma once

#include <string>
#include <vector>

#include "plan/plan.hpp"
#include "plan/steps.hpp"

namespace pinfold {

// Empty: this plan does not take that step.
std::vector<std::string> describe_step(Step step, const Plan& plan);

// A bind's source, where the child could not.
bool is_opened_by_parent(const Plan& plan, const MountRequest& mount);

}  // namespace pinfold
