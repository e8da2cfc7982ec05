// Profiles from JSON, and back.
#include "seccomp/profile.hpp"

#include <algorithm>
#include <cstring>
#include <optional>
#include <set>

#include "base/strings.hpp"
#include "seccomp/compile.hpp"
#include "seccomp/conditions.hpp"
#include "spec/parse.hpp"
#include "spec/validate.hpp"
#include "spec/write_seccomp.hpp"

namespace pinfold {

namespace {

// The rules for configs name paths from here on; a profile may be a file of its own.
constexpr std::string_view kInConfig = "linux.seccomp";

// What a file may say besides the specification's properties: pinfold's own, and those of Docker's and Podman's files.
struct RuleExtras {
    RuleNote note;
    RuleConditions includes, excludes;
    std::string errno_name;
    std::string comment;
};
struct ArchitectureFamily {
    std::string architecture;
    std::vector<std::string> sub_architectures;
};
struct ProfileFile {
    Profile profile;
    std::vector<RuleExtras> extras;  // one per rule
    std::string default_errno_name;
    std::vector<ArchitectureFamily> families;
    std::string comment, parent;  // for people, and read before
};
struct ConfigLinux {
    ProfileFile seccomp;
};
struct Config {
    ConfigLinux linux_;
};

bool has(const Json& object, std::string_view key) { return object.find(key) != nullptr; }

// That is how Go programs write what is unset.
void drop_nulls(Json& json) {
    if (auto* items = std::get_if<Json::Array>(&json.value)) std::ranges::for_each(*items, drop_nulls);
    auto* members = std::get_if<Json::Object>(&json.value);
    if (!members) return;
    std::erase_if(*members, [](const Json::Member& member) { return member.value.is_null(); });
    for (Json::Member& member : *members) drop_nulls(member.value);
}

// Docker's oldest files have one name in each rule.
void make_list_of_name(Json& rule) {
    auto* members = std::get_if<Json::Object>(&rule.value);
    if (!members || has(rule, "names")) return;
    for (Json::Member& member : *members) {
        if (member.key == "name" && member.value.string()) member = {"names", Json{Json::Array{member.value}}};
    }
}

void make_lists_of_names(Json& document) {
    auto* members = std::get_if<Json::Object>(&document.value);
    for (size_t i = 0; members && i < members->size(); ++i) {
        auto* rules = (*members)[i].key == "syscalls" ? std::get_if<Json::Array>(&(*members)[i].value.value) : nullptr;
        if (rules) std::ranges::for_each(*rules, make_list_of_name);
    }
}

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
void inherit_properties(Json& document, const Seccomp& parent) {
    Json::Object added;
    if (!has(document, "defaultAction")) {
        added.push_back({"defaultAction", Json{parent.default_action}});
        const bool has_errno = has(document, "defaultErrnoRet") || has(document, "defaultErrno");
        if (parent.default_errno_ret && !has_errno)
            added.push_back({"defaultErrnoRet", Json{uint64_t{*parent.default_errno_ret}}});
    }
    if (!has(document, "architectures") && !has(document, "archMap"))
        added.push_back({"architectures", json_of(parent.architectures)});
    if (!has(document, "flags")) added.push_back({"flags", json_of(parent.flags)});
    auto& members = std::get<Json::Object>(document.value);
    std::ranges::move(added, std::back_inserter(members));
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

std::optional<uint32_t> errno_number(std::string_view name) {
    if (const std::optional<uint32_t> number = parse_number<uint32_t>(name)) return number;
    constexpr int kLastErrno = 4095;
    for (int code = 1; code <= kLastErrno; ++code) {
        const char* known = ::strerrorname_np(code);
        if (known && name == known) return uint32_t(code);
    }
    return std::nullopt;
}

// Podman's files have the number and the name.
void take_errno(const std::string& name, std::string path, std::optional<uint32_t>& number, Problems& problems) {
    if (name.empty()) return;
    const std::optional<uint32_t> named = errno_number(name);
    if (!named) problems.add(std::move(path), expected_but_found(name, "an errno such as EPERM"));
    else if (number && *number != *named)
        problems.add(std::move(path), concat(name, " is ", *named, ", not ", *number));
    else number = named;
}

// The family of this machine, as Docker chooses it; none: its own architecture alone.
void take_family(const std::vector<ArchitectureFamily>& families, Seccomp& seccomp, Problems& problems) {
    if (families.empty()) return;
    if (!seccomp.architectures.empty())
        problems.add(concat(kInConfig, ".archMap"), "excludes architectures: one of them says which there are");
    for (const ArchitectureFamily& family : families) {
        if (!is_native_architecture(family.architecture)) continue;
        seccomp.architectures = family.sub_architectures;
        seccomp.architectures.insert(seccomp.architectures.begin(), family.architecture);
    }
}

// To what the specification's rules are for.
void resolve_extras(ProfileFile& file, Problems& problems) {
    Seccomp& seccomp = file.profile.seccomp;
    take_family(file.families, seccomp, problems);
    take_errno(file.default_errno_name, concat(kInConfig, ".defaultErrno"), seccomp.default_errno_ret, problems);
    for (size_t i = 0; i < file.extras.size(); ++i) {
        const RuleExtras& extras = file.extras[i];
        const std::string at = element_path(concat(kInConfig, ".syscalls"), i);
        take_errno(extras.errno_name, member_path(at, "errno"), seccomp.syscalls[i].errno_ret, problems);
        validate_conditions(extras.includes, member_path(at, "includes"), problems);
        validate_conditions(extras.excludes, member_path(at, "excludes"), problems);
    }
}

// A rule that does not hold here says nothing: neither to the call, nor against what another profile says of it.
Profile with_rules_that_hold(ProfileFile file) {
    Profile out = std::move(file.profile);
    std::vector<SyscallRule> rules;
    for (size_t i = 0; i < file.extras.size(); ++i) {
        if (!holds_here(file.extras[i].includes, file.extras[i].excludes)) continue;
        rules.push_back(std::move(out.seccomp.syscalls[i]));
        out.notes.push_back(std::move(file.extras[i].note));
    }
    out.seccomp.syscalls = std::move(rules);
    return out;
}

}  // namespace

static void read(const Reader& object, RuleExtras& extras) {
    object.optional("group", extras.note.group);
    object.optional("reason", extras.note.reason);
    object.optional("includes", extras.includes);
    object.optional("excludes", extras.excludes);
    object.optional("errno", extras.errno_name);
    object.optional("comment", extras.comment);
}

static void read(const Reader& object, ArchitectureFamily& family) {
    object.required("architecture", family.architecture);
    object.optional("subArchitectures", family.sub_architectures);
}

static void read(const Reader& object, ProfileFile& file) {
    object.optional("description", file.profile.description);
    object.optional("syscalls", file.extras);
    object.optional("defaultErrno", file.default_errno_name);
    object.optional("archMap", file.families);
    object.optional("comment", file.comment);
    object.optional("extends", file.parent);
    read(object, file.profile.seccomp);
}

static void read(const Reader& object, ConfigLinux& linux_) { object.required("seccomp", linux_.seccomp); }
static void read(const Reader& object, Config& config) { object.required("linux", config.linux_); }

Result<Profile> parse_profile(Json document, const ProfilePlace& place, const FindProfile& find_parent) {
    drop_nulls(document);
    const std::optional<Profile> parent = TRY(find_parent_of(document, place, find_parent));
    if (parent) inherit_properties(document, parent->seccomp);
    make_lists_of_names(document);
    const Json json{Json::Object{{"linux", Json{Json::Object{{"seccomp", std::move(document)}}}}}};
    Problems problems;
    Config config;
    std::set<std::string> consumed;
    Reader(json, problems, &consumed).into(config);
    refuse_unknown(json, consumed, problems);
    ProfileFile& file = config.linux_.seccomp;
    resolve_extras(file, problems);
    validate_seccomp(file.profile.seccomp, problems);
    if (!problems.empty()) {
        return to_error(problems_at(place.at, problems), place.file)
            .with_hint("pinfold-seccomp-profiles(7) lists what a profile can say");
    }
    Profile profile = with_rules_that_hold(std::move(file));
    if (parent) inherit_rules(profile, *parent);
    return profile;
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
