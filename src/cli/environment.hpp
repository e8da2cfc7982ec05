// The environment of a program, from options of the command line.
#pragma once

#include <string>
#include <vector>

#include "pinfold/result.hpp"

namespace pinfold {

// All as NAME=VALUE: those of the file, unless it is empty, and then the words. One that is a name alone has the value
// that the caller's own has; none there is a mistake, as its program would go on without it.
Result<std::vector<std::string>> read_environment(const std::string& file, const std::vector<std::string>& words);

}  // namespace pinfold
