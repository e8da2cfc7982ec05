// A network of its own for a sandbox, by pasta(1): a process of the caller's that translates connections.
#pragma once

#include <sys/types.h>

#include "pinfold/result.hpp"

namespace pinfold {

// For the network namespace of that process. pasta goes on in the background and ends with the namespace.
Result<void> start_pasta(pid_t pid);

}  // namespace pinfold
