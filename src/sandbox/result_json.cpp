// The result of a job, as pinfold-result(5) describes it.
#include <charconv>

#include "base/base64.hpp"
#include "base/strings.hpp"
#include "pinfold/sandbox.hpp"
#include "spec/json.hpp"

namespace pinfold {

namespace {

template <class Value>
Json or_null(const std::optional<Value>& value) {
    if (!value) return {};
    if constexpr (std::same_as<Value, double>) return {*value};
    else return {static_cast<uint64_t>(*value)};
}

std::string hexadecimal(uint64_t number) {
    char text[16];
    return concat("0x", std::string_view(text, std::to_chars(std::begin(text), std::end(text), number, 16).ptr));
}

size_t count_replacements(std::string_view text) {
    constexpr std::string_view kReplacement = "\uFFFD";
    size_t count = 0;
    for (size_t at = 0; (at = text.find(kReplacement, at)) != text.npos; at += kReplacement.size()) ++count;
    return count;
}

// Text is what JSON can hold; where the bytes are no UTF-8, they follow unchanged in another form.
void add_output(Json::Object& members, const std::string& name, const std::string& bytes) {
    members.push_back({name, {bytes}});
    // The job may have printed some of them itself.
    if (count_replacements(json_quoted(bytes)) == count_replacements(bytes)) return;
    members.push_back({name + "_base64", {to_base64(bytes)}});
}

Json denied_json(const DeniedCall& call) {
    Json::Array arguments;
    for (const uint64_t argument : call.arguments) arguments.push_back({hexadecimal(argument)});
    return {Json::Object{{"name", {call.name}},
                         {"count", {call.count}},
                         {"arguments", {std::move(arguments)}},
                         {"program", {call.program}}}};
}

Json limit_json(const EnforcedLimit& limit) {
    const auto text_or_null = [](const std::string& text) { return text.empty() ? Json{} : Json{text}; };
    return {Json::Object{{"name", {limit.name}},
                         {"asked", {limit.asked}},
                         {"enforced_by", text_or_null(limit.enforced_by)},
                         {"value", text_or_null(limit.value)}}};
}

Json receipt_json(const ReceiptLine& line) {
    return {Json::Object{
        {"name", {line.name}}, {"planned", {line.planned}}, {"found", {line.found}}, {"holds", {line.holds}}}};
}

template <class Values, class Write>
Json array_of(const Values& values, Write write) {
    Json::Array items;
    for (const auto& value : values) items.push_back(write(value));
    return {std::move(items)};
}

Json usage_json(const SandboxResult& result) {
    return {Json::Object{{"wall_seconds", {result.wall_seconds}},
                         {"cpu_seconds", or_null(result.cpu_seconds)},
                         {"peak_memory_bytes", or_null(result.peak_memory_bytes)},
                         {"peak_processes", or_null(result.peak_processes)},
                         {"read_bytes", or_null(result.read_bytes)},
                         {"written_bytes", or_null(result.written_bytes)},
                         {"oom_kills", or_null(result.oom_kills)}}};
}

}  // namespace

const char* status_word(SandboxStatus status) {
    static constexpr const char* kWords[] = {"exited",     "signaled",     "timed_out",
                                             "oom_killed", "output_limit", "setup_failed"};
    return kWords[size_t(status)];
}

std::string to_json(const SandboxResult& result) {
    Json::Object members = {{"status", {std::string(status_word(result.status))}},
                            {"exit_code", or_null(result.exit_code)},
                            {"signal", or_null(result.signal)}};
    add_output(members, "stdout", result.out);
    add_output(members, "stderr", result.err);
    members.push_back({"truncated", {result.truncated}});
    members.push_back({"usage", usage_json(result)});
    members.push_back({"denied", result.denied ? array_of(*result.denied, denied_json) : Json{}});
    members.push_back({"limits", array_of(result.limits, limit_json)});
    members.push_back({"landlock", or_null(result.landlock_abi)});
    members.push_back({"receipt", array_of(result.receipt, receipt_json)});
    if (!result.error.empty()) members.push_back({"error", {result.error}});
    if (!result.hint.empty()) members.push_back({"hint", {result.hint}});
    return json_text({std::move(members)});
}

int exit_code_of(const SandboxResult& result) {
    constexpr int kTimedOut = 124, kNotSetUp = 125, kOutOfMemory = 137, kSignal = 128;
    switch (result.status) {
        case SandboxStatus::timed_out: return kTimedOut;
        case SandboxStatus::setup_failed: return kNotSetUp;
        case SandboxStatus::oom_killed: return kOutOfMemory;
        default: return result.exit_code ? *result.exit_code : kSignal + result.signal.value_or(0);
    }
}

}  // namespace pinfold
