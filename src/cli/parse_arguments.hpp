// argv to CommandLine.
#pragma once

#include <variant>

#include "cli/options.hpp"

namespace pinfold {

// Or the exit code, where help, a version or a mistake was all there was to print.
std::variant<CommandLine, int> parse_arguments(int argc, char** argv);

}  // namespace pinfold
