// When a rule of a profile holds, as the profiles of Docker and Podman say it: `includes` and `excludes`.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "spec/reader.hpp"

namespace pinfold {

struct RuleConditions {
    std::vector<std::string> caps;
    std::vector<std::string> arches;  // in Go's words: amd64
    std::string min_kernel;
};

void read(const Reader& object, RuleConditions& conditions);

// A name that nobody knows would make the condition always true, or always false.
void validate_conditions(const RuleConditions& conditions, std::string_view at, Problems& problems);

// On this machine, for a program without capabilities: whoever gets a profile from a file has none, and can get none.
bool holds_here(const RuleConditions& includes, const RuleConditions& excludes);

}  // namespace pinfold
