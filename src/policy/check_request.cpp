// A sandbox's wishes against the policies: every rule that is broken is named.
#include <algorithm>
#include <array>
#include <charconv>

#include "base/strings.hpp"
#include "policy/policy.hpp"

namespace pinfold {

namespace {

using Violations = std::vector<std::string>;

// Of one policy: each violation ends with where the rule is written.
struct Judgement {
    const Policy& policy;
    Violations& violations;

    void add(std::string_view rule, const std::string& reason) const {
        violations.push_back(concat(rule, ": ", reason, " (", policy.mounts.origin, ")"));
    }
};

std::string number_text(uint64_t number) { return std::to_string(number); }

std::string number_text(double number) {
    std::array<char, 32> text{};
    return {text.data(), std::to_chars(text.begin(), text.end(), number).ptr};
}

template <class Number>
void check_limit(std::string_view rule, std::optional<Number> wanted, std::optional<Number> most,
                 const Judgement& judgement) {
    if (!most || (wanted && *wanted <= *most)) return;
    judgement.add(rule, concat(wanted ? number_text(*wanted) : "unlimited", " is above ", number_text(*most)));
}

void check_limits(const SandboxLimits& wanted, const Judgement& judgement) {
    const SandboxLimits& most = judgement.policy.limits;
    check_limit("limits.cpu_cores", wanted.cpu_cores, most.cpu_cores, judgement);
    check_limit("limits.memory_mb", wanted.memory_mb, most.memory_mb, judgement);
    check_limit("limits.disk_mb", wanted.disk_mb, most.disk_mb, judgement);
    check_limit("limits.max_processes", wanted.max_processes, most.max_processes, judgement);
    check_limit("limits.timeout_seconds", wanted.timeout_seconds, most.timeout_seconds, judgement);
}

bool lists(const std::optional<std::vector<std::string>>& words, const std::string& word) {
    return words && std::ranges::find(*words, word) != words->end();
}

std::string not_in(const std::string& word, const std::vector<std::string>& words) {
    return concat(quoted(word), " is not in ", words.empty() ? "an empty list" : join(words, ", "));
}

void check_profile(const std::string& profile, const Judgement& judgement) {
    const Policy& policy = judgement.policy;
    if (profile.empty() || lists(policy.profiles, profile)) return;
    const bool is_file = profile.find('/') != std::string::npos || profile.ends_with(".json");
    if (!is_file && policy.profiles) return judgement.add("profiles", not_in(profile, *policy.profiles));
    if (is_file && !policy.allow_profile_files.value_or(!policy.profiles)) {
        judgement.add("allow_profile_files", concat("the file ", quoted(profile), " is not listed in profiles"));
    }
}

}  // namespace

std::vector<std::string> find_violations(const Policies& policies, const SandboxRequest& request) {
    Violations violations;
    for (const Policy& policy : policies) {
        const Judgement judgement{policy, violations};
        check_limits(request.limits, judgement);
        if (policy.networks && !lists(policy.networks, request.network)) {
            judgement.add("network", not_in(request.network, *policy.networks));
        }
        check_profile(request.profile, judgement);
        if (policy.max_sandboxes && request.running >= *policy.max_sandboxes) {
            judgement.add("max_sandboxes", concat(request.running, " of ", *policy.max_sandboxes, " run already"));
        }
    }
    return violations;
}

Result<void> check_request(const Policies& policies, const SandboxRequest& request) {
    const Violations violations = find_violations(policies, request);
    if (violations.empty()) return {};
    if (violations.size() == 1) return Error{kPolicyRefusal, concat("policy: ", violations[0]), {}};
    return Error{
        kPolicyRefusal, concat("policy: ", violations.size(), " rules are broken\n  ", join(violations, "\n  ")), {}};
}

}  // namespace pinfold
