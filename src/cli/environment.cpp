// The environment of a program, from options of the command line.
#include "cli/environment.hpp"

#include <algorithm>
#include <cstdlib>

#include "base/strings.hpp"
#include "json/json.hpp"

namespace pinfold {

namespace {

// No shell and hardly a program could ever name such a variable.
bool is_blank_or_control(char one) { return static_cast<unsigned char>(one) <= ' ' || one == '\x7f'; }

Result<std::string> complete_variable(std::string_view where, const std::string& word) {
    const size_t equals = word.find('=');
    if (word.empty() || equals == 0 || word.find('\0') != word.npos)
        return plain_error(concat(where, ' ', quoted(word), ": expected NAME=VALUE, or NAME"));
    const std::string_view name = std::string_view(word).substr(0, equals);
    if (const auto wrong = std::ranges::find_if(name, is_blank_or_control); wrong != name.end())
        return plain_error(
                   concat(where, ' ', quoted(word), ": a blank or control character in the name ", quoted(name)))
            .with_hint("write NAME=VALUE, without blanks around the = and without a shell's words such as export");
    if (equals != word.npos) return word;
    const char* const value = std::getenv(word.c_str());
    if (value != nullptr) return concat(word, '=', value);
    return plain_error(concat(where, ' ', quoted(word), ": there is no such variable in your environment"))
        .with_hint(concat("export it first, or give it a value: ", word, "="));
}

}  // namespace

// In the file a line is taken as it is, without quotes or a shell's rules, as by Docker.
Result<std::vector<std::string>> read_environment(const std::string& file, const std::vector<std::string>& words) {
    std::vector<std::string> env;
    const std::string text = file.empty() ? "" : TRY_IN("--env-file", read_document(file));
    size_t number = 0;
    for (std::string_view line : split(text, '\n')) {
        ++number;
        if (line.ends_with('\r')) line.remove_suffix(1);
        if (line.find_first_not_of(" \t") == line.npos || line.starts_with('#')) continue;
        env.push_back(
            TRY(complete_variable(concat("--env-file ", quoted(file), ", line ", number, ":"), std::string(line))));
    }
    for (const std::string& word : words) env.push_back(TRY(complete_variable("--env", word)));
    return env;
}

}  // namespace pinfold
