// For verbs that change containers: their event is in the log before they begin.
#include "cli/audited.hpp"

#include <algorithm>

#include "base/log.hpp"
#include "base/strings.hpp"
#include "policy/policy.hpp"

namespace pinfold {

Result<AuditTrail> open_audit(const GlobalOptions& options) {
    std::vector<std::string> files = audit_files(TRY(load_policies(options.policy)));
    const bool is_new = std::ranges::find(files, options.audit) == files.end();
    if (!options.audit.empty() && is_new) files.push_back(options.audit);
    return AuditTrail::open(files);
}

void append_or_warn(const AuditTrail& trail, const AuditEvent& event) {
    const Result<void> appended = trail.append(event);
    if (!appended) log_warning(appended.error().message);
}

void append_failure(const AuditTrail& trail, const AuditEvent& event, const Error& error) {
    if (trail.is_on()) append_or_warn(trail, {event.event, event.id, "", {{"error", json_quoted(error.message)}}});
}

}  // namespace pinfold
