// A JSON document as a tree of plain values. Objects keep the order of the text and hold no key twice.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

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
};

struct Json::Member {
    std::string key;
    Json value;
};

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

// The document as text, indented, with a newline at its end.
std::string json_text(const Json& json);

}  // namespace pinfold
