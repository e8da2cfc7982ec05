// What an administrator lets sandboxes have: /etc/pinfold/policy.json, and files that are stricter still.
#pragma once

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

// A default one allows everything but the forbidden paths.
struct Policy {
    SandboxLimits limits;                              // the highest
    std::optional<std::vector<std::string>> networks;  // of "none", "host", "pasta"; absent: all
    std::optional<uint64_t> max_sandboxes;             // at the same time
    std::optional<std::vector<std::string>> profiles;  // names, and absolute paths of files; absent: all
    std::optional<bool> allow_profile_files;           // absent: if there is no list of profiles
    MountPolicy mounts;
    std::string audit;  // the log's file; empty: none
};

// All have to agree. The first is the built-in one.
using Policies = std::vector<Policy>;

// The system's policy, if there is one, and that of the file `added`, if it is not empty. A file that others than its
// owner could have changed, or that has a mistake, is an error: without it everything would be allowed.
Result<Policies> load_policies(const std::string& added);

// Only what the text says: its forbidden_paths come without the defaults.
Result<Policy> parse_policy(std::string_view text, const std::string& name);

struct SandboxRequest {
    SandboxLimits limits;
    std::string network = "none";
    std::string profile;   // a name or a file; empty: none is asked about
    uint64_t running = 0;  // other sandboxes
};

// One sentence per rule that is broken: "limits.memory_mb: 8192 is above 4096 (/etc/pinfold/policy.json)".
std::vector<std::string> find_violations(const Policies& policies, const SandboxRequest& request);

// The same as an error, with kPolicyRefusal.
Result<void> check_request(const Policies& policies, const SandboxRequest& request);

Result<UniqueFd> open_allowed(const Policies& policies, const std::string& path, Access access);
Result<UniqueFd> open_parent_allowed(const Policies& policies, const std::string& path);

// Where events are logged to, without repetitions.
std::vector<std::string> audit_files(const Policies& policies);

}  // namespace pinfold
