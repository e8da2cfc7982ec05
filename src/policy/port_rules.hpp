// Ports of this machine as an administrator writes them in a rule.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace pinfold {

// "127.0.0.1", "127.0.0.1:8080", "[::1]:8000-8999". Without ports: those that a normal user could open, and any that is
// free, which is one of them.
struct PortRule {
    static constexpr uint16_t kUnprivileged = 1024;

    std::string address;
    bool any_free = true;  // whether the kernel may choose
    uint16_t first = kUnprivileged;
    uint16_t last = UINT16_MAX;

    bool allows(const std::string& wanted, uint16_t port) const;
};

std::optional<PortRule> parse_port_rule(std::string_view text);

}  // namespace pinfold
