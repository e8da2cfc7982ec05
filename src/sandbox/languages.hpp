// Programs that run a script, by the name of its language.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "pinfold/result.hpp"

namespace pinfold {

struct Language {
    std::string_view name;
    std::string_view file;     // what a script is called in the work directory, unless it has a name
    std::string_view command;  // in front of that: words with spaces between them
    // How its version is asked for: words, with spaces between them, or a script of its own. Neither: there is no way.
    std::string_view version_command;
    std::string_view version_script;
};

std::span<const Language> all_languages();

// The first number with a dot in it that is printed; empty: there is none.
std::string version_in(std::string_view text);

Result<Language> find_language(std::string_view name);

// What it is called there: its own name, by which programs tell kinds of scripts apart, and messages name it.
std::string script_name(const Language& language, const std::string& file);
// What runs the script of that name, with the words that follow it.
std::vector<std::string> script_command(const Language& language, const std::string& name,
                                        const std::vector<std::string>& arguments);

}  // namespace pinfold
