// For verbs that work on the group of a container that has processes.
#include "cli/live.hpp"

#include "base/strings.hpp"
#include "state/container_id.hpp"

namespace pinfold {

Result<ContainerState> load_live(const std::string& id, const CommandLine& line) {
    TRY(check_container_id(id));
    ContainerState state = TRY(load_state(line.global.root, id));
    if (state.status == Status::creating || state.status == Status::stopped) {
        return plain_error(concat("container not running: it is ", status_name(state.status)));
    }
    if (state.record.cgroup_path.empty()) {
        return plain_error("the container has no cgroup of its own")
            .with_hint("create it as root, and without --cgroup-manager disabled");
    }
    return state;
}

}  // namespace pinfold
