// Profiles from JSON, and back.
#include "seccomp/profile.hpp"

#include <algorithm>
#include <optional>
#include <set>

#include "base/strings.hpp"
#include "spec/parse.hpp"
#include "spec/validate.hpp"
#include "spec/write_seccomp.hpp"

namespace pinfold {

namespace {

// The rules for configs name paths from here on; a profile may be a file of its own.
constexpr std::string_view kInConfig = "linux.seccomp";

struct ConfigLinux {
    Profile seccomp;
};
struct Config {
    ConfigLinux linux_;
};

Problems problems_at(std::string_view at, const Problems& in_config) {
    Problems out;
    for (const Problem& problem : in_config.items()) {
        std::string path = problem.path.substr(std::min(problem.path.size(), kInConfig.size()));
        if (at.empty() && path.starts_with('.')) path.erase(0, 1);
        out.add(concat(at, path), problem.message);
    }
    return out;
}

// So that the document is a complete one before it is read and checked. An errno belongs to its action.
void inherit_properties(Json::Object& document, const Seccomp& parent) {
    Json::Object added;
    added.push_back({"defaultAction", Json{parent.default_action}});
    if (parent.default_errno_ret) added.push_back({"defaultErrnoRet", Json{uint64_t{*parent.default_errno_ret}}});
    const auto is = [](const char* key) { return [key](const Json::Member& item) { return item.key == key; }; };
    if (std::ranges::any_of(document, is("defaultAction"))) added.clear();
    if (std::ranges::none_of(document, is("architectures"))) {
        added.push_back({"architectures", json_of(parent.architectures)});
    }
    if (std::ranges::none_of(document, is("flags"))) added.push_back({"flags", json_of(parent.flags)});
    std::ranges::move(added, std::back_inserter(document));
}

void inherit_rules(Profile& profile, const Profile& parent) {
    std::set<std::string> own;
    for (const SyscallRule& rule : profile.seccomp.syscalls) own.insert(rule.names.begin(), rule.names.end());
    for (size_t i = 0; i < parent.seccomp.syscalls.size(); ++i) {
        SyscallRule rule = parent.seccomp.syscalls[i];
        std::erase_if(rule.names, [&](const std::string& name) { return own.contains(name); });
        if (rule.names.empty()) continue;
        profile.seccomp.syscalls.push_back(std::move(rule));
        profile.notes.push_back(parent.notes[i]);
    }
}

Result<std::optional<Profile>> find_parent_of(const Json& document, const ProfilePlace& place,
                                              const FindProfile& find_parent) {
    const Json* name = document.find("extends");
    if (!name) return std::optional<Profile>();
    if (!name->string())
        return plain_error(concat(place.file, ": extends: ", expected_but_found(*name, "the name of a profile")));
    return std::optional<Profile>(TRY_IN(concat(place.file, ": extends"), find_parent(*name->string())));
}

}  // namespace

static void read(const Reader& object, RuleNote& note) {
    object.optional("group", note.group);
    object.optional("reason", note.reason);
}

static void read(const Reader& object, Profile& profile) {
    object.optional("description", profile.description);
    object.optional("syscalls", profile.notes);
    read(object, profile.seccomp);
}

static void read(const Reader& object, ConfigLinux& linux_) { object.required("seccomp", linux_.seccomp); }
static void read(const Reader& object, Config& config) { object.required("linux", config.linux_); }

Result<Profile> parse_profile(Json document, const ProfilePlace& place, const FindProfile& find_parent) {
    const std::optional<Profile> parent = TRY(find_parent_of(document, place, find_parent));
    if (parent) inherit_properties(std::get<Json::Object>(document.value), parent->seccomp);
    const Json json{Json::Object{{"linux", Json{Json::Object{{"seccomp", std::move(document)}}}}}};
    Problems problems;
    Config config;
    Reader(json, problems, nullptr).into(config);
    Profile& profile = config.linux_.seccomp;
    validate_seccomp(profile.seccomp, problems);
    if (!problems.empty()) return to_error(problems_at(place.at, problems), place.file);
    if (parent) inherit_rules(profile, *parent);
    return std::move(profile);
}

// As a person would read a rule: what it is about, then what it says.
static void put_in_front(Json& rule, const RuleNote& note) {
    auto& members = std::get<Json::Object>(rule.value);
    if (!note.reason.empty()) members.insert(members.begin(), {"reason", json_of(note.reason)});
    if (!note.group.empty()) members.insert(members.begin(), {"group", json_of(note.group)});
}

Json to_json(const Profile& profile) {
    Json out = to_json(profile.seccomp);
    auto& members = std::get<Json::Object>(out.value);
    auto& rules = std::get<Json::Array>(members.back().value.value);
    for (size_t i = 0; i < rules.size(); ++i) put_in_front(rules[i], profile.notes[i]);
    if (!profile.description.empty()) members.insert(members.begin(), {"description", json_of(profile.description)});
    return out;
}

}  // namespace pinfold
