// Programs that run a script, by the name of its language.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "pinfold/result.hpp"

namespace pinfold {

struct Language {
    std::string_view name;
    std::string_view file;                  // what a script is called in the work directory
    std::vector<std::string_view> command;  // in front of that
};

Result<Language> find_language(std::string_view name);

}  // namespace pinfold
