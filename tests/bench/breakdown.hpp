// Where pinfold's time goes: the steps that --debug names, next to those of the floor.
#pragma once

#include <string>

#include "pinfold/result.hpp"
#include "variants.hpp"

namespace pinfold::bench {

Result<std::string> break_down(const std::string& launcher, const std::vector<Variant>& variants, int runs);

}  // namespace pinfold::bench
