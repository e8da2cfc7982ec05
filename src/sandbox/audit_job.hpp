// What the audit log is told of a job.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "audit/log.hpp"
#include "pinfold/sandbox.hpp"
#include "policy/policy.hpp"

namespace pinfold {

// The logs that the policies and `added`, if it is not empty, ask for.
Result<AuditTrail> open_trail(const Policies& policies, const std::string& added);

// Before it starts: what it is, and what it may have.
AuditEvent job_event(const SandboxJob& job, const std::string& id, const std::string& config);

// When it has ended: each forbidden call, a limit that it ran into, and how it ended.
void log_result(const AuditTrail& trail, const std::string& id, const Result<SandboxResult>& ended);

}  // namespace pinfold
