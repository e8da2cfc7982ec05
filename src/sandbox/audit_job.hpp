// What the audit log is told of a job.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "audit/log.hpp"
#include "pinfold/sandbox.hpp"

namespace pinfold {

// Before it starts: what it is, and what it may have.
AuditEvent job_event(const SandboxJob& job, const std::string& id, const std::string& config);

// When it has ended: each forbidden call, a limit that it ran into, and how it ended. One more program in a sandbox is
// told from the sandbox itself, which lives on.
enum class Ended { sandbox, exec };
void log_result(const AuditTrail& trail, const std::string& id, const Result<SandboxResult>& ended,
                Ended what = Ended::sandbox);

}  // namespace pinfold
