// Roots by recipe.
#include "sandbox/template_root.hpp"

#include <fcntl.h>
#include <glob.h>
#include <unistd.h>

#include <algorithm>
#include <memory>

#include "base/fs.hpp"
#include "base/process.hpp"
#include "base/strings.hpp"
#include "json/json.hpp"
#include "spec/reader.hpp"

namespace pinfold {

namespace {

struct Template {
    std::string description;
    std::vector<std::string> show;  // absolute; `*` stands for any characters of a name
    StringMap links;                // in the root, and where they lead
};

constexpr std::string_view kMembers[] = {"description", "show", "links"};

bool is_plain(std::string_view path) {
    return std::ranges::none_of(split(path, '/'), [](std::string_view part) { return part == ".." || part.empty(); });
}

}  // namespace

static void read(const Reader& object, Template& recipe) {
    object.required("description", recipe.description);
    object.required("show", recipe.show);
    object.optional("links", recipe.links);
}

namespace {

Result<Template> parse_template(const std::string& text, const std::string& file) {
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

// In a source tree the program is in build/KIND/.
Result<std::string> find_file(const std::string& name) {
    if (name.find('/') != std::string::npos) return name;
    const std::string own = own_path();
    const std::string beside = own.substr(0, own.rfind('/') + 1) + "../../bundles";
    for (const std::string& directory : {beside, std::string(PINFOLD_TEMPLATES)}) {
        std::string file = concat(directory, '/', name, "/template.json");
        if (::access(file.c_str(), R_OK) == 0) return file;
    }
    return plain_error(concat("--template ", quoted(name), ": there is no such template in ", PINFOLD_TEMPLATES))
        .with_hint("busybox and python come with pinfold; a file of your own is named by a path");
}

std::vector<std::string> expand(const std::string& pattern) {
    glob_t paths{};
    const std::unique_ptr<glob_t, void (*)(glob_t*)> guard(&paths, ::globfree);
    if (::glob(pattern.c_str(), 0, nullptr, &paths) != 0) return {};
    return {paths.gl_pathv, paths.gl_pathv + paths.gl_pathc};
}

// A directory of the skeleton for each that the links are in.
void add_parents(const std::string& path, Skeleton& skeleton) {
    for (size_t slash = path.find('/'); slash != path.npos; slash = path.find('/', slash + 1)) {
        const std::string parent = path.substr(0, slash);
        if (std::ranges::find(skeleton.directories, parent) == skeleton.directories.end())
            skeleton.directories.push_back(parent);
    }
}

}  // namespace

Result<HostRoot> plan_template_root(const std::string& name, const Policies& policies, const User& user,
                                    Network network) {
    const std::string file = TRY(find_file(name));
    const bool callers_own = file == name;
    const UniqueFd opened = callers_own && policies.size() > 1
                                ? TRY_IN("--template", open_allowed(policies, file, Access::read))
                                : UniqueFd();
    const std::string text =
        TRY_IN("--template", read_document(opened ? concat("/proc/self/fd/", opened.get()) : file));
    const Template recipe = TRY(parse_template(text, file));
    HostRoot root;
    root.skeleton.directories = {"dev", "proc", "tmp", "workspace", "etc"};
    add_names(root, user, network);
    for (const std::string& pattern : recipe.show) {
        for (const std::string& path : expand(pattern)) {
            Mount& mount = root.mounts.emplace_back(shown(path));
            if (callers_own) {
                root.sources.push_back(TRY_IN(concat("--template ", file), open_allowed(policies, path, Access::read)));
                mount.source = concat("/proc/self/fd/", root.sources.back().get());
            }
            add_parents(path.substr(1), root.skeleton);
        }
    }
    if (root.mounts.empty()) return plain_error(concat(file, ": show: this machine has none of it"));
    for (const auto& [path, target] : recipe.links) {
        add_parents(path, root.skeleton);
        root.skeleton.links.push_back({path, target});
    }
    return root;
}

}  // namespace pinfold
