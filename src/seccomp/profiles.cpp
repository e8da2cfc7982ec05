// Finding a profile: one of those that come with pinfold, or a file.
#include "seccomp/profiles.hpp"

#include <algorithm>

#include "base/log.hpp"
#include "base/strings.hpp"
#include "json/json.hpp"
#include "seccomp/access.hpp"
#include "seccomp/compile.hpp"
#include "seccomp/shipped.hpp"

namespace pinfold {

namespace {

bool is_path(std::string_view text) { return text.find('/') != std::string_view::npos || text.ends_with(".json"); }

std::vector<std::string> words_of(std::string_view text) {
    const std::vector<std::string_view> words = split(text, ' ');
    return {words.begin(), words.end()};
}

std::string names_of_all() {
    std::vector<std::string> names;
    for (const ShippedProfile& profile : shipped_table()) names.emplace_back(profile.name);
    return join(names, ", ");
}

Result<Profile> find_shipped(std::string_view name) {
    for (const ShippedProfile& profile : shipped_table()) {
        if (profile.name == name) return unpack(profile);
    }
    return plain_error(concat("there is no seccomp profile ", quoted(name), ", only ", names_of_all()));
}

// A file's parent is one that every machine has.
Result<Profile> find_parent(const std::string& name) {
    Result<Profile> found = find_shipped(name);
    if (found || !is_path(name)) return found;
    return std::move(found).error().with_hint("a profile extends one that comes with pinfold, and no other file");
}

bool has_rule_for(const ShippedProfile& profile, std::string_view call) {
    return std::ranges::any_of(profile.rules, [&](const ShippedRule& rule) {
        const std::vector<std::string_view> names = split(rule.names, ' ');
        return std::ranges::find(names, call) != names.end();
    });
}

// Of a name in an allow list nobody would notice that it is misspelt, until the program fails. Of one in a deny list,
// whoever compiles it is told.
Profile tell_misspelt(Profile profile, const std::string& path) {
    if (is_allowing(profile.seccomp.default_action)) return profile;
    std::vector<std::string> names = unknown_calls(profile.seccomp);
    for (const ShippedProfile& shipped : shipped_table()) {  // of calls newer than libseccomp, too
        std::erase_if(names, [&](const std::string& name) { return has_rule_for(shipped, name); });
    }
    if (!names.empty()) {
        log_warning(concat(
            path, ": not known to libseccomp, misspelt or too new, and left out: ", printable(join(names, ", "))));
    }
    return profile;
}

Result<Profile> load_profile(const std::string& path) {
    const std::string text = TRY(read_document(path));
    Json document = TRY(parse_json(text, path));
    const Json* parent = document.find("linux");
    if (!parent) return tell_misspelt(TRY(parse_profile(std::move(document), {path, ""}, find_parent)), path);
    const Json* section = parent->find("seccomp");
    if (!section) return plain_error(concat(path, ": linux.seccomp: missing, required: an object"));
    return tell_misspelt(TRY(parse_profile(*section, {path, "linux.seccomp"}, find_parent)), path);
}

}  // namespace

Profile unpack(const ShippedProfile& profile) {
    Profile out{std::string(profile.description), {}, {}};
    out.seccomp.default_action = profile.default_action;
    out.seccomp.default_errno_ret = profile.default_errno_ret;
    out.seccomp.architectures = words_of(profile.architectures);
    for (const ShippedRule& rule : profile.rules) {
        SyscallRule& added = out.seccomp.syscalls.emplace_back(
            SyscallRule{words_of(rule.names), std::string(rule.action), rule.errno_ret, {}});
        for (const ShippedArg& arg : rule.args) {
            added.args.push_back({arg.index, arg.value, arg.value_two, std::string(arg.op)});
        }
        out.notes.push_back({std::string(rule.group), std::string(rule.reason)});
    }
    return out;
}

std::vector<ProfileInfo> shipped_profiles() {
    std::vector<ProfileInfo> out;
    for (const ShippedProfile& profile : shipped_table()) out.push_back({profile.name, profile.description});
    return out;
}

Result<Profile> find_explained_profile(std::string_view name_or_path) {
    if (is_path(name_or_path)) return load_profile(std::string(name_or_path));
    Result<Profile> found = find_shipped(name_or_path);
    if (found) return found;
    return std::move(found).error().with_hint("a file is named by a path with a slash in it, or with .json at its end");
}

Result<Seccomp> find_profile(std::string_view name_or_path) {
    return TRY(find_explained_profile(name_or_path)).seccomp;
}

}  // namespace pinfold
