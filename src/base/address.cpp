// Addresses and ports of TCP.
#include "base/address.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <cstring>

#include "base/strings.hpp"

namespace pinfold {

std::optional<SocketAddress> socket_address(const std::string& address, uint16_t port) {
    SocketAddress made;
    sockaddr_in four{.sin_family = AF_INET, .sin_port = htons(port), .sin_addr = {}, .sin_zero = {}};
    sockaddr_in6 six{};
    six.sin6_family = AF_INET6;
    six.sin6_port = htons(port);
    if (::inet_pton(AF_INET, address.c_str(), &four.sin_addr) == 1) {
        made.size = sizeof four;
        std::memcpy(&made.name, &four, sizeof four);
    } else if (::inet_pton(AF_INET6, address.c_str(), &six.sin6_addr) == 1) {
        made.size = sizeof six;
        std::memcpy(&made.name, &six, sizeof six);
    } else {
        return std::nullopt;
    }
    return made;
}

namespace {

std::optional<std::string> one_spelling(const std::string& address, int family) {
    in6_addr bytes{};  // the larger of both
    char text[INET6_ADDRSTRLEN];
    if (::inet_pton(family, address.c_str(), &bytes) != 1) return std::nullopt;
    if (::inet_ntop(family, &bytes, text, sizeof text) == nullptr) return std::nullopt;
    return text;
}

}  // namespace

std::optional<AddressAnd> split_address(std::string_view text) {
    const bool is_six = text.starts_with('[');
    const size_t end = is_six ? text.find(']') : std::min(text.find(':'), text.size());
    if (end == text.npos) return std::nullopt;
    const std::string address(text.substr(is_six ? 1 : 0, end - (is_six ? 1 : 0)));
    std::optional<std::string> spelling = one_spelling(address, is_six ? AF_INET6 : AF_INET);
    const std::string_view after = text.substr(is_six ? end + 1 : end);
    if (!spelling || (!after.empty() && after[0] != ':')) return std::nullopt;
    if (after.empty()) return AddressAnd{std::move(*spelling), {}};
    return AddressAnd{std::move(*spelling), after.substr(1)};
}

std::string address_text(const std::string& address, uint16_t port) {
    const bool is_six = address.find(':') != address.npos;
    return is_six ? concat('[', address, "]:", port) : concat(address, ':', port);
}

}  // namespace pinfold
