// A JSON document as a tree of plain values.
#include "json/tree.hpp"

#include <algorithm>

#include "base/strings.hpp"

namespace pinfold {

const Json* Json::find(std::string_view key) const noexcept {
    const Object* members = object();
    if (!members) return nullptr;
    for (const Member& member : *members) {
        if (member.key == key) return &member.value;
    }
    return nullptr;
}

std::string Json::text(std::string_view key) const {
    const Json* member = find(key);
    return member && member->string() ? *member->string() : std::string();
}

uint64_t Json::number(std::string_view key) const {
    const Json* member = find(key);
    return member && member->unsigned_integer() ? *member->unsigned_integer() : 0;
}

bool Json::flag(std::string_view key) const {
    const Json* member = find(key);
    return member && member->boolean() && *member->boolean();
}

static bool is_plain_word(std::string_view key) {
    const auto plain = [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-' ||
               c == '*';
    };
    return !key.empty() && std::all_of(key.begin(), key.end(), plain);
}

std::string member_path(std::string_view parent, std::string_view key) {
    if (!is_plain_word(key)) return concat(parent, '[', json_quoted(key), ']');
    return parent.empty() ? std::string(key) : concat(parent, '.', key);
}

std::string element_path(std::string_view parent, size_t index) { return concat(parent, '[', index, ']'); }

}  // namespace pinfold
