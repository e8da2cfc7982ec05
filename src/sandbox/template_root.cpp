// Roots by recipe.
#include "sandbox/template_root.hpp"

#include <algorithm>
#include <optional>

#include "base/strings.hpp"

namespace pinfold {

// None of what a policy forbids: who is bound by it would learn from a refusal that there is such a name.
static Result<UniqueFd> open_shown(const Policies& policies, const std::string& path) {
    Result<UniqueFd> opened = open_allowed(policies, path, Access::read);
    const bool is_hidden = !opened && opened.error().code == kPolicyRefusal && policies.size() > 1;
    return is_hidden ? UniqueFd() : std::move(opened);
}

// A directory of the skeleton for each that the links are in.
static void add_parents(const std::string& path, Skeleton& skeleton) {
    for (size_t slash = path.find('/'); slash != path.npos; slash = path.find('/', slash + 1)) {
        const std::string parent = path.substr(0, slash);
        if (std::ranges::find(skeleton.directories, parent) == skeleton.directories.end())
            skeleton.directories.push_back(parent);
    }
}

Result<HostRoot> plan_template_root(const FoundTemplate& found, const Policies& policies, const User& user,
                                    Network network) {
    const std::string& told = found.file.empty() ? found.name : found.file;
    const Template recipe = TRY(parse_template(found.text, told));
    HostRoot root;
    root.skeleton.directories = {"dev", "proc", "tmp", "workspace", "etc"};
    add_names(root, user, network);
    for (const std::string& pattern : recipe.show) {
        for (const std::string& path : expand_shown(pattern)) {
            std::optional<UniqueFd> source;
            if (found.origin != TemplateOrigin::pinfold)
                source = TRY_IN(concat("--template ", told), open_shown(policies, path));
            if (source && !*source) continue;
            Mount& mount = root.mounts.emplace_back(shown(path));
            if (source) {
                root.sources.push_back(std::move(*source));
                mount.source = concat("/proc/self/fd/", root.sources.back().get());
            }
            add_parents(path.substr(1), root.skeleton);
        }
    }
    if (root.mounts.empty()) return plain_error(concat(told, ": show: this machine has none of it that may be shown"));
    for (const auto& [path, target] : recipe.links) {
        add_parents(path, root.skeleton);
        root.skeleton.links.push_back({path, target});
    }
    return root;
}

Result<HostRoot> plan_template_root(const std::string& name, const Policies& policies, const User& user,
                                    Network network) {
    return plan_template_root(TRY_IN("--template", find_template(name, policies)), policies, user, network);
}

}  // namespace pinfold
