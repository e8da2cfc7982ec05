// Verbs to come.
#include "cli/verbs.hpp"

namespace pinfold {

Result<int> verb_create(const RunOptions&, const CommandLine&) { return plain_error("not there yet"); }
Result<int> verb_start(const std::string&, const CommandLine&) { return plain_error("not there yet"); }
Result<int> verb_exec(const ExecOptions&, const CommandLine&) { return plain_error("not there yet"); }
Result<int> verb_kill(const KillOptions&, const CommandLine&) { return plain_error("not there yet"); }
Result<int> verb_list(const ListOptions&, const CommandLine&) { return plain_error("not there yet"); }

}  // namespace pinfold
