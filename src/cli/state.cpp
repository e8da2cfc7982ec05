// pinfold state.
#include "cgroup/control_files.hpp"
#include "cli/verbs.hpp"
#include "sandbox/monitor.hpp"
#include "state/store.hpp"

namespace pinfold {

namespace {

// How many processes were killed for want of memory; the kernel keeps the count as long as there is the group.
constexpr const char* kOomKilled = "org.pinfold.oom-killed";

void annotate_oom(ContainerRecord& record) {
    const uint64_t kills = count_oom(record.cgroup).kills;
    if (kills != 0) record.annotations[kOomKilled] = std::to_string(kills);
}

}  // namespace

Result<int> verb_state(const std::string& id, const CommandLine& line) {
    ContainerState state = TRY(load_state(line.global.root, id));
    annotate_oom(state.record);
    const std::optional<SandboxView> view = view_sandbox(line.global.root, state);
    TRY(print(state_to_json(state, view ? members_of(*view) : MoreMembers())));
    return 0;
}

}  // namespace pinfold
