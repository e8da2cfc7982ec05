// Small string helpers that g++ 12's library lacks.
#include "base/strings.hpp"

namespace pinfold {

std::vector<std::string_view> split(std::string_view text, char separator) {
    std::vector<std::string_view> parts;
    for (;;) {
        const size_t at = text.find(separator);
        parts.push_back(text.substr(0, at));
        if (at == std::string_view::npos) return parts;
        text.remove_prefix(at + 1);
    }
}

std::string join(const std::vector<std::string>& items, std::string_view separator) {
    std::string out;
    for (const std::string& item : items) {
        if (&item != &items.front()) out += separator;
        out += item;
    }
    return out;
}

namespace {

// More than any kernel counts, and little enough for a mask.
constexpr unsigned kMostIndices = 1 << 16;

constexpr unsigned kBits = 64;  // of an unsigned long

// A word at a time: the same range may be given a hundred thousand times.
void set_bits(unsigned first, unsigned last, std::vector<unsigned long>& mask) {
    if (mask.size() <= last / kBits) mask.resize(last / kBits + 1);
    for (unsigned word = first / kBits; word <= last / kBits; ++word) {
        unsigned long bits = ~0UL;
        if (word == first / kBits) bits &= ~0UL << first % kBits;
        if (word == last / kBits) bits &= ~0UL >> (kBits - 1 - last % kBits);
        mask[word] |= bits;
    }
}

// "3" or "0-3", set in the mask; false: it is neither.
bool set_range(std::string_view range, std::vector<unsigned long>& mask) {
    while (range.starts_with(' ')) range.remove_prefix(1);
    while (range.ends_with(' ')) range.remove_suffix(1);
    const size_t dash = range.find('-');
    const auto first = parse_number<unsigned>(range.substr(0, dash));
    const auto last = dash == range.npos ? first : parse_number<unsigned>(range.substr(dash + 1));
    if (!first || !last || *first > *last || *last >= kMostIndices) return false;
    set_bits(*first, *last, mask);
    return true;
}

void append_hex(std::string& out, std::string_view prefix, unsigned char byte) {
    constexpr std::string_view kDigits = "0123456789abcdef";
    out += prefix;
    out += kDigits[byte >> 4];
    out += kDigits[byte & 15];
}

// The length of the well-formed UTF-8 sequence that starts the text, 0 if there is none.
size_t utf8_length(std::string_view text) {
    const auto lead = static_cast<unsigned char>(text[0]);
    const size_t length = lead < 0x80 ? 1 : lead < 0xc2 ? 0 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : lead < 0xf5 ? 4 : 0;
    if (length == 0 || length > text.size()) return 0;
    for (size_t i = 1; i < length; ++i) {
        if ((static_cast<unsigned char>(text[i]) & 0xc0) != 0x80) return 0;
    }
    if (length < 3) return length;
    const auto second = static_cast<unsigned char>(text[1]);
    const bool overlong = (lead == 0xe0 && second < 0xa0) || (lead == 0xf0 && second < 0x90);
    const bool out_of_range = (lead == 0xed && second > 0x9f) || (lead == 0xf4 && second > 0x8f);
    return overlong || out_of_range ? 0 : length;
}

// Of one well-formed sequence.
char32_t code_point(std::string_view sequence) {
    const auto lead = static_cast<unsigned char>(sequence[0]);
    if (sequence.size() == 1) return lead;
    char32_t code = lead & (0xff >> (sequence.size() + 1));
    for (const char c : sequence.substr(1)) code = code << 6 | (static_cast<unsigned char>(c) & 0x3f);
    return code;
}

// What a terminal does not show but obeys, or shows in another order than it was written: the control characters of
// ASCII and of Latin-1 (U+009B begins a sequence as ESC does), ends of lines, and marks of direction.
bool is_control(char32_t code) {
    if (code < 0x20 || (code >= 0x7f && code <= 0x9f)) return true;
    return code == 0x061c || code == 0x200e || code == 0x200f || (code >= 0x2028 && code <= 0x202e) ||
           (code >= 0x2066 && code <= 0x2069);
}

void append_printable(std::string& out, std::string_view text, std::string_view kept) {
    while (!text.empty()) {
        const size_t length = utf8_length(text);
        const std::string_view piece = text.substr(0, length == 0 ? 1 : length);
        const bool is_kept = length == 1 && kept.find(piece[0]) != kept.npos;
        if (is_kept || (length != 0 && !is_control(code_point(piece)))) out += piece;
        else
            for (const char c : piece) append_hex(out, "\\x", static_cast<unsigned char>(c));
        text.remove_prefix(piece.size());
    }
}

void append_json_control(std::string& out, char32_t code) {
    switch (code) {
        case '\n': out += "\\n"; break;
        case '\t': out += "\\t"; break;
        case '\r': out += "\\r"; break;
        default:
            append_hex(out, "\\u", static_cast<unsigned char>(code >> 8));
            append_hex(out, "", static_cast<unsigned char>(code));
    }
}

}  // namespace

std::optional<std::vector<unsigned long>> parse_index_list(std::string_view text) {
    std::vector<unsigned long> mask;
    for (const std::string_view range : split(text, ',')) {
        if (!set_range(range, mask)) return std::nullopt;
    }
    return mask;
}

std::string quoted(std::string_view text) {
    std::string out = "'";
    append_printable(out, text, "");
    return out + "'";
}

std::string printable(std::string_view text, std::string_view kept) {
    std::string out;
    append_printable(out, text, kept);
    return out;
}

std::string json_quoted(std::string_view text) {
    std::string out = "\"";
    while (!text.empty()) {
        const size_t length = utf8_length(text);
        const char c = text[0];
        const char32_t code = length == 0 ? 0 : code_point(text.substr(0, length));
        if (length == 0) out += "\xef\xbf\xbd";
        else if (c == '"' || c == '\\') (out += '\\') += c;
        else if (is_control(code)) append_json_control(out, code);
        else out += text.substr(0, length);
        text.remove_prefix(length == 0 ? 1 : length);
    }
    return out + "\"";
}

}  // namespace pinfold
