// Addresses and ports of TCP: as words, and as the kernel has them.
#pragma once

#include <sys/socket.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace pinfold {

struct SocketAddress {
    sockaddr_storage name{};
    socklen_t size = 0;

    const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&name); }
};

// Of IPv4 or IPv6, by number alone: names are nobody's to ask for here.
std::optional<SocketAddress> socket_address(const std::string& address, uint16_t port);

// An address in its one spelling ("::1" for "0:0::1"), and what follows the colon after it. IPv6 stands in brackets, as
// it has colons itself. Nothing: it does not begin with an address.
struct AddressAnd {
    std::string address;
    std::optional<std::string_view> rest;  // nothing: there is no colon
};
std::optional<AddressAnd> split_address(std::string_view text);

// "127.0.0.1:80", "[::1]:80"
std::string address_text(const std::string& address, uint16_t port);

}  // namespace pinfold
