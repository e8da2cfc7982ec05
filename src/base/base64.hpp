// Bytes as text of 64 letters (RFC 4648).
#pragma once

#include <string>
#include <string_view>

namespace pinfold {

std::string to_base64(std::string_view bytes);

// Ends at the first character that is no digit.
std::string from_base64(std::string_view text);

}  // namespace pinfold
