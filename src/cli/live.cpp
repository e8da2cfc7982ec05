// For verbs that work on the group of a container that has processes.
#include "cli/live.hpp"

namespace pinfold {

Result<ContainerState> load_with_cgroup(Operation operation, const std::string& id, const CommandLine& line) {
    ContainerState state = TRY(load_state(line.global.root, id));
    TRY(check_operation(operation, state));
    if (!state.record.cgroup.exists()) {
        return plain_error("the container has no cgroup of its own")
            .with_hint("create it as root, and without --cgroup-manager disabled");
    }
    return state;
}

}  // namespace pinfold
