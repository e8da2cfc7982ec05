// JSON as text: all that pinfold writes is written here.
#include "json/writer.hpp"

#include <charconv>

namespace pinfold {

namespace {

void append(std::string& out, const Json& json, const std::string& indent);

void append_entry(std::string& out, const Json& json, const std::string& indent) { append(out, json, indent); }

void append_entry(std::string& out, const Json::Member& member, const std::string& indent) {
    out += concat(json_quoted(member.key), ": ");
    append(out, member.value, indent);
}

// One entry per line; what is empty stays on its line.
template <class Entries>
void append_all(std::string& out, const Entries& entries, char open, char close, const std::string& indent) {
    out += open;
    const std::string deeper = indent + "  ";
    for (const auto& entry : entries) {
        out += concat(&entry == &entries.front() ? "\n" : ",\n", deeper);
        append_entry(out, entry, deeper);
    }
    if (!entries.empty()) out += concat('\n', indent);
    out += close;
}

void append_real(std::string& out, double value) {
    char text[32];  // the longest has 24 characters
    // Minus zero would be read as a whole number, which has none; the sum of it and zero is zero.
    out.append(text, std::to_chars(std::begin(text), std::end(text), value + 0.0).ptr);
}

void append(std::string& out, const Json& json, const std::string& indent) {
    switch (json.kind()) {
        case Json::Kind::null: out += "null"; break;
        case Json::Kind::boolean: out += *json.boolean() ? "true" : "false"; break;
        case Json::Kind::integer: out += std::to_string(*json.integer()); break;
        case Json::Kind::unsigned_integer: out += std::to_string(*json.unsigned_integer()); break;
        case Json::Kind::real: append_real(out, *json.real()); break;
        case Json::Kind::string: out += json_quoted(*json.string()); break;
        case Json::Kind::array: append_all(out, *json.array(), '[', ']', indent); break;
        case Json::Kind::object: append_all(out, *json.object(), '{', '}', indent); break;
    }
}

}  // namespace

std::string json_text(const Json& json) {
    std::string out;
    append(out, json, "");
    return out + "\n";
}

JsonObject& JsonObject::add(std::string_view key, std::string_view json) {
    const std::string_view separator = by_lines_ ? ",\n  " : ",";
    text_ += concat(text_.empty() ? "" : separator, json_quoted(key), by_lines_ ? ": " : ":", json);
    return *this;
}

JsonObject& JsonObject::add_text(std::string_view key, std::string_view text) { return add(key, json_quoted(text)); }

JsonObject& JsonObject::add_if_any(std::string_view key, std::string_view json) {
    return json.empty() ? *this : add(key, json);
}

std::string JsonObject::text() const { return by_lines_ ? concat("{\n  ", text_, "\n}\n") : concat('{', text_, '}'); }

std::string json_list(const std::vector<std::string>& texts) {
    return json_array(texts, [](const std::string& text) { return json_quoted(text); });
}

std::string json_map(const std::map<std::string, std::string>& texts) {
    JsonObject object;
    for (const auto& [key, text] : texts) object.add_text(key, text);
    return object.text();
}

}  // namespace pinfold
