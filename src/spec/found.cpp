// How a problem is worded: what was found, and what is allowed.
#include "spec/found.hpp"

#include <cstdio>

namespace pinfold {

namespace {

constexpr size_t kLongestQuote = 100;

std::string excerpt(std::string_view text) {
    if (text.size() <= kLongestQuote) return json_quoted(text);
    size_t end = kLongestQuote;
    while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;  // not inside a UTF-8 character
    return json_quoted(text.substr(0, end)) + "...";
}

std::string describe(const Json& json) {
    switch (json.kind()) {
        case Json::Kind::null: return "null";
        case Json::Kind::boolean: return *json.boolean() ? "true" : "false";
        case Json::Kind::integer: return std::to_string(*json.integer());
        case Json::Kind::unsigned_integer: return std::to_string(*json.unsigned_integer());
        case Json::Kind::string: return excerpt(*json.string());
        case Json::Kind::array: return "an array";
        case Json::Kind::object: return "an object";
        case Json::Kind::real: break;
    }
    char digits[32];
    std::snprintf(digits, sizeof digits, "%.17g", *json.real());
    return digits;
}

}  // namespace

std::string found(std::string_view text, std::string_view allowed) {
    return concat("found ", excerpt(text), ", allowed: ", allowed);
}

std::string found(const Json& json, std::string_view allowed) {
    return concat("found ", describe(json), ", allowed: ", allowed);
}

std::string found(std::string_view text, std::span<const std::string_view> allowed) {
    std::string list;
    for (const std::string_view word : allowed) list += concat(list.empty() ? "" : ", ", word);
    return found(text, list);
}

}  // namespace pinfold
