// One line of the audit log.
#include "audit/line.hpp"

#include <unistd.h>

#include <algorithm>

#include "base/clock.hpp"
#include "base/fs.hpp"
#include "base/sha256.hpp"
#include "base/strings.hpp"
#include "json/json.hpp"
#include "policy/gate.hpp"

namespace pinfold {

namespace {

constexpr std::string_view kHashKey = ",\"hash\":\"";
constexpr std::string_view kHashEnd = "\"}";
constexpr size_t kHashDigits = 64;
constexpr size_t kHashMember = kHashKey.size() + kHashDigits + kHashEnd.size();

// The line without its own hash.
std::string hash_of(std::string_view body) { return to_hex(sha256(concat(body, '}'))); }

std::string first_line(const std::string& file) {
    const Result<std::string> text = read_file(file);
    return text ? text->substr(0, text->find('\n')) : std::string();
}

// A login's user stays the same through su and sudo; there is none for what the system itself has started.
std::string login_uid() {
    const auto uid = parse_number<uint32_t>(first_line("/proc/self/loginuid"));
    return uid && *uid != UINT32_MAX ? std::to_string(*uid) : "null";
}

const std::string* text_member(const Json& json, std::string_view key) {
    const Json* value = json.find(key);
    return value ? value->string() : nullptr;
}

const uint64_t* number_member(const Json& json, std::string_view key) {
    const Json* value = json.find(key);
    return value ? value->unsigned_integer() : nullptr;
}

// A beginning of the text that takes no more than that as JSON, and half of it at least. A control character takes six.
std::string beginning_of(std::string_view text, size_t most) {
    size_t size = std::min(text.size(), most);
    while (size > 0 && json_quoted(text.substr(0, size)).size() > most) size /= 2;
    while (size > 0 && size < text.size() && (text[size] & 0xC0) == 0x80) --size;  // no part of a character
    return std::string(text.substr(0, size));
}

std::string beginning_of(const Json::Array& list, size_t most) {
    std::vector<std::string> kept;
    for (const Json& item : list) {
        if (item.string() == nullptr) return "null";
        kept.push_back(beginning_of(*item.string(), most));
        most -= std::min(most, json_quoted(kept.back()).size() + 1);
        if (most == 0 || kept.back() != *item.string()) break;
    }
    return json_list(kept);
}

// JSON of a text, or of a list of texts. Null of all else.
std::string beginning_of(const std::string& json) {
    const Result<Json> value = parse_json(json, "event", kOwnJson);
    if (value && value->string()) return json_quoted(beginning_of(*value->string(), kMostOfText));
    return value && value->array() ? beginning_of(*value->array(), kMostOfText) : "null";
}

std::string note_of_cut(const std::string& whole) {
    return JsonObject().add("bytes", whole.size()).add_text("sha256", to_hex(sha256(whole))).text();
}

}  // namespace

std::string caller_text() {
    const pid_t parent = ::getppid();
    JsonObject caller;
    caller.add("uid", ::getuid());
    if (const std::optional<uid_t> sudo = sudo_caller()) caller.add("sudo_uid", *sudo);
    return caller.add("pid", parent)
        .add("login_uid", login_uid())
        .add_text("program", first_line(concat("/proc/", parent, "/comm")))
        .text();
}

AuditEvent bounded(AuditEvent event) {
    decltype(event.members) members;
    if (const std::string whole = json_quoted(event.id); whole.size() > kMostOfText) {
        event.id = beginning_of(event.id, kMostOfText);
        members.emplace_back("id_cut", note_of_cut(whole));
    }
    for (auto& [name, json] : event.members) {
        std::string cut = json.size() > kMostOfText ? beginning_of(json) : json;
        if (cut == "null" && json.size() <= kMostOfOther) cut = json;
        const bool is_cut = cut != json;
        members.emplace_back(name, std::move(cut));
        if (is_cut) members.emplace_back(name + "_cut", note_of_cut(json));
    }
    event.members = std::move(members);
    return event;
}

ChainedLine compose_line(const AuditEvent& event, const std::string& caller, const ChainEnd& before) {
    const uint64_t seq = before.seq + 1;
    JsonObject line;
    line.add("seq", seq).add_text("time", rfc3339_now()).add_text("event", event.event).add_text("id", event.id);
    line.add("caller", caller);
    if (!event.config_sha256.empty()) line.add_text("config_sha256", event.config_sha256);
    for (const auto& [name, json] : event.members) line.add(name, json);
    std::string body = line.add_text("prev", before.hash).text();
    body.pop_back();  // the hash follows
    const std::string hash = hash_of(body);
    return {concat(body, kHashKey, hash, kHashEnd), {seq, hash}};
}

std::optional<AuditRecord> parse_line(std::string_view text) {
    if (text.size() < kHashMember) return std::nullopt;
    const std::string_view body = text.substr(0, text.size() - kHashMember);
    const std::string_view hash = text.substr(body.size() + kHashKey.size(), kHashDigits);
    if (text.substr(body.size(), kHashKey.size()) != kHashKey || hash != hash_of(body)) return std::nullopt;
    Result<Json> json = parse_json(text, "line", kOwnJson);
    if (!json) return std::nullopt;
    const uint64_t* seq = number_member(*json, "seq");
    const std::string* prev = text_member(*json, "prev");
    const std::string* event = text_member(*json, "event");
    if (!seq || !prev || !event) return std::nullopt;
    AuditRecord record{{*seq, std::string(hash)}, *prev, *event, {}};
    record.json = std::move(*json);
    return record;
}

AuditEvent note_of(std::string_view event, std::string_view text, const ChainEnd& expected) {
    return {std::string(event),
            "",
            "",
            {{"bytes", std::to_string(text.size())},
             {"sha256", json_quoted(to_hex(sha256(text)))},
             {"expected_seq", std::to_string(expected.seq)},
             {"expected_hash", json_quoted(expected.hash)}}};
}

bool is_note_of(const AuditRecord& record, std::string_view text) {
    const uint64_t* bytes = number_member(record.json, "bytes");
    const std::string* hash = text_member(record.json, "sha256");
    return bytes && *bytes == text.size() && hash && *hash == to_hex(sha256(text));
}

AuditEvent receipt_event(const std::string& id, const Receipt& receipt) {
    const auto text = [](const ReceiptLine& line) {
        return JsonObject()
            .add_text("name", line.name)
            .add_text("planned", line.planned)
            .add_text("found", line.found)
            .add("holds", line.holds)
            .text();
    };
    return {"receipt", id, "", {{"lines", json_array(receipt, text)}}};
}

}  // namespace pinfold
