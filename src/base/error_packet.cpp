// An error on its way from one process of pinfold to another.
#include "base/error_packet.hpp"

#include <algorithm>
#include <cstring>

namespace pinfold {

namespace {

uint32_t copy_text(char* to, std::string_view text) {
    const size_t length = std::min(text.size(), ErrorPacket::kMaxText);
    std::memcpy(to, text.data(), length);
    return static_cast<uint32_t>(length);
}

}  // namespace

void ErrorPacket::hold(const Error& error) noexcept {
    code = error.code;
    message_length = copy_text(text, error.message);
    hint_length = copy_text(text + message_length, error.hint);
}

std::optional<Error> unpack_error(std::string_view bytes) {
    constexpr size_t kHeader = offsetof(ErrorPacket, text);
    ErrorPacket packet;
    if (bytes.size() < kHeader) return std::nullopt;
    std::memcpy(static_cast<void*>(&packet), bytes.data(), kHeader);
    const std::string_view text = bytes.substr(kHeader);
    if (text.size() != size_t{packet.message_length} + packet.hint_length) return std::nullopt;
    return Error{packet.code, std::string(text.substr(0, packet.message_length)),
                 std::string(text.substr(packet.message_length))};
}

}  // namespace pinfold
