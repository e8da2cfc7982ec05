// Finding the payload inside the container, and becoming it.
#pragma once

#include <string>
#include <vector>

#include "pinfold/result.hpp"

namespace pinfold {

// As the shell does: a name without a slash is searched in $PATH. Call it as the payload's user. The words of its
// errors are the ones that engines turn into exit codes 126 and 127.
Result<std::string> find_executable(const std::string& name, const std::vector<std::string>& env);

// Returns only on failure.
Error execute(const std::string& path, const std::vector<std::string>& args, const std::vector<std::string>& env);

}  // namespace pinfold
