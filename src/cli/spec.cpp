// pinfold spec: to come.
#include "cli/verbs.hpp"

namespace pinfold {

Result<int> verb_spec(const SpecOptions&) { return plain_error("not there yet"); }

}  // namespace pinfold
