// Finding a profile: one of those that come with pinfold, or a file.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "pinfold/result.hpp"
#include "pinfold/seccomp_profile.hpp"
#include "seccomp/profile.hpp"

namespace pinfold {

struct ProfileInfo {
    std::string_view name;
    std::string_view description;
};

// From the narrowest to the widest.
std::vector<ProfileInfo> shipped_profiles();

// What find_profile() finds, with its reasons.
Result<Profile> find_explained_profile(std::string_view name_or_path);

}  // namespace pinfold
