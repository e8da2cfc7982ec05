// pinfold start.
#include "cli/verbs.hpp"
#include "process/lifetime.hpp"
#include "state/lifecycle.hpp"

namespace pinfold {

Result<int> verb_start(const std::string& id, const CommandLine& line) {
    const StateLock lock = TRY(StateLock::take(line.global.root, id));
    const ContainerState state = TRY(load_state(line.global.root, id));
    TRY(check_operation(Operation::start, state));
    TRY(start_container(line.global.root, state));
    return 0;
}

}  // namespace pinfold
