// argv to CommandLine.
#pragma once

#include <optional>

#include "cli/verbs.hpp"

namespace pinfold {

// The exit code, where help, a version or a mistake was all there was to print. The line keeps its place: it has
// pointers to its own values.
std::optional<int> parse_arguments(int argc, char** argv, CommandLine& line);

}  // namespace pinfold
