// Profiles from JSON, and back.
#include "seccomp/profile.hpp"

#include <algorithm>
#include <optional>
#include <set>

#include "base/strings.hpp"
#include "spec/parse.hpp"
#include "spec/validate.hpp"

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

Json texts(const std::vector<std::string>& items) {
    Json::Array array;
    for (const std::string& item : items) array.push_back(Json{item});
    return Json{std::move(array)};
}

// So that the document is a complete one before it is read and checked. An errno belongs to its action.
void inherit_properties(Json::Object& document, const Seccomp& parent) {
    Json::Object added;
    added.push_back({"defaultAction", Json{parent.default_action}});
    if (parent.default_errno_ret) added.push_back({"defaultErrnoRet", Json{uint64_t{*parent.default_errno_ret}}});
    const auto is = [](const char* key) { return [key](const Json::Member& item) { return item.key == key; }; };
    if (std::ranges::any_of(document, is("defaultAction"))) added.clear();
    if (std::ranges::none_of(document, is("architectures"))) {
        added.push_back({"architectures", texts(parent.architectures)});
    }
    if (std::ranges::none_of(document, is("flags"))) added.push_back({"flags", texts(parent.flags)});
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

// The way back.
namespace {

Json arg_json(const SyscallArg& arg) {
    Json::Object out = {{"index", json_of(arg.index)}, {"value", json_of(arg.value)}};
    if (arg.value_two != 0 || arg.op == "SCMP_CMP_MASKED_EQ") out.push_back({"valueTwo", json_of(arg.value_two)});
    out.push_back({"op", json_of(arg.op)});
    return Json{std::move(out)};
}

Json rule_json(const SyscallRule& rule, const RuleNote& note) {
    Json::Object out;
    if (!note.group.empty()) out.push_back({"group", json_of(note.group)});
    if (!note.reason.empty()) out.push_back({"reason", json_of(note.reason)});
    out.push_back({"names", json_of(rule.names)});
    out.push_back({"action", json_of(rule.action)});
    if (rule.errno_ret) out.push_back({"errnoRet", json_of(*rule.errno_ret)});
    if (!rule.args.empty()) out.push_back({"args", json_of(rule.args, arg_json)});
    return Json{std::move(out)};
}

// One note per rule.
Json::Object members_of(const Seccomp& seccomp, const std::vector<RuleNote>& notes) {
    Json::Object out = {{"defaultAction", json_of(seccomp.default_action)}};
    if (seccomp.default_errno_ret) out.push_back({"defaultErrnoRet", json_of(*seccomp.default_errno_ret)});
    if (!seccomp.flags.empty()) out.push_back({"flags", json_of(seccomp.flags)});
    if (!seccomp.listener_path.empty()) out.push_back({"listenerPath", json_of(seccomp.listener_path)});
    if (!seccomp.listener_metadata.empty()) out.push_back({"listenerMetadata", json_of(seccomp.listener_metadata)});
    if (!seccomp.architectures.empty()) out.push_back({"architectures", json_of(seccomp.architectures)});
    Json::Array rules;
    for (size_t i = 0; i < seccomp.syscalls.size(); ++i) rules.push_back(rule_json(seccomp.syscalls[i], notes[i]));
    out.push_back({"syscalls", Json{std::move(rules)}});
    return out;
}

}  // namespace

Json to_json(const Seccomp& seccomp) {
    return Json{members_of(seccomp, std::vector<RuleNote>(seccomp.syscalls.size()))};
}

Json to_json(const Profile& profile) {
    Json::Object out = members_of(profile.seccomp, profile.notes);
    if (!profile.description.empty()) out.insert(out.begin(), {"description", json_of(profile.description)});
    return Json{std::move(out)};
}

}  // namespace pinfold
