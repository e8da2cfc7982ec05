// Programs that run a script.
#include "sandbox/languages.hpp"

#include <algorithm>

#include "base/strings.hpp"

namespace pinfold {

namespace {

constexpr Language kLanguages[] = {
    {"awk", "main.awk", "awk -f"},    {"bash", "main.sh", "bash"},  {"lua", "main.lua", "lua"},
    {"node", "main.js", "node"},      {"perl", "main.pl", "perl"},  {"php", "main.php", "php"},
    {"python", "main.py", "python3"}, {"r", "main.R", "Rscript"},   {"ruby", "main.rb", "ruby"},
    {"sh", "main.sh", "sh"},          {"tcl", "main.tcl", "tclsh"},
};

}  // namespace

Result<Language> find_language(std::string_view name) {
    const auto* found = std::ranges::find(kLanguages, name, &Language::name);
    if (found != std::end(kLanguages)) return *found;
    std::string names;
    for (const Language& known : kLanguages) names += concat(names.empty() ? "" : ", ", known.name);
    return plain_error(concat("--lang ", quoted(name), ": allowed: ", names))
        .with_hint("for others, name the program: pinfold sandbox --copy-in FILE:/workspace/FILE -- PROGRAM FILE");
}

std::vector<std::string> script_command(const Language& language, const std::vector<std::string>& arguments) {
    const std::vector<std::string_view> words = split(language.command, ' ');
    std::vector<std::string> command(words.begin(), words.end());
    command.emplace_back(language.file);
    command.insert(command.end(), arguments.begin(), arguments.end());
    return command;
}

}  // namespace pinfold
