// argv to CommandLine.
#pragma once

#include <optional>

#include "cli/verbs.hpp"

namespace pinfold {

// The exit code, where help or a version was all there was to print. Of words that make no sense the line has a verb
// that fails with what is wrong. It keeps its place: it has pointers to its own values.
std::optional<int> parse_arguments(int argc, char** argv, CommandLine& line);

// The same for a line that can be read without a second thought, as those of engines and scripts are. False: it is not
// one, and what was made of it has to be thrown away.
bool parse_plain(int argc, char** argv, CommandLine& line);

}  // namespace pinfold
