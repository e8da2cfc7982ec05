// Whether the policies allow what a caller asks for.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "policy/policy.hpp"

namespace pinfold {

// That a sandbox is to be reached by. 0: any that is free.
struct HostPort {
    std::string address;
    uint16_t port = 0;
};

struct SandboxRequest {
    SandboxLimits limits;
    std::string network = "none";
    std::string profile;  // a name or a file; empty: none is asked about
    std::vector<HostPort> ports{};
};

// One sentence per rule that is broken: "limits.memory_mb: 8192 is above 4096 (/etc/pinfold/policy.json)".
std::vector<std::string> find_violations(const Policies& policies, const SandboxRequest& request);

// The same as an error, with kPolicyRefusal.
Result<void> check_request(const Policies& policies, const SandboxRequest& request);

// Whether there may be one more sandbox than these.
Result<void> check_count(const Policies& policies, uint64_t running);

// Of a seccomp profile by its name, or by a file's path: that file, where it is not one that a policy lists. Nothing,
// where it can be opened by its name: without a policy any file can.
Result<UniqueFd> open_profile_allowed(const Policies& policies, const std::string& profile);
// Of a name or path that the caller gave. Without a system's policy, any.
Result<void> check_runtime(const Policies& policies, const std::string& runtime);
// New limits of a sandbox: what is not given stays, and is not judged.
Result<void> check_update(const Policies& policies, const SandboxLimits& wanted);
// The longest that a sandbox may live; nothing: for ever.
std::optional<uint64_t> longest_life(const Policies& policies);

}  // namespace pinfold
