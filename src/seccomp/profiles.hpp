// Finding a profile: one of those that come with pinfold, or a file.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "pinfold/result.hpp"
#include "pinfold/spec.hpp"
#include "seccomp/profile.hpp"

namespace pinfold {

struct ProfileInfo {
    std::string_view name;
    std::string_view description;
};

// From the narrowest to the widest.
std::vector<ProfileInfo> shipped_profiles();

// A name, or a path: that has a slash or ends in ".json". The file is a profile of its own, which may extend a shipped
// one, or a config.json, whose linux.seccomp is taken.
Result<Seccomp> find_profile(std::string_view name_or_path);

// The same, with its reasons.
Result<Profile> find_explained_profile(std::string_view name_or_path);

}  // namespace pinfold
