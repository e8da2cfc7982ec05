// Finding a profile: one of those that come with pinfold, or a file.
#include "seccomp/profiles.hpp"

#include "base/strings.hpp"
#include "json/json.hpp"
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
    return plain_error(concat("there is no seccomp profile ", quoted(name), ", only ", names_of_all()))
        .with_hint("a file is named by a path with a slash in it, or with .json at its end");
}

Result<Profile> load_profile(const std::string& path) {
    const std::string text = TRY(read_document(path));
    Json document = TRY(parse_json(text, path));
    const Json* parent = document.find("linux");
    if (!parent) return parse_profile(std::move(document), {path, ""}, find_shipped);
    const Json* section = parent->find("seccomp");
    if (!section) return plain_error(concat(path, ": linux.seccomp: missing, required: an object"));
    return parse_profile(*section, {path, "linux.seccomp"}, find_shipped);
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
    return is_path(name_or_path) ? load_profile(std::string(name_or_path)) : find_shipped(name_or_path);
}

Result<Seccomp> find_profile(std::string_view name_or_path) {
    return TRY(find_explained_profile(name_or_path)).seccomp;
}

}  // namespace pinfold
