// pinfold events: to come.
#include "cli/verbs.hpp"

namespace pinfold {

Result<int> verb_events(const EventsOptions&, const CommandLine&) { return plain_error("not there yet"); }

}  // namespace pinfold
