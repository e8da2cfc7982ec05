// The plan as JSON, step by step: what --dry-run prints.
#pragma once

#include <string>

#include "plan/plan.hpp"

namespace pinfold {

std::string dump_plan(const Plan& plan);

}  // namespace pinfold
