// Recipes of roots, which --template goes by: a file lists what of this machine a sandbox is shown. Those of bundles/
// come with pinfold; the administrator's, and those that a user has added, are found by their names as well.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "pinfold/result.hpp"
#include "pinfold/spec.hpp"
#include "policy/policy.hpp"

namespace pinfold {

inline constexpr const char* kSystemTemplates = "/etc/pinfold/templates";

struct Template {
    std::string description;
    std::vector<std::string> show;  // absolute; `*` stands for any characters of a name
    StringMap links;                // in the root, and where they lead
};

// All that is wrong is told at once.
Result<Template> parse_template(std::string_view text, const std::string& file);

// The paths of this machine that a pattern of `show` stands for.
std::vector<std::string> expand_shown(const std::string& pattern);

enum class TemplateOrigin : uint8_t { pinfold, system, user, file };
const char* origin_word(TemplateOrigin origin);

struct FoundTemplate {
    std::string name;
    TemplateOrigin origin = TemplateOrigin::file;
    std::string file;  // none, if it comes with pinfold
    std::string text;
};

// A name, or a path: that has a slash, and is judged as what the caller has named.
Result<FoundTemplate> find_template(const std::string& name, const Policies& policies);

// All that have names, in their order; of several with one name the one that is found by it.
struct ListedTemplate {
    std::string name;
    TemplateOrigin origin = TemplateOrigin::pinfold;
    std::string file;
    Result<Template> recipe;  // or why it cannot be used
};
std::vector<ListedTemplate> list_templates();

// Stores a text, which is a template, where this caller's are found, and tells the file. A name that is taken is an
// error; with `replace`, only if it is another's.
Result<std::string> add_template(const std::string& name, std::string_view text, bool replace);

}  // namespace pinfold
