// Reading files and cutting lines: what the reports and the effects both need.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace probe {

// The whole file, or nothing with errno set.
std::optional<std::string> read_file(const std::string& path);

// The link's target, or nothing with errno set.
std::optional<std::string> read_link(const std::string& path);

// Pieces between the separators; empty pieces are left out.
std::vector<std::string> words(std::string_view text, char separator = ' ');

// "0755": the permission bits, setuid and friends included.
std::string octal(unsigned mode);

}  // namespace probe
