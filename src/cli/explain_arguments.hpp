// argv to CommandLine, by CLI11.
#pragma once

#include <optional>

#include "cli/verbs.hpp"

namespace pinfold {

// As parse_arguments, for all lines.
std::optional<int> explain_arguments(int argc, char** argv, CommandLine& line);

}  // namespace pinfold
