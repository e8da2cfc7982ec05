// Small string helpers that g++ 12's library lacks.
#pragma once

#include <charconv>
#include <concepts>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace pinfold {

namespace detail {
inline void append_piece(std::string& out, std::string_view piece) { out += piece; }
inline void append_piece(std::string& out, char piece) { out += piece; }
template <std::integral Number>
requires(!std::same_as<Number, char> && !std::same_as<Number, bool>) void append_piece(std::string& out, Number piece) {
    out += std::to_string(piece);
}
}  // namespace detail

// concat("mounts[", 3, "] ", path): std::format's job, without std::format.
template <class... Pieces>
std::string concat(const Pieces&... pieces) {
    std::string out;
    (detail::append_piece(out, pieces), ...);
    return out;
}

// The whole text as a number, or nothing: no sign for unsigned types, no blanks, no overflow.
template <std::integral Number>
std::optional<Number> parse_number(std::string_view text, int base = 10) {
    Number value{};
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
    if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
    return value;
}

// "a:b::c" by ':' gives a, b, "", c.
std::vector<std::string_view> split(std::string_view text, char separator);

std::string join(const std::vector<std::string>& items, std::string_view separator);

// "0-3, 7" as a bit mask, the kernel's way to write sets of CPUs and nodes; nothing where the text is no such list.
std::optional<std::vector<unsigned long>> parse_index_list(std::string_view text);

// Safe to print whatever it holds: control characters, marks that turn the direction of text, and bytes that are not
// UTF-8 are escaped.
std::string printable(std::string_view text, std::string_view kept = "");

// The same in single quotes.
std::string quoted(std::string_view text);

// What may stand in a text of several lines. All that goes to a terminal goes through this once more.
inline constexpr std::string_view kLineEnds = "\n\t";

// The text as a JSON string literal, quotes included, with control characters escaped; bytes that are not UTF-8 become
// U+FFFD.
std::string json_quoted(std::string_view text);

}  // namespace pinfold
