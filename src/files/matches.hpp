// Names in a container that a pattern stands for.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "kernel/safe_path.hpp"
#include "pinfold/result.hpp"

namespace pinfold {

// Whether it has a *, a ? or a [ in it.
bool is_pattern(std::string_view path);

// As a shell expands it, sorted: a leading dot is not meant by a wildcard, and what a wildcard stands for is no link
// where something follows it. The work is bounded, whatever whoever has made the names had in mind.
Result<std::vector<std::string>> find_matches(const RootFd& root, std::string_view pattern);

}  // namespace pinfold
