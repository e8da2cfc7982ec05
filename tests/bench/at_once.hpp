// Many sandboxes at the same time, on the machine as it is.
#pragma once

#include <string>

#include "pinfold/result.hpp"

namespace pinfold::bench {

// One sentence: how long all of them took, and how many did not end well. What others do meanwhile is part of it.
Result<std::string> run_at_once(const std::string& pinfold, int count);

}  // namespace pinfold::bench
