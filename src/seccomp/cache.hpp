// Compiled programs kept on disk: compiling a large profile takes longer than all the rest of a start.
#pragma once

#include <string>

#include "pinfold/result.hpp"
#include "pinfold/spec.hpp"
#include "seccomp/compile.hpp"

namespace pinfold {

// compile_seccomp, or its result from an earlier time. The directory is made (0700) if only its last component is
// missing. It is trusted only if it is ours alone; whatever is wrong with the cache, the profile is compiled instead.
Result<SeccompFilter> compile_seccomp_cached(const Seccomp& profile, const std::string& cache_dir);

}  // namespace pinfold
