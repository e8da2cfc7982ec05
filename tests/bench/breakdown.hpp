// Where pinfold's time goes: the steps that --debug names, next to those of the floor.
#pragma once

#include <string>

#include "pinfold/result.hpp"
#include "scenarios.hpp"

namespace pinfold::bench {

Result<std::string> break_down(Runner& runner, const std::vector<Scenario>& scenarios, int runs);

}  // namespace pinfold::bench
