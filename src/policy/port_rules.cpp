// Ports of this machine as an administrator writes them in a rule.
#include "policy/port_rules.hpp"

#include "base/address.hpp"
#include "base/strings.hpp"

namespace pinfold {

// By its one spelling. A rule for every address is one for that wish, and for no other.
bool PortRule::allows(const std::string& wanted, uint16_t port) const {
    return wanted == address && (port == 0 ? any_free : first <= port && port <= last);
}

std::optional<PortRule> parse_port_rule(std::string_view text) {
    std::optional<AddressAnd> split = split_address(text);
    if (!split) return std::nullopt;
    PortRule rule{.address = std::move(split->address)};
    if (!split->rest) return rule;
    const size_t dash = split->rest->find('-');
    const auto first = parse_number<uint16_t>(split->rest->substr(0, dash));
    const auto last = dash == split->rest->npos ? first : parse_number<uint16_t>(split->rest->substr(dash + 1));
    if (!first || !last || *first == 0 || *last < *first) return std::nullopt;
    rule.any_free = false;
    rule.first = *first;
    rule.last = *last;
    return rule;
}

}  // namespace pinfold
