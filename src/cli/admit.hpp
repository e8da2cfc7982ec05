// Before a verb begins: may this caller call it, with all that it names?
#pragma once

#include "cli/options.hpp"
#include "pinfold/result.hpp"

namespace pinfold {

// The gate that all of the line has passed. Names in the line are from then on those of opened files.
Result<Gate> admit(CommandLine& line);

// Whether the caller, root or an engine, may name what it likes, whatever the policy says of the verb.
bool is_free(const CommandLine& line);

}  // namespace pinfold
