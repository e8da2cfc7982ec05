// For verbs that change containers: their event is in the log before they begin, or they do not begin.
#pragma once

#include "audit/log.hpp"
#include "cli/options.hpp"
#include "pinfold/result.hpp"
#include "verify/receipt.hpp"

namespace pinfold {

// The logs that --audit and the policies ask for.
Result<AuditTrail> open_audit(const CommandLine& line);

// With --strict: what does not hold ends the start.
ReceiptHandler require_and_log(const AuditTrail& trail, const std::string& id);

template <class Work>
Result<int> audited(const AuditTrail& trail, const AuditEvent& event, Work work) {
    TRY(trail.append(event));
    Result<int> done = work();
    if (!done) append_failure(trail, event, done.error());
    return done;
}

template <class Work>
Result<int> audited(const CommandLine& line, const AuditEvent& event, Work work) {
    return audited(TRY(open_audit(line)), event, work);
}

}  // namespace pinfold
