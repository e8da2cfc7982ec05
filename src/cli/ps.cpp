// pinfold ps: to come.
#include "cli/verbs.hpp"

namespace pinfold {

Result<int> verb_ps(const PsOptions&, const CommandLine&) { return plain_error("not there yet"); }

}  // namespace pinfold
