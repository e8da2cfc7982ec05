// Properties of units, "NAME=VALUE", in the types that systemd's D-Bus interface gives them.
#pragma once

#include <sys/types.h>
#include <systemd/sd-bus.h>

#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "pinfold/result.hpp"

namespace pinfold {

using IndexMask = std::vector<uint8_t>;  // bit n stands for CPU or node n

struct UnitProperty {
    std::string name;
    std::variant<uint64_t, bool, std::string, IndexMask, pid_t> value;
};

Result<UnitProperty> parse_property(std::string_view text);

// As one "(sv)"; a negative errno where the message cannot take it.
int append_property(sd_bus_message* message, const UnitProperty& property);

}  // namespace pinfold
