// The result of a job, as pinfold-result(5) describes it.
#include "sandbox/result_json.hpp"

#include <algorithm>
#include <charconv>
#include <utility>
#include <vector>

#include "base/base64.hpp"
#include "base/strings.hpp"
#include "base/units.hpp"
#include "json/json.hpp"
#include "spec/reader.hpp"

namespace pinfold {

namespace {

// In the order of the values.
constexpr Choice<SandboxStatus> kStatus[] = {
    {"exited", SandboxStatus::exited},
    {"signaled", SandboxStatus::signaled},
    {"timed_out", SandboxStatus::timed_out},
    {"oom_killed", SandboxStatus::oom_killed},
    {"output_limit", SandboxStatus::output_limit},
    {"setup_failed", SandboxStatus::setup_failed},
};

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

// The next piece of a text that is too long to be handled as a whole. No character is split: at most three of its bytes
// follow the first. And bytes are encoded by threes.
std::string_view next_piece(std::string_view text, bool of_characters) {
    constexpr size_t kPiece = 48 << 10;
    size_t size = std::min(text.size(), kPiece);
    const auto continues = [&] { return size < text.size() && (text[size] & 0xc0) == 0x80; };
    for (int i = 0; i < 3 && of_characters && continues(); ++i) --size;
    return text.substr(0, size);
}

// Whether JSON can hold it unchanged. The job may have printed some replacements itself.
bool is_text(std::string_view bytes) {
    while (!bytes.empty()) {
        const std::string_view piece = next_piece(bytes, true);
        if (count_replacements(json_quoted(piece)) != count_replacements(piece)) return false;
        bytes.remove_prefix(piece.size());
    }
    return true;
}

Result<void> write_text(std::string_view bytes, const TextSink& sink) {
    while (!bytes.empty()) {
        const std::string_view piece = next_piece(bytes, true);
        const std::string quoted = json_quoted(piece);
        TRY(sink(std::string_view(quoted).substr(1, quoted.size() - 2)));
        bytes.remove_prefix(piece.size());
    }
    return {};
}

Result<void> write_base64(std::string_view bytes, const TextSink& sink) {
    while (!bytes.empty()) {
        const std::string_view piece = next_piece(bytes, false);
        TRY(sink(to_base64(piece)));
        bytes.remove_prefix(piece.size());
    }
    return {};
}

Json denied_json(const DeniedCall& call) {
    Json::Array arguments;
    for (const uint64_t argument : call.arguments) arguments.push_back({hexadecimal(argument)});
    return {Json::Object{{"name", {call.name}},
                         {"count", {call.count}},
                         {"arguments", {std::move(arguments)}},
                         {"program", {call.program}}}};
}

Json text_or_null(const std::string& text) { return text.empty() ? Json{} : Json{text}; }

// A number as a number, a truth as a truth; what is neither is a text ("max 100000", "net:[4026532183]").
Json plain_value(const std::string& text) {
    if (text == "true" || text == "false") return {text == "true"};
    if (const auto whole = parse_number<uint64_t>(text)) return {*whole};
    double number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, std::chars_format::fixed);
    if (error == std::errc() && end == text.data() + text.size()) return {number};
    return text_or_null(text);
}

Json limit_json(const EnforcedLimit& limit) {
    return {Json::Object{{"name", {limit.name}},
                         {"asked", plain_value(limit.asked)},
                         {"enforced_by", text_or_null(limit.enforced_by)},
                         {"value", plain_value(limit.value)},
                         {"hit", json_of(limit.hit)}}};
}

Json receipt_json(const ReceiptLine& line) {
    return {Json::Object{
        {"name", {line.name}}, {"planned", {line.planned}}, {"found", {line.found}}, {"holds", {line.holds}}}};
}

Json failure_json(const CopyFailure& failure) {
    Json::Object members = {
        {"source", {failure.source}}, {"destination", {failure.destination}}, {"error", {failure.error}}};
    if (!failure.hint.empty()) members.push_back({"hint", {failure.hint}});
    return {std::move(members)};
}

Json published_json(const PublishedPort& port) {
    return {Json::Object{
        {"address", {port.address}}, {"host_port", {uint64_t(port.host)}}, {"inside_port", {uint64_t(port.inside)}}}};
}

Json usage_json(const SandboxResult& result) {
    return {Json::Object{{"wall_seconds", {result.wall_seconds}},
                         {"cpu_seconds", json_of(result.cpu_seconds)},
                         {"peak_memory_bytes", json_of(result.peak_memory_bytes)},
                         {"peak_processes", json_of(result.peak_processes)},
                         {"read_bytes", json_of(result.read_bytes)},
                         {"written_bytes", json_of(result.written_bytes)},
                         {"oom_kills", json_of(result.oom_kills)}}};
}

}  // namespace

