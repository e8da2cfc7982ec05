// pinfold start.
#include "cli/begin.hpp"
#include "cli/make_job.hpp"
#include "cli/verbs.hpp"
#include "process/lifetime.hpp"
#include "sandbox/detached.hpp"
#include "state/lifecycle.hpp"

namespace pinfold {

namespace {

// False: it is a sandbox that has stopped.
Result<bool> start_created(const std::string& root, const std::string& id, const AuditTrail& trail) {
    const StateLock lock = TRY(StateLock::take(root, id));
    const ContainerState state = TRY(load_state(root, id));
    if (state.status == Status::stopped && state.record.annotations.contains(kSandboxAnnotation)) return false;
    TRY(check_operation(Operation::start, state));
    TRY(start_container(root, state, require_and_log(trail, id)));
    return true;
}

// A sandbox that stays, and has stopped, is started again; whoever starts it takes the lock.
Result<int> start_it(const CommandLine& line, const std::string& id, const AuditTrail& trail) {
    if (!TRY(start_created(line.global.root, id, trail))) TRY(restart_sandbox(setting_of(line), id));
    return 0;
}

}  // namespace

Result<int> verb_start(const std::string& id, const CommandLine& line) {
    const AuditTrail trail = TRY(open_audit(line));
    return audited(trail, {"start", id, "", {}}, [&] { return start_it(line, id, trail); });
}

}  // namespace pinfold
