// A process's way into groups that clone3(2) knows nothing of.
#include <fcntl.h>

#include "base/fs.hpp"
#include "base/strings.hpp"
#include "cgroup/cgroup.hpp"
#include "cgroup/legacy_groups.hpp"
#include "cgroup/processes.hpp"
#include "cgroup/scope.hpp"

namespace pinfold {

Result<void> admit_process(const CgroupPlace& place, pid_t pid) {
    for (const std::string& mount : legacy_mounts(place)) {
        const std::string group = mount + place.path;
        TRY_IN(concat("cgroup ", group), write_file_at(AT_FDCWD, group + "/cgroup.procs", std::to_string(pid)));
    }
    if (place.scope.empty()) return {};
    const std::string group = TRY(group_of(pid));
    if (group == place.path || group.starts_with(place.path + "/")) return {};
    return attach_to_scope(place, pid);
}

}  // namespace pinfold
