// The list of the targets, and what several of them check.
#include "fuzz/target.hpp"

#include <algorithm>

#include "base/log.hpp"
#include "json/json.hpp"

namespace pinfold::fuzz {

namespace {

constexpr Target kTargets[] = {
    {"config", try_config, 4000},  {"process", try_process, 10000}, {"resources", try_resources, 10000},
    {"limits", try_limits, 10000}, {"policy", try_policy, 20000},   {"result", try_result, 20000},
    {"state", try_state, 20000},   {"seccomp", try_seccomp, 1000},  {"bpf", try_bpf, 20000},
    {"words", try_words, 20000},   {"audit", try_audit, 2000},      {"copy", try_copy, 2000},
};

// Warnings about what they are given are as many as there are inputs.
[[maybe_unused]] const bool kSilent = (stop_logging(), true);

bool is_control(char c) { return static_cast<unsigned char>(c) < 0x20 && c != '\n'; }

}  // namespace

std::span<const Target> targets() { return kTargets; }

void check_refusal(const Error& error) {
    must_hold(!error.message.empty(), "a refusal has its reason");
    must_hold(std::ranges::none_of(error.message, is_control), "a refusal can be printed");
    must_hold(std::ranges::none_of(error.hint, is_control), "a hint can be printed");
}

void check_problems(const Problems& problems, const Json& document) {
    must_hold(!problems.items().empty(), "a refusal has a problem");
    for (const Problem& problem : problems.items()) {
        must_hold(!problem.message.empty(), "a problem has a message");
        must_hold(!problem.path.empty() || !document.object(), "a problem has a path");
    }
    check_refusal(to_error(problems, "document"));
}

std::optional<Json> read_document(std::string_view input) {
    Result<Json> json = parse_json(input, "document");
    if (!json) {
        check_refusal(json.error());
        return std::nullopt;
    }
    const std::string text = json_text(*json);
    // Bounds that an input can reach.
    const Result<Json> bounded = parse_json(input, "document", {.values = 64, .longest = 32});
    if (!bounded) check_refusal(bounded.error());
    else must_hold(json_text(*bounded) == text, "what is within the bounds is read as the same");
    const Result<Json> again = parse_json(text, "printed");
    must_hold(again.has_value(), "what was printed can be read");
    must_hold(json_text(*again) == text, "what was printed is read as the same");
    return std::move(json).value();
}

}  // namespace pinfold::fuzz
