// The seccomp profiles that come with pinfold, and those in files.
#pragma once

#include <string_view>

#include "pinfold/result.hpp"
#include "pinfold/spec.hpp"

namespace pinfold {

// A name, or a path: that has a slash or ends in ".json". The file is a profile of its own, which may extend a shipped
// one, or a config.json, whose linux.seccomp is taken. Rules with conditions (`includes`, `excludes` of Docker's
// profiles) are those that hold on this machine for a program without capabilities, which is what generate() makes.
Result<Seccomp> find_profile(std::string_view name_or_path);

}  // namespace pinfold
