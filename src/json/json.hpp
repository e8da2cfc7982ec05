// JSON: a document as a tree of plain values, read from text within bounds, and written as text. Objects keep the order
// of the text and hold no key twice.
#pragma once

#include <concepts>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/strings.hpp"
#include "pinfold/result.hpp"

namespace pinfold {

struct Json {
    // In the order of the alternatives of `value`. Whole numbers that are not negative are unsigned_integer.
    enum class Kind : uint8_t { null, boolean, integer, unsigned_integer, real, string, array, object };

    struct Member;
    using Array = std::vector<Json>;
    using Object = std::vector<Member>;

    std::variant<std::monostate, bool, int64_t, uint64_t, double, std::string, Array, Object> value;

    Kind kind() const noexcept { return static_cast<Kind>(value.index()); }
    bool is_null() const noexcept { return kind() == Kind::null; }

    // The value as that kind, or null where it is of another.
    const bool* boolean() const noexcept { return std::get_if<bool>(&value); }
    const int64_t* integer() const noexcept { return std::get_if<int64_t>(&value); }
    const uint64_t* unsigned_integer() const noexcept { return std::get_if<uint64_t>(&value); }
    const double* real() const noexcept { return std::get_if<double>(&value); }
    const std::string* string() const noexcept { return std::get_if<std::string>(&value); }
    const Array* array() const noexcept { return std::get_if<Array>(&value); }
    const Object* object() const noexcept { return std::get_if<Object>(&value); }

    // The member of that name; null where there is none, or where this is no object.
    const Json* find(std::string_view key) const noexcept;
    // What the member of that name holds; empty, 0 or false where it is of another kind, or not there.
    std::string text(std::string_view key) const;
    uint64_t number(std::string_view key) const;
    bool flag(std::string_view key) const;
};

struct Json::Member {
    std::string key;
    Json value;
};

// A list of what `convert` makes of each.
template <class Items, class Convert>
Json json_of(const Items& items, Convert convert) {
    Json::Array array;
    for (const auto& item : items) array.push_back(convert(item));
    return {std::move(array)};
}

// Texts, numbers, lists of them, and what may be missing: then it is null.
template <class Value>
Json json_of(const Value& value) {
    if constexpr (std::convertible_to<const Value&, std::string_view>) return {std::string(std::string_view(value))};
    else if constexpr (std::same_as<Value, bool> || std::floating_point<Value>) return {value};
    else if constexpr (std::integral<Value>) return value < 0 ? Json{int64_t(value)} : Json{uint64_t(value)};
    else if constexpr (requires { value.has_value(); }) return value ? json_of(*value) : Json{};
    else return json_of(value, [](const auto& item) { return json_of(item); });
}

// "parent.key"; keys that are not plain words are quoted: linux.sysctl["net.ipv4.ip_forward"].
std::string member_path(std::string_view parent, std::string_view key);

// "parent[3]"
std::string element_path(std::string_view parent, size_t index);

// Text to a tree of values, within bounds.

// A value of one byte takes 40 in the tree, and a long string is held three times while it is read. So that a document
// takes memory in proportion to its size, there are at most so many values, and none is longer than that. (Engines
// write some thousand values; the kernel takes no argument of more than 128 KiB, and of ordinary length no more than
// 40,000.)
struct JsonBounds {
    size_t values = 40'000;
    size_t longest = size_t{1} << 20;
};
// For what pinfold itself has written.
inline constexpr JsonBounds kOwnJson{SIZE_MAX, SIZE_MAX};

// The whole text as one document. Refused: anything after it, keys given twice, invalid UTF-8, nesting deeper than
// kMaxJsonDepth. The error says name, line and column, or for a key that comes twice, its path.
inline constexpr size_t kMaxJsonDepth = 128;
Result<Json> parse_json(std::string_view text, std::string_view name, JsonBounds bounds = {});

// A document of somebody else: a regular file. The kernel takes 6 MiB of arguments and environment at most, so whatever
// can be carried out is smaller than this.
inline constexpr size_t kMaxDocument = size_t{8} << 20;
Result<std::string> read_document(const std::string& path);
// Also from standard input, which may be a pipe: "-", or /dev/stdin, which could not be opened where it is a socket.
Result<std::string> read_document_or_input(const std::string& path);
bool names_standard_input(std::string_view path);

// JSON as text: all that pinfold writes is written here. Strings are escaped by json_quoted(), which the log of base
// needs as well.

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
