// Container ids: names of directories and cgroups, so only harmless characters.
#pragma once

#include <string>

#include "pinfold/result.hpp"

namespace pinfold {

Result<void> check_container_id(const std::string& id);

}  // namespace pinfold
