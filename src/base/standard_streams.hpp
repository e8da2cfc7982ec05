// Descriptors 0, 1 and 2, before any other is opened.
#pragma once

#include "pinfold/result.hpp"
#include "pinfold/unique_fd.hpp"

namespace pinfold {

// /dev/null on each of them that the caller has closed. Otherwise the next file that is opened becomes a standard
// stream: what is printed lands in it, and the payload inherits it.
Result<void> fill_standard_streams();

// The same descriptor above them. For what may have been opened while one of them was closed.
Result<UniqueFd> above_standard_streams(UniqueFd fd);

}  // namespace pinfold
