// A sandbox's wishes against the policies: every rule that is broken is named.
#include "policy/check_request.hpp"

#include <algorithm>
#include <array>
#include <charconv>

#include "base/address.hpp"
#include "base/strings.hpp"
#include "policy/port_rules.hpp"

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

std::string number_text(uint64_t number) {
    return number == kUnlimited.max_processes ? "unlimited" : std::to_string(number);
}

std::string number_text(double number) {
    if (number == kUnlimited.cpu_cores) return "unlimited";
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

bool is_profile_file(const std::string& profile) {
    return profile.find('/') != std::string::npos || profile.ends_with(".json");
}

void check_profile(const std::string& profile, const Judgement& judgement) {
    const Policy& policy = judgement.policy;
    if (profile.empty() || lists(policy.profiles, profile)) return;
    const bool is_file = is_profile_file(profile);
    if (!is_file && policy.profiles) return judgement.add("profiles", not_in(profile, *policy.profiles));
    if (is_file && !policy.allow_profile_files.value_or(!policy.profiles)) {
        judgement.add("allow_profile_files", concat("the file ", quoted(profile), " is not listed in profiles"));
    }
}

// Who is bound by a policy opens nothing to others that it does not list.
void check_ports(const std::vector<HostPort>& ports, const Judgement& judgement) {
    const std::vector<std::string> rules = judgement.policy.publish.value_or(std::vector<std::string>());
    for (const HostPort& port : ports) {
        const auto allows = [&](const std::string& text) {
            const std::optional<PortRule> rule = parse_port_rule(text);
            return rule && rule->allows(port.address, port.port);
        };
        if (std::ranges::none_of(rules, allows))
            judgement.add("publish", not_in(address_text(port.address, port.port), rules));
    }
}

Result<void> to_result(const Violations& violations) {
    if (violations.empty()) return {};
    if (violations.size() == 1) return Error{kPolicyRefusal, concat("policy: ", violations[0]), {}};
    return Error{
        kPolicyRefusal, concat("policy: ", violations.size(), " rules are broken\n  ", join(violations, "\n  ")), {}};
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
        if (&policy != &policies.front()) check_ports(request.ports, judgement);
    }
    return violations;
}

Result<void> check_request(const Policies& policies, const SandboxRequest& request) {
    return to_result(find_violations(policies, request));
}

Result<void> check_count(const Policies& policies, uint64_t running) {
    Violations violations;
    for (const Policy& policy : policies) {
        const std::optional<uint64_t>& most = policy.max_sandboxes;
        if (!most || running < *most) continue;
        Judgement{policy, violations}.add("max_sandboxes", concat(running, " of ", *most, " run already"));
    }
    return to_result(violations);
}

Result<UniqueFd> open_profile_allowed(const Policies& policies, const std::string& profile) {
    Violations violations;
    for (const Policy& policy : policies) check_profile(profile, {policy, violations});
    TRY(to_result(violations));
    const bool is_listed =
        std::ranges::any_of(policies, [&](const Policy& policy) { return lists(policy.profiles, profile); });
    if (policies.size() == 1 || is_listed || !is_profile_file(profile)) return UniqueFd();
    return open_allowed(policies, profile, Access::read);
}

Result<void> check_runtime(const Policies& policies, const std::string& runtime) {
    Violations violations;
    for (const Policy& policy : policies) {
        const Judgement judgement{policy, violations};
        if (policy.runtimes && !lists(policy.runtimes, runtime)) {
            judgement.add("runtimes", not_in(runtime, *policy.runtimes));
        } else if (policy.is_system() && !policy.runtimes && runtime.find('/') != std::string::npos) {
            judgement.add("runtimes", concat("the program ", quoted(runtime), " is not listed"));
        }
    }
    return to_result(violations);
}

Result<void> check_update(const Policies& policies, const SandboxLimits& wanted) {
    Violations violations;
    for (const Policy& policy : policies) {
        const Judgement judgement{policy, violations};
        const SandboxLimits& most = policy.limits;
        if (wanted.cpu_cores) check_limit("limits.cpu_cores", wanted.cpu_cores, most.cpu_cores, judgement);
        if (wanted.memory_mb) check_limit("limits.memory_mb", wanted.memory_mb, most.memory_mb, judgement);
        if (wanted.max_processes)
            check_limit("limits.max_processes", wanted.max_processes, most.max_processes, judgement);
    }
    return to_result(violations);
}

std::optional<uint64_t> longest_life(const Policies& policies) {
    std::optional<uint64_t> least;
    for (const Policy& policy : policies) {
        const std::optional<uint64_t>& most = policy.limits.timeout_seconds;
        if (most) least = std::min(*most, least.value_or(*most));
    }
    return least;
}

}  // namespace pinfold
