// Descriptors for programs that wait for them on a unix socket.
#pragma once

#include <string>
#include <string_view>

#include "pinfold/result.hpp"
#include "pinfold/unique_fd.hpp"

namespace pinfold {

// A stream socket; `what` is its name in errors. The path may have any length, though an address holds 107 bytes.
Result<UniqueFd> connect_to_socket(std::string_view what, const std::string& path);

// The descriptor comes with the first byte of the text, which must have one.
Result<void> send_fd(int socket, int fd, std::string_view text);

}  // namespace pinfold
