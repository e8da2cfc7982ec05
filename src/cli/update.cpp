// pinfold update: to come.
#include "cli/verbs.hpp"

namespace pinfold {

Result<int> verb_update(const UpdateOptions&, const CommandLine&) { return plain_error("not there yet"); }

}  // namespace pinfold
