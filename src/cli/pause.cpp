// pinfold pause: to come.
#include "cli/verbs.hpp"

namespace pinfold {

Result<int> verb_pause(const std::string&, const CommandLine&) { return plain_error("not there yet"); }
Result<int> verb_resume(const std::string&, const CommandLine&) { return plain_error("not there yet"); }

}  // namespace pinfold
