// The seccomp section of config.json, as parse_seccomp.cpp reads it.
#pragma once

#include "json/json.hpp"
#include "pinfold/spec.hpp"

namespace pinfold {

// What is not set is left out. The rules come last.
Json to_json(const Seccomp& seccomp);

}  // namespace pinfold
