// Text to a tree of values, within bounds.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "json/tree.hpp"
#include "pinfold/result.hpp"

namespace pinfold {

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

}  // namespace pinfold
