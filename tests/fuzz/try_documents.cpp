// Limits, policies, results and states: smaller documents, some of which pinfold has written itself.
#include "fuzz/target.hpp"
#include "json/json.hpp"
#include "pinfold/generate.hpp"
#include "pinfold/sandbox.hpp"
#include "policy/check_request.hpp"
#include "spec/parse.hpp"
#include "spec/validate.hpp"
#include "state/store.hpp"

namespace pinfold::fuzz {

void try_limits(std::string_view input) {
    const Result<ResourceLimits> limits = parse_resource_limits(input, "limits");
    if (!limits) return check_refusal(limits.error());
    must_hold(check_resource_limits(*limits).has_value(), "limits that were read are within their bounds");
    const std::optional<Json> config = read_document(config_json(generate(*limits, {})));
    Problems problems;
    validate_spec(parse_spec(*config, problems), problems);
    must_hold(problems.empty(), "limits give a valid configuration");
}

void try_policy(std::string_view input) {
    const Result<Policy> policy = parse_policy(input, "policy");
    if (!policy) return check_refusal(policy.error());
    const SandboxRequest little{{0.01, 1, 1, 1, 1}, "none", "strict"};
    const SandboxRequest much{{1e9, UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX}, "host", "/a"};
    for (const SandboxRequest& request : {little, much}) {
        const Result<void> checked = check_request({Policy{}, *policy}, request);
        if (!checked) check_refusal(checked.error());
    }
    for (const uint64_t running : {uint64_t{0}, UINT64_MAX - 1}) {
        const Result<void> counted = check_count({Policy{}, *policy}, running);
        if (!counted) check_refusal(counted.error());
    }
}

void try_result(std::string_view input) {
    const Result<SandboxResult> result = parse_result(input);
    if (!result) return check_refusal(result.error());
    const std::string text = to_json(*result);
    const Result<SandboxResult> again = parse_result(text);
    must_hold(again.has_value(), "a result that was written can be read");
    must_hold(to_json(*again) == text, "a result that was written is read as the same");
}

void try_state(std::string_view input) {
    const Result<ContainerRecord> record = record_from_json(input);
    if (!record) return check_refusal(record.error());
    const std::string text = record_to_json(*record);
    const Result<ContainerRecord> again = record_from_json(text);
    must_hold(again.has_value(), "a state that was written can be read");
    must_hold(record_to_json(*again) == text, "a state that was written is read as the same");
    must_hold(parse_json(state_to_json({*record}), "state").has_value(), "a state is printed as JSON");
}

}  // namespace pinfold::fuzz
