// The words that the parser and the rules know, for those who list them: what is told is what is accepted.
#pragma once

#include <string_view>
#include <vector>

#include "pinfold/spec.hpp"
#include "spec/reader.hpp"

namespace pinfold {

struct HookKind {
    std::string_view name;
    std::vector<Hook> Hooks::*list;
};

inline constexpr HookKind kHookKinds[] = {
    {"prestart", &Hooks::prestart},
    {"createRuntime", &Hooks::create_runtime},
    {"createContainer", &Hooks::create_container},
    {"startContainer", &Hooks::start_container},
    {"poststart", &Hooks::poststart},
    {"poststop", &Hooks::poststop},
};

std::vector<std::string_view> namespace_types();
Words seccomp_architectures();
Words memory_policy_modes();
Words memory_policy_flags();

}  // namespace pinfold
