// An error on its way from one process of pinfold to another.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "pinfold/result.hpp"

namespace pinfold {

// Both ends are the same program, so this is a plain struct. Its size is fixed: who sends it may be under a filter that
// forbids to allocate.
struct ErrorPacket {
    static constexpr size_t kMaxText = 4096;  // of a message and of a hint: whole sentences

    int32_t code = 0;
    uint32_t message_length = 0;
    uint32_t hint_length = 0;
    char text[2 * kMaxText];  // left as it is: only what is used is sent

    ErrorPacket() {}  // NOLINT(modernize-use-equals-default): that would clear the text
    explicit ErrorPacket(const Error& error) { hold(error); }

    void hold(const Error& error) noexcept;
    size_t size() const { return offsetof(ErrorPacket, text) + message_length + hint_length; }
    std::string_view bytes() const { return {reinterpret_cast<const char*>(this), size()}; }
};

// Nothing: it was cut short.
std::optional<Error> unpack_error(std::string_view bytes);

}  // namespace pinfold
