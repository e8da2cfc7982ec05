// One job from its beginning to its end, by another OCI runtime.
#pragma once

#include "pinfold/result.hpp"
#include "pinfold/sandbox.hpp"
#include "sandbox/run_job.hpp"

namespace pinfold {

// What that runtime does not tell is unknown in the result.
Result<SandboxResult> run_external(const SandboxJob& job, const SandboxSetting& setting);

}  // namespace pinfold
