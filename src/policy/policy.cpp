// The policies that hold here, from their files: everything that is wrong with one is told at once. Who may write them
// decides.
#include "policy/policy.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <set>

#include "base/fs.hpp"
#include "base/strings.hpp"
#include "json/json.hpp"
#include "policy/gate.hpp"
#include "policy/host_path.hpp"
#include "policy/path_rules.hpp"
#include "policy/port_rules.hpp"
#include "policy/trusted.hpp"
#include "policy/verbs.hpp"
#include "spec/reader.hpp"

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
    object.optional("publish", policy.publish);
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
                     expected_but_found(rules[i], "an absolute path or one that begins with ~/, without dots"));
    }
}

// Of a relative path the caller's directory would decide what it names.
void check_names(std::string_view member, const std::optional<std::vector<std::string>>& names, Problems& problems) {
    for (size_t i = 0; names && i < names->size(); ++i) {
        const std::string& name = (*names)[i];
        if (name.starts_with('/') || (!name.empty() && name.find('/') == name.npos && !name.ends_with(".json")))
            continue;
        problems.add(element_path(member, i), expected_but_found(name, "a name, or an absolute path"));
    }
}

void check_values(Policy& policy, Problems& problems) {
    if (policy.networks) require_all_known("network", *policy.networks, kNetworks, problems);
    if (policy.verbs) require_all_known("verbs", *policy.verbs, verb_names(), problems);
    for (size_t i = 0; policy.publish && i < policy.publish->size(); ++i) {
        const std::string& rule = (*policy.publish)[i];
        if (!parse_port_rule(rule))
            problems.add(element_path("publish", i), expected_but_found(rule, "ADDR, ADDR:PORT or ADDR:FIRST-LAST"));
    }
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
    policy.mounts.state_roots.clear();  // the built-in one has them
    policy.mounts.origin = name;
    Problems problems;
    std::set<std::string> known;
    Reader(root, problems, &known).into(policy);
    refuse_unknown(root, known, problems);  // a misspelt rule would not hold
    check_values(policy, problems);
    if (!problems.empty()) return to_error(problems, name).with_hint("pinfold-policy(5) lists what a policy can say");
    return policy;
}

namespace {

Result<Policy> load(int directory, const std::string& file, const std::string& name, bool callers_own) {
    const UniqueFd opened = TRY(open_regular(directory, file));
    TRY(require_trusted(opened.get(), name, callers_own));
    return parse_policy(TRY(read_at_most(opened.get(), name, kMaxDocument)), name);
}

std::string system_policy_file() { return concat(kPolicyDirectory, '/', kPolicyName); }

// In most places there is none, which is found out by one system call.
Result<void> add_system_policy(Policies& policies) {
    const UniqueFd directory(::open(kPolicyDirectory, O_PATH | O_DIRECTORY | O_CLOEXEC));
    if (!directory && errno == ENOENT) return {};
    if (!directory) return errno_error(concat("open ", kPolicyDirectory));
    // Whoever may write to it could remove the file.
    TRY(require_trusted(directory.get(), kPolicyDirectory, false));
    Result<Policy> policy = load(directory.get(), kPolicyName, system_policy_file(), false);
    if (!policy && policy.error().code == ENOENT) return {};
    if (!policy && policy.error().code == EACCES) {
        return std::move(policy).error().with_hint("let those who run sandboxes read it: chmod a+r");
    }
    if (!policy) return std::move(policy).error();
    policies.push_back(std::move(policy).value());
    return {};
}

std::vector<MountPolicy> mounts_of(const Policies& policies) {
    std::vector<MountPolicy> mounts;
    for (const Policy& policy : policies) mounts.push_back(policy.mounts);
    return mounts;
}

}  // namespace

