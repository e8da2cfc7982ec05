// JSON as text: all that pinfold writes is written here. Strings are escaped by json_quoted(), which the log of base
// needs as well.
#pragma once

#include <concepts>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/strings.hpp"
#include "json/tree.hpp"

namespace pinfold {

// The document as text, indented, with a newline at its end.
std::string json_text(const Json& json);

// An object as text, without a tree: its members in the order in which they are added, on one line.
class JsonObject {
public:
    JsonObject() = default;
    // Each member on a line of its own, and a newline at the end.
    static JsonObject by_lines() { return JsonObject(true); }

    // The value is JSON already.
    JsonObject& add(std::string_view key, std::string_view json);
    template <std::integral Number>
    JsonObject& add(std::string_view key, Number number) {
        if constexpr (std::same_as<Number, bool>) return add(key, number ? "true" : "false");
        else return add(key, std::to_string(number));
    }
    JsonObject& add_text(std::string_view key, std::string_view text);
    JsonObject& add_if_any(std::string_view key, std::string_view json);

    std::string text() const;

private:
    explicit JsonObject(bool by_lines) : by_lines_(by_lines) {}

    bool by_lines_ = false;
    std::string text_;
};

// An array of what `write` makes of each: JSON, on one line.
template <class Items, class Write>
std::string json_array(const Items& items, Write write) {
    std::string out = "[";
    for (const auto& item : items) out += concat(out.size() == 1 ? "" : ",", write(item));
    return out + "]";
}

std::string json_list(const std::vector<std::string>& texts);
std::string json_map(const std::map<std::string, std::string>& texts);

}  // namespace pinfold
