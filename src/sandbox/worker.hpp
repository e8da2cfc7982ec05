// Work in a process of its own, for a caller whose threads, signals and children are not ours to touch.
#pragma once

#include <functional>
#include <string>

#include "pinfold/result.hpp"

namespace pinfold {

// Forks; the child does the work and sends its answer back. It dies with the calling thread.
Result<std::string> in_worker(const std::function<Result<std::string>()>& work);

}  // namespace pinfold