// What no sandbox is given, whatever else is allowed.
std::vector<std::string> default_forbidden_paths() {
    std::vector<std::string> paths = {
        // Whoever reads these becomes somebody else; whoever writes them becomes root.
        "/etc/shadow", "/etc/shadow-", "/etc/gshadow", "/etc/gshadow-", "/etc/sudoers", "/etc/sudoers.d",
        "/etc/ssh/ssh_host_*_key", "/etc/pinfold", "/root",
        // The kernel's interfaces. Each is recognised by its type as well, wherever it is mounted.
        "/proc", "/sys", "/dev",
        // Sockets of those who start programs with the host's rights, and what they and pinfold keep of containers.
        "/run/docker.sock", "/var/run/docker.sock", "/run/docker", "/run/containerd", "/run/podman", "/run/crio",
        "/run/buildkit", "/run/dbus", "/run/systemd", "/run/pinfold", "/run/user/*/podman", "/run/user/*/docker",
        "/run/user/*/docker.sock", "/run/user/*/bus", "/run/user/*/systemd", "/run/user/*/gnupg", "/run/user/*/keyring",
        "/run/user/*/pinfold", "/tmp/.pinfold-*"};
    // Keys and tokens, of the caller and of everybody.
    for (const char* home : {"~", "/home/*"}) {
        for (const char* name : {".ssh", ".gnupg", ".aws", ".azure", ".kube", ".docker", ".netrc", ".config"}) {
            paths.push_back(std::string(home) + "/" + name);
        }
    }
    return paths;
}

// Today's call may have another environment than tomorrow's, by cron(8) as a rule.
std::vector<std::string> default_state_roots() {
    std::vector<std::string> roots = {"/run/pinfold"};
    const char* named = std::getenv("XDG_RUNTIME_DIR");
    if (named != nullptr && *named == '/') roots.push_back(concat(named, "/pinfold"));
    if (::geteuid() == 0) return roots;
    roots.push_back(concat("/run/user/", ::geteuid(), "/pinfold"));
    roots.push_back(concat("/tmp/.pinfold-", ::geteuid()));
    return roots;
}

bool Policy::is_system() const { return mounts.origin == system_policy_file(); }

Result<Policies> load_policies(const std::string& added) {
    Policies policies(1);
    TRY_IN("policy", add_system_policy(policies));
    if (!added.empty()) TRY(add_policy(policies, added, added));
    return policies;
}

Result<void> add_policy(Policies& policies, const std::string& file, const std::string& name) {
    Result<Policy> policy = load(AT_FDCWD, file, name, true);
    if (!policy) return std::move(policy).error().within("policy");
    policies.push_back(std::move(policy).value());
    return {};
}

Policies for_sandboxes(Policies policies, const std::string& state_root, const std::string& audit) {
    std::vector<std::string> logs = audit_files(policies);
    if (!audit.empty()) logs.push_back(audit);
    MountPolicy& built_in = policies.front().mounts;
    for (const std::string& log : logs) {
        const std::string target = link_target(log);  // of a descriptor, where main has opened it
        const std::string& path = target.starts_with('/') ? target : log;
        built_in.audit_logs.insert(built_in.audit_logs.end(), {path, concat(path, ".head")});
    }
    std::vector<std::string>& roots = built_in.state_roots;
    if (std::ranges::find(roots, state_root) == roots.end()) roots.push_back(state_root);
    const bool is_free = policies.size() == 1 && ::geteuid() == 0 && !has_borrowed_rights();
    if (is_free) built_in.given_by_name = {"/root"};
    return policies;
}

Result<UniqueFd> open_allowed(const Policies& policies, const std::string& path, Access access) {
    return open_allowed(mounts_of(policies), path, access);
}

Result<UniqueFd> open_parent_allowed(const Policies& policies, const std::string& path, Access access) {
    return open_parent_allowed(mounts_of(policies), path, access);
}

Result<void> check_apart_from_states(const std::vector<std::string>& paths, const std::vector<std::string>& roots) {
    for (const std::string& root : roots) {
        for (const std::string& place : places_on_the_way(root)) {
            for (const std::string& path : paths) {
                if (is_within(path, place) || is_within(place, path)) return state_refusal(path, place, root);
            }
        }
    }
    return {};
}

// The built-in rules are left out: what is shown was chosen by them.
Result<void> check_not_forbidden(const Policies& policies, const std::string& path) {
    std::vector<MountPolicy> mounts = mounts_of(policies);
    mounts.erase(mounts.begin());
    std::erase_if(mounts, [](const MountPolicy& one) { return one.forbidden_paths.empty(); });
    for (MountPolicy& one : mounts) one.allowed_read_paths = one.allowed_write_paths = std::nullopt;
    if (!mounts.empty()) TRY(open_allowed(mounts, path, Access::read));
    return {};
}

std::vector<std::string> audit_files(const Policies& policies) {
    std::vector<std::string> files;
    for (const Policy& policy : policies) {
        const bool is_new = std::ranges::find(files, policy.audit) == files.end();
        if (!policy.audit.empty() && is_new) files.push_back(policy.audit);
    }
    return files;
}

}  // namespace pinfold
