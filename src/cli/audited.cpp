// For verbs that change containers: their event is in the log before they begin.
#include "cli/audited.hpp"

namespace pinfold {

Result<AuditTrail> open_audit(const CommandLine& line) { return open_trail(line.gate->policies(), line.global.audit); }

ReceiptHandler require_and_log(const AuditTrail& trail, const std::string& id) {
    return [&trail, id](const Receipt& receipt) {
        if (trail.is_on()) append_or_warn(trail, receipt_event(id, receipt));
        return require(receipt);
    };
}

}  // namespace pinfold
