// pinfold features: to come.
#include "cli/verbs.hpp"

namespace pinfold {

Result<int> verb_features() { return plain_error("not there yet"); }

}  // namespace pinfold
