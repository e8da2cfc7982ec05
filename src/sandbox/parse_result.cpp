// The way back of result_json.cpp.
#include <algorithm>
#include <charconv>

#include "base/base64.hpp"
#include "base/strings.hpp"
#include "pinfold/sandbox.hpp"
#include "spec/reader.hpp"

namespace pinfold {

namespace {

constexpr Choice<SandboxStatus> kStatus[] = {
    {"exited", SandboxStatus::exited},
    {"signaled", SandboxStatus::signaled},
    {"timed_out", SandboxStatus::timed_out},
    {"oom_killed", SandboxStatus::oom_killed},
    {"output_limit", SandboxStatus::output_limit},
    {"setup_failed", SandboxStatus::setup_failed},
};

// The text may hold NUL bytes, which a configuration's may not.
std::string text_of(const Json& root, std::string_view key) {
    const Json* value = root.find(key);
    return value && value->string() ? *value->string() : std::string();
}

std::string output_of(const Json& root, const std::string& key) {
    const Json* exact = root.find(key + "_base64");
    return exact ? from_base64(text_of(root, key + "_base64")) : text_of(root, key);
}

// An exit code or a signal: the kernel's are no larger, and neither is negative.
void read_byte(const Reader& object, std::string_view key, std::optional<int>& out) {
    std::optional<uint8_t> byte;
    object.optional(key, byte);
    if (byte) out = *byte;
}

}  // namespace

static void read(const Reader& object, DeniedCall& call) {
    std::vector<std::string> arguments;
    object.required("name", call.name);
    object.required("count", call.count);
    object.required("arguments", arguments);
    object.required("program", call.program);
    for (size_t i = 0; i < std::min(arguments.size(), call.arguments.size()); ++i) {
        const std::string_view number = arguments[i];
        call.arguments[i] = parse_number<uint64_t>(number.substr(std::min<size_t>(number.size(), 2)), 16).value_or(0);
    }
}

static void read(const Reader& object, EnforcedLimit& limit) {
    object.required("name", limit.name);
    object.required("asked", limit.asked);
    object.optional("enforced_by", limit.enforced_by);
    object.optional("value", limit.value);
}

static void read(const Reader& object, ReceiptLine& line) {
    object.required("name", line.name);
    object.required("planned", line.planned);
    object.required("found", line.found);
    object.optional("holds", line.holds);
}

namespace {

struct Usage {
    SandboxResult* result = nullptr;
};

}  // namespace

static void read(const Reader& object, Usage& usage) {
    SandboxResult& result = *usage.result;
    object.required("wall_seconds", result.wall_seconds);
    object.optional("cpu_seconds", result.cpu_seconds);
    object.optional("peak_memory_bytes", result.peak_memory_bytes);
    object.optional("peak_processes", result.peak_processes);
    object.optional("read_bytes", result.read_bytes);
    object.optional("written_bytes", result.written_bytes);
    object.optional("oom_kills", result.oom_kills);
}

Result<SandboxResult> parse_result(std::string_view json) {
    const Json root = TRY(parse_json(json, "result", kOwnJson));
    Problems problems;
    const Reader object(root, problems, nullptr);
    SandboxResult result;
    Usage usage{&result};
    object.required_choice("status", result.status, kStatus);
    read_byte(object, "exit_code", result.exit_code);
    read_byte(object, "signal", result.signal);
    object.optional("truncated", result.truncated);
    object.required("usage", usage);
    result.denied.reset();
    object.optional("denied", result.denied);
    object.optional("limits", result.limits);
    object.optional("landlock", result.landlock_abi);
    object.optional("receipt", result.receipt);
    object.optional("error", result.error);
    object.optional("hint", result.hint);
    result.out = output_of(root, "stdout");
    result.err = output_of(root, "stderr");
    if (!problems.empty()) return to_error(problems, "result");
    return result;
}

}  // namespace pinfold
