// pinfold template: what sandbox --template goes by.
#include <sys/stat.h>

#include "base/strings.hpp"
#include "cli/verbs.hpp"
#include "json/json.hpp"
#include "sandbox/template_root.hpp"
#include "sandbox/templates.hpp"

namespace pinfold {

namespace {

// A template that cannot be used is no reason not to tell of the others.
std::string told(const ListedTemplate& one) {
    return one.recipe ? one.recipe->description : concat("cannot be used: ", one.recipe.error().message);
}

std::string table(const std::vector<ListedTemplate>& all) {
    std::vector<std::vector<std::string>> rows = {{"NAME", "FROM", "DESCRIPTION"}};
    for (const ListedTemplate& one : all) rows.push_back({one.name, origin_word(one.origin), printable(told(one))});
    return in_columns(rows);
}

std::string json(const std::vector<ListedTemplate>& all) {
    const auto write = [](const ListedTemplate& one) {
        JsonObject object;
        object.add_text("name", one.name).add_text("from", origin_word(one.origin));
        if (!one.file.empty()) object.add_text("file", one.file);
        if (one.recipe) object.add_text("description", one.recipe->description);
        else object.add_text("error", one.recipe.error().message);
        return object.text();
    };
    return json_array(all, write) + "\n";
}

// What a pattern stands for; nothing, where that is the pattern itself.
std::string told_paths(const std::string& pattern) {
    const std::vector<std::string> paths = expand_shown(pattern);
    if (paths.empty()) return "not on this machine";
    return paths == std::vector<std::string>{pattern} ? "" : join(paths, " ");
}

// Who has root's rights by sudo(8) is not told what there is in directories that only root may read.
std::string readable(const FoundTemplate& found, const Template& recipe, bool look) {
    std::string text = concat(recipe.description, "\n", origin_word(found.origin), found.file.empty() ? "" : ": ",
                              found.file, "\n\nshown:\n");
    std::vector<std::vector<std::string>> rows;
    for (const std::string& pattern : recipe.show) {
        rows.push_back({"  " + pattern});
        if (const std::string paths = look ? told_paths(pattern) : ""; !paths.empty()) rows.back().push_back(paths);
    }
    text += in_columns(rows);
    if (!recipe.links.empty()) text += "\nlinks:\n";
    for (const auto& [path, target] : recipe.links) text += concat("  /", path, " -> ", target, "\n");
    return text;
}

}  // namespace

Result<int> verb_template_list(const TemplateListOptions& options, const CommandLine& /*line*/) {
    const std::vector<ListedTemplate> all = list_templates();
    TRY(print(options.json ? json(all) : table(all)));
    return 0;
}

Result<int> verb_template_show(const TemplateShowOptions& options, const CommandLine& line) {
    const FoundTemplate found = TRY(find_template(options.name, line.gate->policies()));
    const Template recipe = TRY(parse_template(found.text, found.file));
    TRY(print(options.json ? found.text : readable(found, recipe, !line.gate->binds_caller())));
    return 0;
}

// What a sandbox would be refused is refused here: it is planned as for one.
Result<int> verb_template_add(const TemplateAddOptions& options, const CommandLine& line) {
    const FoundTemplate added{options.name, TemplateOrigin::file, options.file,
                              TRY(read_document_or_input(options.file))};
    const Policies policies = for_sandboxes(line.gate->policies(), line.global.root, line.global.audit);
    TRY(plan_template_root(added, policies, User(), Network::none));
    ::umask(022);  // others read what root adds
    const std::string file = TRY(add_template(options.name, added.text, options.replace));
    TRY(print(concat(file, '\n')));
    return 0;
}

}  // namespace pinfold
