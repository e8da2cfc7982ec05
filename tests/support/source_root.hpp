// Files of the project that tests read.
#pragma once

#include <filesystem>

namespace pinfold::testing {

// The top of the project: $PINFOLD_SOURCE_ROOT, or where the test was built from. The environment wins, since tests may
// run on another machine than the one that compiled them.
std::filesystem::path source_root();

}  // namespace pinfold::testing
