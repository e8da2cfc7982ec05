// A profile under which no file gets a set-user-ID or set-group-ID bit.
#pragma once

#include "pinfold/spec.hpp"

namespace pinfold {

// For programs that own files which others than they may execute: a directory of the host's that a sandbox may write to
// is mounted nosuid for the sandbox, but for nobody else.
Seccomp without_set_id_bits(Seccomp profile);

}  // namespace pinfold
