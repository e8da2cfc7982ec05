// Paths as an administrator writes them in a rule: with `*` for any characters of one name, and `~` for the caller's
// home.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace pinfold {

// The rule without `~`; more than one where the environment and /etc/passwd name different homes.
std::vector<std::string> without_tilde(const std::string& rule);

// The paths that exist now, or may exist: a rule without `*` is one path, there or not.
std::vector<std::string> expand_stars(const std::string& pattern);

// Whether a path, or a directory above it, is named by the pattern.
bool is_within_pattern(std::string_view path, const std::string& pattern);

}  // namespace pinfold
