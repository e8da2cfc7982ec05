// Bytes as text of 64 letters.
#include "base/base64.hpp"

#include <cstdint>

namespace pinfold {

namespace {

constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

}  // namespace

std::string to_base64(std::string_view bytes) {
    std::string text;
    for (size_t i = 0; i < bytes.size(); i += 3) {
        uint32_t bits = 0;
        for (size_t k = 0; k < 3; ++k) bits = bits << 8 | (i + k < bytes.size() ? uint8_t(bytes[i + k]) : 0);
        for (size_t k = 0; k < 4; ++k) {
            const bool padding = i + k > bytes.size();
            text += padding ? '=' : kDigits[bits >> (18 - 6 * k) & 63];
        }
    }
    return text;
}

std::string from_base64(std::string_view text) {
    std::string bytes;
    uint32_t bits = 0;
    unsigned count = 0;
    for (const char digit : text) {
        const size_t value = kDigits.find(digit);
        if (value == kDigits.npos) break;
        bits = bits << 6 | static_cast<uint32_t>(value);
        count += 6;
        if (count < 8) continue;
        count -= 8;
        bytes += static_cast<char>(bits >> count & 0xff);
    }
    return bytes;
}

}  // namespace pinfold
