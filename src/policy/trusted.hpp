// What is believed because of who can have written it.
#pragma once

#include <string>

#include "pinfold/result.hpp"

namespace pinfold {

// An opened file or directory that only root, or also the caller, may write to. Else an error, which calls it `path`.
Result<void> require_trusted(int fd, const std::string& path, bool callers_own);

}  // namespace pinfold
