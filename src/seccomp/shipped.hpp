// The profiles of seccomp-profiles/ as the build has put them into this program: with what they extend, compiled, and
// as data that costs nothing until it is asked for.
#pragma once

#include <linux/filter.h>

#include <optional>
#include <span>
#include <string_view>

#include "seccomp/profile.hpp"

namespace pinfold {

struct ShippedArg {
    uint32_t index;
    uint64_t value;
    uint64_t value_two;
    std::string_view op;
};

struct ShippedRule {
    std::string_view group;
    std::string_view reason;
    std::string_view names;  // with blanks between them: a pointer each would be one more for the loader to relocate
    std::string_view action;
    std::optional<uint32_t> errno_ret;
    std::span<const ShippedArg> args;
};

struct ShippedProfile {
    std::string_view name;
    std::string_view description;
    std::string_view default_action;
    std::optional<uint32_t> default_errno_ret;
    std::string_view architectures;  // with blanks between them
    std::span<const ShippedRule> rules;
    std::span<const sock_filter> program;
};

// From the narrowest to the widest.
std::span<const ShippedProfile> shipped_table();

Profile unpack(const ShippedProfile& profile);

}  // namespace pinfold
