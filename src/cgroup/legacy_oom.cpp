// How cgroup v1 tells that a group has run out of memory: by an eventfd that the group is told of.
#include "cgroup/legacy_oom.hpp"

#include <fcntl.h>
#include <sys/eventfd.h>

#include "base/fs.hpp"
#include "base/strings.hpp"
#include "cgroup/control_files.hpp"

namespace pinfold {

Result<LegacyOom> watch_legacy_oom(const CgroupPlace& place) {
    const UniqueFd group = TRY(open_group({place.legacy.at("memory"), place.path, {}, {}}));
    LegacyOom oom;
    oom.control = TRY(open_at(group.get(), "memory.oom_control", O_RDONLY));
    oom.signal = UniqueFd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (!oom.signal) return errno_error("make an eventfd");
    const std::string request = concat(oom.signal.get(), ' ', oom.control.get());
    TRY(write_file_at(group.get(), "cgroup.event_control", request));
    return oom;
}

}  // namespace pinfold
