// Changed inputs: bytes, slices, and values that are at the edge of something.
#include "fuzz/mutate.hpp"

#include <algorithm>
#include <string_view>

namespace pinfold::fuzz {

namespace {

constexpr std::string_view kEdges[] = {
    "-1",
    "0",
    "1e999",
    "-0.0",
    "18446744073709551615",
    "18446744073709551616",
    "-9223372036854775808",
    "4294967296",
    "0.5",
    "null",
    "true",
    "\"\"",
    "[]",
    "{}",
    "\"\\u0000\"",
    "\"\\ud800\"",
    "\"../..\"",
    "\"/\"",
    "\xff",
    "\xc0\x80",
    "[[[[[[[[",
    "{\"a\":",
    "\n",
    ",",
    "\"",
    ":",
    "\\",
};
constexpr size_t kLongest = 1 << 16;

}  // namespace

std::string_view Mutator::slice_of(const std::string& text) {
    const size_t begin = below(text.size());
    return std::string_view(text).substr(begin, below(std::min<size_t>(text.size() - begin, 64) + 1));
}

void Mutator::change(std::string& text) {
    const size_t at = below(text.size() + 1);
    const std::string piece(slice_of(text));
    switch (below(8)) {
        case 0: text.insert(at, 1, static_cast<char>(below(256))); break;
        case 1: text.erase(at, below(16)); break;
        case 2: text.replace(at, below(8), kEdges[below(std::size(kEdges))]); break;
        case 3: text.replace(at, piece.size(), piece); break;
        case 4: text.insert(at, slice_of(inputs_[below(inputs_.size())])); break;
        case 5: text.resize(at); break;
        case 6:
            if (at < text.size()) text[at] = static_cast<char>(text[at] ^ 1 << below(8));
            break;
        default:
            // Rarely, many times over: what takes more than its share of time shows then.
            for (size_t i = below(64) == 0 ? 1000 : 1; i > 0 && text.size() < kLongest; --i) text.insert(at, piece);
    }
}

std::string Mutator::next() {
    std::string text = inputs_[below(inputs_.size())];
    for (size_t changes = 1 + below(4); changes > 0; --changes) change(text);
    return text;
}

}  // namespace pinfold::fuzz