const char* status_word(SandboxStatus status) { return kStatus[size_t(status)].word.data(); }

namespace {

// A member that is still empty in the frame around it.
struct Blank {
    std::string name;
    const std::string* bytes;
    Result<void> (*write)(std::string_view, const TextSink&);
};

// Text is what JSON can hold; where the bytes are no UTF-8, they follow unchanged in another form.
std::vector<Blank> blanks_of(const SandboxResult& result) {
    std::vector<Blank> blanks;
    for (const auto& [name, bytes] : {std::pair("stdout", &result.out), std::pair("stderr", &result.err)}) {
        blanks.push_back({name, bytes, write_text});
        if (!is_text(*bytes)) blanks.push_back({concat(name, "_base64"), bytes, write_base64});
    }
    return blanks;
}

std::string frame_of(const SandboxResult& result, const std::vector<Blank>& blanks) {
    Json::Object members = {{"status", {std::string(status_word(result.status))}},
                            {"exit_code", json_of(result.exit_code)},
                            {"signal", json_of(result.signal)},
                            {"stopped_by", text_or_null(result.stopped_by)}};
    for (const Blank& blank : blanks) members.push_back({blank.name, {std::string()}});
    members.push_back({"truncated", {result.truncated}});
    members.push_back({"usage", usage_json(result)});
    members.push_back({"denied", result.denied ? json_of(*result.denied, denied_json) : Json{}});
    members.push_back({"limits", json_of(result.limits, limit_json)});
    members.push_back({"landlock", json_of(result.landlock_abi)});
    members.push_back({"receipt", result.receipt.empty() ? Json{} : json_of(result.receipt, receipt_json)});
    members.push_back({"receipt_sha256", text_or_null(result.receipt_sha256)});
    if (!result.copy_failures.empty())
        members.push_back({"copy_failures", json_of(result.copy_failures, failure_json)});
    if (!result.published.empty()) members.push_back({"published", json_of(result.published, published_json)});
    if (!result.error.empty()) members.push_back({"error", {result.error}});
    if (!result.hint.empty()) members.push_back({"hint", {result.hint}});
    return json_text({std::move(members)});
}

}  // namespace

// The blanks come before all members whose text is somebody else's, so that each is the first of its name.
Result<void> write_json(const SandboxResult& result, const TextSink& sink) {
    const std::vector<Blank> blanks = blanks_of(result);
    const std::string frame = frame_of(result, blanks);
    size_t done = 0;
    for (const Blank& blank : blanks) {
        const std::string empty = concat('"', blank.name, "\": \"\"");
        const size_t place = frame.find(empty, done) + empty.size() - 1;
        TRY(sink(std::string_view(frame).substr(done, place - done)));
        TRY(blank.write(*blank.bytes, sink));
        done = place;
    }
    return sink(std::string_view(frame).substr(done));
}

std::string to_json(const SandboxResult& result) {
    std::string text;
    const auto append = [&](std::string_view piece) -> Result<void> {
        text += piece;
        return {};
    };
    [[maybe_unused]] const Result<void> written = write_json(result, append);  // there is nothing that could fail
    return text;
}

