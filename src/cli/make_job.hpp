// The job that the options of `sandbox` describe.
#pragma once

#include "cli/verbs.hpp"
#include "pinfold/result.hpp"
#include "pinfold/sandbox.hpp"

namespace pinfold {

Result<SandboxJob> make_job(const SandboxOptions& options, const Gate& gate);

}  // namespace pinfold
