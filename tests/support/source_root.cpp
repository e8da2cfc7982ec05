// Files of the project that tests read.
#include "support/source_root.hpp"

#include <cstdlib>

namespace pinfold::testing {

std::filesystem::path source_root() {
    const char* root = std::getenv("PINFOLD_SOURCE_ROOT");
    return root != nullptr ? root : BUILT_FROM;
}

}  // namespace pinfold::testing