// The way back.
namespace {

// The text may hold NUL bytes, which a configuration's may not.
std::string output_of(const Json& root, const std::string& key) {
    const Json* exact = root.find(key + "_base64");
    return exact ? from_base64(root.text(key + "_base64")) : root.text(key);
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

// The text that plain_value() has made it of.
static void read_plain(const Reader& object, std::string_view key, std::string& out) {
    const Json* value = object.json().find(key);
    if (value == nullptr) return;
    if (const std::string* text = value->string()) out = *text;
    else if (const bool* flag = value->boolean()) out = *flag ? "true" : "false";
    else if (const uint64_t* number = value->unsigned_integer()) out = std::to_string(*number);
    else if (const double* real = value->real()) out = decimal(*real);
}

static void read(const Reader& object, EnforcedLimit& limit) {
    object.required("name", limit.name);
    read_plain(object, "asked", limit.asked);
    object.optional("enforced_by", limit.enforced_by);
    read_plain(object, "value", limit.value);
    object.optional("hit", limit.hit);
}

static void read(const Reader& object, ReceiptLine& line) {
    object.required("name", line.name);
    object.required("planned", line.planned);
    object.required("found", line.found);
    object.optional("holds", line.holds);
}

static void read(const Reader& object, PublishedPort& port) {
    object.required("address", port.address);
    object.required("host_port", port.host);
    object.required("inside_port", port.inside);
}

static void read(const Reader& object, CopyFailure& failure) {
    object.required("source", failure.source);
    object.required("destination", failure.destination);
    object.required("error", failure.error);
    object.optional("hint", failure.hint);
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
    object.optional("stopped_by", result.stopped_by);
    object.optional("truncated", result.truncated);
    object.required("usage", usage);
    result.denied.reset();
    object.optional("denied", result.denied);
    object.optional("limits", result.limits);
    object.optional("landlock", result.landlock_abi);
    object.optional("receipt", result.receipt);
    object.optional("receipt_sha256", result.receipt_sha256);
    object.optional("copy_failures", result.copy_failures);
    object.optional("published", result.published);
    object.optional("error", result.error);
    object.optional("hint", result.hint);
    result.out = output_of(root, "stdout");
    result.err = output_of(root, "stderr");
    if (!problems.empty()) return to_error(problems, "result");
    return result;
}

std::string to_wire(SandboxResult result) {
    const std::string out = std::exchange(result.out, {}), err = std::exchange(result.err, {});
    return concat(out.size(), ' ', err.size(), '\n', out, err, to_json(result));
}

Result<SandboxResult> from_wire(std::string_view wire) {
    const Error broken = plain_error("the answer of the sandbox's supervisor is incomplete");
    const size_t end = wire.find('\n');
    if (end == wire.npos) return broken;
    const std::vector<std::string_view> sizes = split(wire.substr(0, end), ' ');
    if (sizes.size() != 2) return broken;
    const size_t out = parse_number<size_t>(sizes[0]).value_or(SIZE_MAX);
    const size_t err = parse_number<size_t>(sizes[1]).value_or(SIZE_MAX);
    wire.remove_prefix(end + 1);
    if (out > wire.size() || err > wire.size() - out) return broken;
    SandboxResult result = TRY(parse_result(wire.substr(out + err)));
    result.out = wire.substr(0, out);
    result.err = wire.substr(out, err);
    return result;
}

int exit_code_of(const SandboxResult& result) {
    constexpr int kTimedOut = 124, kOurFailure = 125, kOutOfMemory = 137, kSignal = 128;
    switch (result.status) {
        case SandboxStatus::timed_out: return kTimedOut;
        case SandboxStatus::setup_failed: return result.exit_code.value_or(kOurFailure);
        case SandboxStatus::oom_killed: return kOutOfMemory;
        default: break;
    }
    const int code = result.exit_code ? *result.exit_code : kSignal + result.signal.value_or(0);
    return code == 0 && !result.error.empty() ? kOurFailure : code;
}

}  // namespace pinfold
