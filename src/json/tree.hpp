// A JSON document as a tree of plain values. Objects keep the order of the text and hold no key twice.
#pragma once

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

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

}  // namespace pinfold
