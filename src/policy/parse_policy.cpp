// A policy's text to Policy. Everything that is wrong with it is told at once.
#include <algorithm>
#include <array>
#include <set>

#include "base/strings.hpp"
#include "json/reader.hpp"
#include "policy/policy.hpp"
#include "policy/verbs.hpp"
#include "spec/reader.hpp"
#include "spec/rules.hpp"

namespace pinfold {

static void read(const Reader& object, SandboxLimits& limits) {
    object.optional("cpu_cores", limits.cpu_cores);
    object.optional("memory_mb", limits.memory_mb);
    object.optional("disk_mb", limits.disk_mb);
    object.optional("max_processes", limits.max_processes);
    object.optional("timeout_seconds", limits.timeout_seconds);
}

static void read(const Reader& object, Policy& policy) {
    object.optional("limits", policy.limits);
    object.optional("network", policy.networks);
    object.optional("max_sandboxes", policy.max_sandboxes);
    object.optional("profiles", policy.profiles);
    object.optional("allow_profile_files", policy.allow_profile_files);
    object.optional("runtimes", policy.runtimes);
    object.optional("verbs", policy.verbs);
    object.optional("allowed_read_paths", policy.mounts.allowed_read_paths);
    object.optional("allowed_write_paths", policy.mounts.allowed_write_paths);
    object.optional("forbidden_paths", policy.mounts.forbidden_paths);
    object.optional("audit", policy.audit);
}

namespace {

constexpr auto kNetworks = std::to_array<std::string_view>({"none", "host", "pasta"});

// A misspelt rule would not hold, and nobody would notice.
void refuse_unknown(const Json& object, const std::string& path, const std::set<std::string>& known,
                    Problems& problems) {
    for (const Json::Member& member : *object.object()) {
        const std::string place = member_path(path, member.key);
        if (!known.contains(place)) problems.add(place, "unknown, or null");
        else if (member.value.object()) refuse_unknown(member.value, place, known, problems);
    }
}

bool is_rule(std::string_view path) {
    if (!path.starts_with('/') && !path.starts_with("~/")) return false;
    const std::vector<std::string_view> names = split(path, '/');
    return std::none_of(names.begin(), names.end(), [](std::string_view name) { return name == "." || name == ".."; });
}

void check_rules(std::string_view member, std::vector<std::string>& rules, Problems& problems) {
    for (size_t i = 0; i < rules.size(); ++i) {
        while (rules[i].size() > 1 && rules[i].ends_with('/')) rules[i].pop_back();
        if (is_rule(rules[i])) continue;
        problems.add(element_path(member, i),
                     found(rules[i], "an absolute path or one that begins with ~/, without dots"));
    }
}

// Of a relative path the caller's directory would decide what it names.
void check_names(std::string_view member, const std::optional<std::vector<std::string>>& names, Problems& problems) {
    for (size_t i = 0; names && i < names->size(); ++i) {
        const std::string& name = (*names)[i];
        if (name.starts_with('/') || (!name.empty() && name.find('/') == name.npos && !name.ends_with(".json")))
            continue;
        problems.add(element_path(member, i), found(name, "a name, or an absolute path"));
    }
}

void check_values(Policy& policy, Problems& problems) {
    if (policy.networks) require_all_known("network", *policy.networks, kNetworks, problems);
    if (policy.verbs) require_all_known("verbs", *policy.verbs, verb_names(), problems);
    check_names("profiles", policy.profiles, problems);
    check_names("runtimes", policy.runtimes, problems);
    if (policy.limits.cpu_cores && !(*policy.limits.cpu_cores > 0)) {
        problems.add("limits.cpu_cores", "allowed: a number above 0");
    }
    MountPolicy& mounts = policy.mounts;
    if (mounts.allowed_read_paths) check_rules("allowed_read_paths", *mounts.allowed_read_paths, problems);
    if (mounts.allowed_write_paths) check_rules("allowed_write_paths", *mounts.allowed_write_paths, problems);
    check_rules("forbidden_paths", mounts.forbidden_paths, problems);
    if (!policy.audit.empty()) require_absolute("audit", policy.audit, problems);
}

}  // namespace

Result<Policy> parse_policy(std::string_view text, const std::string& name) {
    const Json root = TRY(parse_json(text, name));
    Policy policy;
    policy.mounts.forbidden_paths.clear();
    policy.mounts.origin = name;
    Problems problems;
    std::set<std::string> known;
    Reader(root, problems, &known).into(policy);
    if (root.object()) refuse_unknown(root, "", known, problems);
    check_values(policy, problems);
    if (!problems.empty()) return to_error(problems, name).with_hint("pinfold-policy(5) lists what a policy can say");
    return policy;
}

}  // namespace pinfold
