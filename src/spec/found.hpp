// How a problem is worded: what was found, and what is allowed.
#pragma once

#include <concepts>
#include <span>
#include <string>
#include <string_view>

#include "base/strings.hpp"
#include "json/tree.hpp"

namespace pinfold {

// found "foo", allowed: ...   Long texts are cut.
std::string found(std::string_view text, std::string_view allowed);
std::string found(const Json& json, std::string_view allowed);

template <std::integral Number>
std::string found(Number number, std::string_view allowed) {
    return concat("found ", number, ", allowed: ", allowed);
}

// found "foo", allowed: one, two, three
std::string found(std::string_view text, std::span<const std::string_view> allowed);

}  // namespace pinfold
