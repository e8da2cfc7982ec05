// Recipes of roots: where they are, and what is in them.
#include "sandbox/templates.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <glob.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <optional>

#include "base/fs.hpp"
#include "base/process.hpp"
#include "base/strings.hpp"
#include "json/json.hpp"
#include "kernel/namespaces.hpp"
#include "policy/gate.hpp"
#include "policy/trusted.hpp"
#include "spec/reader.hpp"

namespace pinfold {

namespace {

constexpr std::string_view kMembers[] = {"description", "show", "links"};
constexpr std::string_view kSuffix = ".json";

bool is_plain(std::string_view path) {
    return std::ranges::none_of(split(path, '/'), [](std::string_view part) { return part == ".." || part.empty(); });
}

// Those of bundles/ are in the program: what lies beside it could be somebody else's.
struct ShippedTemplate {
    const char* name;
    const char* text;
};
constexpr ShippedTemplate kShipped[] = {
#include "shipped_templates.inc"
};

// A directory of templates, each in a file with its name.
struct Place {
    TemplateOrigin origin;
    std::string directory;
};

// A recipe of root's is the system's. Whoever has root's rights by sudo(8) has none of their own: the variables that
// would say where are the caller's.
bool is_administrator() {
    const Result<bool> initial = in_initial_user_namespace();
    return ::geteuid() == 0 && initial && *initial;
}

std::string absolute_or_none(const char* variable) {
    const char* const value = std::getenv(variable);
    return value != nullptr && *value == '/' ? value : "";
}

// Empty: the caller has none.
std::string users_directory() {
    if (is_administrator() || has_borrowed_rights()) return "";
    const std::string config = absolute_or_none("XDG_CONFIG_HOME"), home = absolute_or_none("HOME");
    if (config.empty() && home.empty()) return "";
    return concat(config.empty() ? concat(home, "/.config") : config, "/pinfold/templates");
}

// In the order in which a name is looked for, after those that are shipped.
std::vector<Place> all_places() {
    std::vector<Place> places = {{TemplateOrigin::system, kSystemTemplates}};
    if (const std::string users = users_directory(); !users.empty()) places.push_back({TemplateOrigin::user, users});
    return places;
}

std::string file_in(const Place& place, std::string_view name) { return concat(place.directory, '/', name, kSuffix); }

const ShippedTemplate* find_shipped(std::string_view name) {
    const auto found = std::ranges::find(kShipped, name, &ShippedTemplate::name);
    return found == std::end(kShipped) ? nullptr : found;
}

bool is_name(std::string_view name) {
    constexpr size_t kLongest = 64;
    const auto is_letter = [](char one) {
        return (one >= 'a' && one <= 'z') || (one >= 'A' && one <= 'Z') || (one >= '0' && one <= '9');
    };
    return !name.empty() && name.size() <= kLongest && is_letter(name[0]) && std::ranges::all_of(name, [&](char one) {
        return is_letter(one) || one == '-' || one == '_' || one == '.';
    });
}

// What others could have changed is not used: it says what a sandbox is shown.
Result<std::string> read_from(const Place& place, const std::string& name) {
    const std::string file = file_in(place, name);
    const bool callers_own = place.origin == TemplateOrigin::user;
    const UniqueFd directory = TRY(open_at(AT_FDCWD, place.directory, O_PATH | O_DIRECTORY));
    TRY(require_trusted(directory.get(), place.directory, callers_own));
    const UniqueFd opened = TRY(open_regular(directory.get(), concat(name, kSuffix)));
    TRY(require_trusted(opened.get(), file, callers_own));
    return read_at_most(opened.get(), file, kMaxDocument);
}

Error no_such_template(const std::string& name) {
    return plain_error(concat("there is no such template: ", quoted(name)))
        .with_hint("pinfold template list tells which there are; others are named by a path, as ./FILE");
}

Result<FoundTemplate> find_file(const std::string& file, const Policies& policies) {
    const UniqueFd opened = policies.size() > 1 ? TRY(open_allowed(policies, file, Access::read)) : UniqueFd();
    return FoundTemplate{file, TemplateOrigin::file, file,
                         TRY(read_document(opened ? concat("/proc/self/fd/", opened.get()) : file))};
}

// The names in a directory; none where it cannot be read.
std::vector<std::string> names_in(const Place& place) {
    std::vector<std::string> names;
    const std::unique_ptr<DIR, int (*)(DIR*)> directory(::opendir(place.directory.c_str()), ::closedir);
    while (const dirent* entry = directory ? ::readdir(directory.get()) : nullptr) {
        std::string_view name = entry->d_name;
        if (!name.ends_with(kSuffix)) continue;
        name.remove_suffix(kSuffix.size());
        if (is_name(name) && ::access(file_in(place, name).c_str(), F_OK) == 0) names.emplace_back(name);
    }
    std::ranges::sort(names);
    return names;
}

Result<Template> recipe_in(const Place& place, const std::string& name) {
    return parse_template(TRY(read_from(place, name)), file_in(place, name));
}

// With its parents. What root makes is for all to read, as the policy beside it is; a user's is that user's.
Result<UniqueFd> make_place(const Place& place) {
    const mode_t mode = place.origin == TemplateOrigin::system ? 0755 : 0700;
    for (size_t slash = place.directory.find('/', 1);; slash = place.directory.find('/', slash + 1)) {
        const std::string part = place.directory.substr(0, slash);
        if (::mkdir(part.c_str(), mode) != 0 && errno != EEXIST) return errno_error(concat("make ", part));
        if (slash == std::string::npos) break;
    }
    UniqueFd directory = TRY(open_at(AT_FDCWD, place.directory, O_RDONLY | O_DIRECTORY));
    TRY(require_trusted(directory.get(), place.directory, place.origin == TemplateOrigin::user));
    return directory;
}

Error taken(const std::string& name, const std::string& by, bool is_own) {
    return plain_error(concat("there is a template ", quoted(name), " already: ", by))
        .with_hint(is_own ? "--replace puts another one in its place" : "choose another name");
}

}  // namespace

static void read(const Reader& object, Template& recipe) {
    object.required("description", recipe.description);
    object.required("show", recipe.show);
    object.optional("links", recipe.links);
}

Result<Template> parse_template(std::string_view text, const std::string& file) {
    const Json root = TRY(parse_json(text, file));
    Problems problems;
    Template recipe;
    Reader(root, problems, nullptr).into(recipe);
    for (const Json::Member& member : root.object() ? *root.object() : Json::Object()) {
        if (std::ranges::find(kMembers, member.key) == std::end(kMembers))
            problems.add(member.key, "is unknown; allowed: description, show, links");
    }
    for (size_t i = 0; i < recipe.show.size(); ++i) {
        const std::string& path = recipe.show[i];
        if (!path.starts_with('/') || !is_plain(path.substr(1)))
            problems.add(element_path("show", i), expected_but_found(path, "an absolute path without .."));
    }
    for (const auto& [path, target] : recipe.links) {
        if (!is_plain(path)) problems.add(member_path("links", path), "is no plain path relative to the root");
    }
    if (!problems.empty()) return to_error(problems, file);
    return recipe;
}

std::vector<std::string> expand_shown(const std::string& pattern) {
    glob_t paths{};
    const std::unique_ptr<glob_t, void (*)(glob_t*)> guard(&paths, ::globfree);
    if (::glob(pattern.c_str(), 0, nullptr, &paths) != 0) return {};
    return {paths.gl_pathv, paths.gl_pathv + paths.gl_pathc};
}

const char* origin_word(TemplateOrigin origin) {
    switch (origin) {
        case TemplateOrigin::pinfold: return "pinfold";
        case TemplateOrigin::system: return "system";
        case TemplateOrigin::user: return "user";
        case TemplateOrigin::file: break;
    }
    return "file";
}

Result<FoundTemplate> find_template(const std::string& name, const Policies& policies) {
    if (name.find('/') != std::string::npos) return find_file(name, policies);
    if (!is_name(name)) return no_such_template(name);
    if (const ShippedTemplate* shipped = find_shipped(name); shipped != nullptr)
        return FoundTemplate{name, TemplateOrigin::pinfold, "", shipped->text};
    for (const Place& place : all_places()) {
        const std::string file = file_in(place, name);
        if (::access(file.c_str(), F_OK) == 0)
            return FoundTemplate{name, place.origin, file, TRY(read_from(place, name))};
    }
    return no_such_template(name);
}

std::vector<ListedTemplate> list_templates() {
    std::vector<ListedTemplate> all;
    for (const ShippedTemplate& one : kShipped)
        all.push_back({one.name, TemplateOrigin::pinfold, "", parse_template(one.text, one.name)});
    for (const Place& place : all_places()) {
        for (const std::string& name : names_in(place)) {
            if (std::ranges::find(all, name, &ListedTemplate::name) != all.end()) continue;
            all.push_back({name, place.origin, file_in(place, name), recipe_in(place, name)});
        }
    }
    return all;
}

Result<std::string> add_template(const std::string& name, std::string_view text, bool replace) {
    if (!is_name(name))
        return plain_error(concat(quoted(name), " is no name for a template"))
            .with_hint("letters, digits, -, _ and ., at most 64, and first a letter or digit");
    const std::vector<Place> places = all_places();
    const Place& own = places.back();
    if (own.origin == TemplateOrigin::system && !is_administrator())
        return plain_error("there is no place for templates of this user")
            .with_hint("set HOME or XDG_CONFIG_HOME, to an absolute path");
    if (find_shipped(name) != nullptr) return taken(name, "it comes with pinfold", false);
    for (const Place& place : places) {
        const bool is_own = &place == &own;
        if (::access(file_in(place, name).c_str(), F_OK) == 0 && !(is_own && replace))
            return taken(name, file_in(place, name), is_own);
    }
    const UniqueFd directory = TRY(make_place(own));
    const std::string file = concat(name, kSuffix);
    const unsigned mode = own.origin == TemplateOrigin::system ? 0644 : 0600;
    const Result<void> stored =
        replace ? replace_file(directory.get(), file, text, mode) : make_file(directory.get(), file, text, mode);
    if (!stored && stored.error().code == EEXIST) return taken(name, file_in(own, name), true);
    TRY(stored);
    return file_in(own, name);
}

}  // namespace pinfold
