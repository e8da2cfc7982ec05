// pinfold pause, and its way back, resume.
#include "base/strings.hpp"
#include "cgroup/freeze.hpp"
#include "cli/live.hpp"
#include "cli/verbs.hpp"

namespace pinfold {

Result<int> verb_pause(const std::string& id, const CommandLine& line) {
    const ContainerRecord record = TRY(load_live(id, line)).record;
    if (is_frozen(record.cgroup_mount, record.cgroup_path)) {
        return plain_error("container is already paused").with_hint(concat("to let it go on: pinfold resume ", id));
    }
    TRY(freeze_group(record.cgroup_mount, record.cgroup_path));
    return 0;
}

Result<int> verb_resume(const std::string& id, const CommandLine& line) {
    const ContainerRecord record = TRY(load_live(id, line)).record;
    if (!is_frozen(record.cgroup_mount, record.cgroup_path)) return plain_error("container is not paused");
    TRY(thaw_group(record.cgroup_mount, record.cgroup_path));
    return 0;
}

}  // namespace pinfold
