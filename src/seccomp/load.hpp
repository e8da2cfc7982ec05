// Puts this process, and all that it will exec, under a compiled filter. There is no way back.
#pragma once

#include "pinfold/result.hpp"
#include "seccomp/compile.hpp"

namespace pinfold {

// The child's side: one system call; memory is allocated only to report a failure. The value is the listener's
// descriptor (close on exec), for a filter that has one.
Result<int> load_seccomp(const SeccompFilter& filter);

// Whether this kernel knows the SECCOMP_FILTER_FLAG_*; nothing is loaded.
bool kernel_takes_seccomp_flag(unsigned flag);

}  // namespace pinfold
