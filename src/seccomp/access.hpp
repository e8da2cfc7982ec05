// What a profile allows, call by call and in words, and in what two profiles differ.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "pinfold/spec.hpp"
#include "seccomp/profile.hpp"

namespace pinfold {

// "argument 0 = 1 and argument 2 <= 58", any of which suffices; empty: the rule holds whatever the arguments are.
std::vector<std::string> conditions_of(const SyscallRule& rule);

// "allowed", "denied with EPERM", "kills the process", ...
std::string answer_in_words(std::string_view action, std::optional<uint32_t> errno_ret);
bool is_allowing(std::string_view action);

// The group of a call in the profiles that come with pinfold, or "other calls".
std::string group_of_call(const std::string& call);

// The calls, with conditions, that one profile allows and another does not, by their groups.
using CallsByGroup = std::map<std::string, std::vector<std::string>>;
CallsByGroup allowed_only_by(const Profile& profile, const Profile& other);

}  // namespace pinfold
