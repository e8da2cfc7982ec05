// SHA-256 (FIPS 180-4): names and checksums of cached files.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace pinfold {

using Sha256Digest = std::array<uint8_t, 32>;

Sha256Digest sha256(std::string_view data);

// 64 lower-case hexadecimal digits.
std::string to_hex(const Sha256Digest& digest);

}  // namespace pinfold
