// A JSON writer of forty lines: the probe must be static, small and free of dependencies.
#pragma once

#include <concepts>
#include <string>
#include <string_view>

namespace probe {

std::string quote(std::string_view text);

inline std::string to_json(std::string_view text) { return quote(text); }
inline std::string to_json(const std::string& text) { return quote(text); }
inline std::string to_json(const char* text) { return quote(text); }
inline std::string to_json(bool value) { return value ? "true" : "false"; }
template <std::integral Number>
requires(!std::same_as<Number, bool>) std::string to_json(Number value) { return std::to_string(value); }

class List {
public:
    template <class Value>
    List& add(const Value& value) {
        if (!body_.empty()) body_ += ',';
        body_ += to_json(value);
        return *this;
    }
    std::string text() const { return "[" + body_ + "]"; }

private:
    std::string body_;
};

class Object {
public:
    template <class Value>
    Object& add(std::string_view key, const Value& value) {
        if (!body_.empty()) body_ += ',';
        body_ += quote(key) + ":" + to_json(value);
        return *this;
    }
    std::string text() const { return "{" + body_ + "}"; }

private:
    std::string body_;
};

inline std::string to_json(const List& list) { return list.text(); }
inline std::string to_json(const Object& object) { return object.text(); }

}  // namespace probe
