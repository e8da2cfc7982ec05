// pinfold start.
#include "cli/begin.hpp"
#include "cli/verbs.hpp"
#include "process/lifetime.hpp"
#include "state/lifecycle.hpp"

namespace pinfold {

namespace {

Result<int> start_it(const std::string& root, const std::string& id, const AuditTrail& trail) {
    const StateLock lock = TRY(StateLock::take(root, id));
    const ContainerState state = TRY(load_state(root, id));
    TRY(check_operation(Operation::start, state));
    TRY(start_container(root, state, require_and_log(trail, id)));
    return 0;
}

}  // namespace

Result<int> verb_start(const std::string& id, const CommandLine& line) {
    const AuditTrail trail = TRY(open_audit(line));
    return audited(trail, {"start", id, "", {}}, [&] { return start_it(line.global.root, id, trail); });
}

}  // namespace pinfold
