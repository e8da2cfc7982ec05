// What an administrator lets sandboxes have: /etc/pinfold/policy.json, and files that are stricter still.
#pragma once

#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "pinfold/mount_policy.hpp"
#include "pinfold/result.hpp"

namespace pinfold {

inline constexpr const char* kPolicyDirectory = "/etc/pinfold";
inline constexpr const char* kPolicyName = "policy.json";

// Empty: no limit.
struct SandboxLimits {
    std::optional<double> cpu_cores;
    std::optional<uint64_t> memory_mb;
    std::optional<uint64_t> disk_mb;
    std::optional<uint64_t> max_processes;
    std::optional<uint64_t> timeout_seconds;
};

// In a place where an empty value means what is not asked about.
inline constexpr SandboxLimits kUnlimited = {HUGE_VAL, UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX};

// A default one allows everything but the forbidden paths.
struct Policy {
    SandboxLimits limits;                              // the highest
    std::optional<std::vector<std::string>> networks;  // of "none", "host", "pasta"; absent: all
    std::optional<std::vector<std::string>> publish;   // addresses with ports; absent: none, unless it is built in
    std::optional<uint64_t> max_sandboxes;             // at the same time
    std::optional<std::vector<std::string>> profiles;  // names, and absolute paths of files; absent: all
    std::optional<bool> allow_profile_files;           // absent: if there is no list of profiles
    std::optional<std::vector<std::string>> runtimes;  // names, and absolute paths; absent: names that pinfold knows
    std::optional<std::vector<std::string>> verbs;     // of anybody; absent: see policy/verbs.hpp
    MountPolicy mounts;
    std::string audit;  // the log's file; empty: none

    bool is_system() const;  // or it is the built-in one, or one that the caller has added
};

// All have to agree. The first is the built-in one.
using Policies = std::vector<Policy>;

// The system's policy, if there is one, and that of the file `added`, if it is not empty. A file that others than its
// owner could have changed, or that has a mistake, is an error: without it everything would be allowed.
Result<Policies> load_policies(const std::string& added);
// One more, which messages call `name`.
Result<void> add_policy(Policies& policies, const std::string& file, const std::string& name);

// Only what the text says: its forbidden_paths come without the defaults.
Result<Policy> parse_policy(std::string_view text, const std::string& name);

// As they bind in what a sandbox is given, where states are kept in this directory: root itself, by no policy but the
// built-in one, may name what is in its home.
Policies for_sandboxes(Policies policies, const std::string& state_root, const std::string& audit);

Result<UniqueFd> open_allowed(const Policies& policies, const std::string& path, Access access);
Result<UniqueFd> open_parent_allowed(const Policies& policies, const std::string& path, Access access);
// Of what pinfold itself shows to every sandbox: the lists of allowed paths are about what callers ask for.
Result<void> check_not_forbidden(const Policies& policies, const std::string& path);
// By their names, of paths without links.
Result<void> check_apart_from_states(const std::vector<std::string>& paths, const std::vector<std::string>& roots);

// Where events are logged to, without repetitions.
std::vector<std::string> audit_files(const Policies& policies);

}  // namespace pinfold
