// pinfold pause, and its way back, resume.
#include "cgroup/cgroup.hpp"
#include "cli/begin.hpp"
#include "cli/live.hpp"
#include "cli/verbs.hpp"

namespace pinfold {

Result<int> verb_pause(const std::string& id, const CommandLine& line) {
    return audited(line, AuditEvent{"pause", id, "", {}}, [&]() -> Result<int> {
        const StateLock lock = TRY(StateLock::take(line.global.root, id));
        const ContainerRecord record = TRY(load_with_cgroup(Operation::pause, id, line)).record;
        TRY(freeze_group(record.cgroup));
        return 0;
    });
}

Result<int> verb_resume(const std::string& id, const CommandLine& line) {
    return audited(line, AuditEvent{"resume", id, "", {}}, [&]() -> Result<int> {
        const StateLock lock = TRY(StateLock::take(line.global.root, id));
        const ContainerRecord record = TRY(load_with_cgroup(Operation::resume, id, line)).record;
        TRY(thaw_group(record.cgroup));
        return 0;
    });
}

}  // namespace pinfold
