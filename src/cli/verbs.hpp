// One function per verb; each returns the program's exit code.
#pragma once

#include "cli/options.hpp"
#include "pinfold/result.hpp"

namespace pinfold {

Result<int> verb_run(const RunOptions& options, const CommandLine& line);
Result<int> verb_state(const StateOptions& options, const CommandLine& line);
Result<int> verb_delete(const DeleteOptions& options, const CommandLine& line);

}  // namespace pinfold
