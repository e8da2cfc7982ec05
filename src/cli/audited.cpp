// For verbs that change containers: their event is in the log before they begin.
#include "cli/audited.hpp"

#include "base/strings.hpp"
#include "sandbox/audit_job.hpp"

namespace pinfold {

Result<AuditTrail> open_audit(const CommandLine& line) { return open_trail(line.gate->policies(), line.global.audit); }

void append_failure(const AuditTrail& trail, const AuditEvent& event, const Error& error) {
    if (trail.is_on()) append_or_warn(trail, {event.event, event.id, "", {{"error", json_quoted(error.message)}}});
}

ReceiptHandler require_and_log(const AuditTrail& trail, const std::string& id) {
    return [&trail, id](const Receipt& receipt) {
        if (trail.is_on()) append_or_warn(trail, receipt_event(id, receipt));
        return require(receipt);
    };
}

}  // namespace pinfold
