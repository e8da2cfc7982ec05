// The name of a compiled program: equal keys, equal programs.
#pragma once

#include "base/sha256.hpp"
#include "pinfold/spec.hpp"

namespace pinfold {

Sha256Digest seccomp_cache_key(const Seccomp& profile);

}  // namespace pinfold
