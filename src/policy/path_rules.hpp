// Paths as an administrator writes them in a rule: with `*` for any characters of one name, and `~` for the caller's
// home.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "pinfold/result.hpp"

namespace pinfold {

// The rule without `~`; more than one where the environment and /etc/passwd name different homes.
std::vector<std::string> without_tilde(const std::string& rule);

// The paths that exist now, or may exist: a rule without `*` is one path, there or not.
std::vector<std::string> expand_stars(const std::string& pattern);

// Whether a path, or a directory above it, is named by the pattern.
bool is_within_pattern(std::string_view path, const std::string& pattern);

// What a path is reached by, as paths without links: the place of each link on the way, and last the place that it
// leads to, whether there is something or not.
std::vector<std::string> places_on_the_way(const std::string& path);

// Of a path that is one of these places, lies in it or contains it, where `root` is the directory that states are kept
// in.
Error state_refusal(std::string_view path, std::string_view place, std::string_view root);

}  // namespace pinfold
