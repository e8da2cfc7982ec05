// Programs that run a script.
#include "sandbox/languages.hpp"

#include <algorithm>

#include "base/strings.hpp"

namespace pinfold {

namespace {

constexpr Language kLanguages[] = {
    {"awk", "main.awk", "awk -f", "awk -W version", ""},
    {"bash", "main.sh", "bash", "bash --version", ""},
    {"lua", "main.lua", "lua", "lua -v", ""},
    {"node", "main.js", "node", "node --version", ""},
    {"perl", "main.pl", "perl", "", "printf '%vd', $^V"},
    {"php", "main.php", "php", "php --version", ""},
    {"python", "main.py", "python3", "python3 --version", ""},
    {"r", "main.R", "Rscript", "Rscript --version", ""},
    {"ruby", "main.rb", "ruby", "ruby --version", ""},
    {"sh", "main.sh", "sh", "", ""},
    {"tcl", "main.tcl", "tclsh", "", "puts [info patchlevel]"},
};

bool is_digit(char one) { return one >= '0' && one <= '9'; }

}  // namespace

std::span<const Language> all_languages() { return kLanguages; }

std::string version_in(std::string_view text) {
    while (true) {
        const auto* const begin = std::ranges::find_if(text, is_digit);
        const auto* end = std::find_if(begin, text.end(), [](char one) { return !is_digit(one) && one != '.'; });
        if (begin == text.end()) return {};
        std::string number(begin, end);
        while (number.ends_with('.')) number.pop_back();
        if (number.find('.') != number.npos) return number;
        text = {end, text.end()};
    }
}

Result<Language> find_language(std::string_view name) {
    const auto* found = std::ranges::find(kLanguages, name, &Language::name);
    if (found != std::end(kLanguages)) return *found;
    std::string names;
    for (const Language& known : kLanguages) names += concat(names.empty() ? "" : ", ", known.name);
    return plain_error(concat("--lang ", quoted(name), ": allowed: ", names))
        .with_hint(
            "--lang list tells which are here; for others, name the program: pinfold sandbox --copy-in "
            "FILE:/workspace/FILE -- PROGRAM FILE");
}

std::string script_name(const Language& language, const std::string& file) {
    constexpr std::string_view kPlain = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-+";
    const std::string name = file.substr(file.rfind('/') + 1);
    const bool is_plain =
        !name.empty() && name[0] != '-' && name[0] != '.' && name.find_first_not_of(kPlain) == name.npos;
    return is_plain ? name : std::string(language.file);
}

std::vector<std::string> script_command(const Language& language, const std::string& name,
                                        const std::vector<std::string>& arguments) {
    const std::vector<std::string_view> words = split(language.command, ' ');
    std::vector<std::string> command(words.begin(), words.end());
    command.push_back(name);
    command.insert(command.end(), arguments.begin(), arguments.end());
    return command;
}

}  // namespace pinfold
