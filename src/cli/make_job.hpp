// The job that the options of `sandbox` describe, and where it is run.
#pragma once

#include "cli/verbs.hpp"
#include "pinfold/result.hpp"
#include "pinfold/sandbox.hpp"
#include "sandbox/run_job.hpp"

namespace pinfold {

Result<SandboxJob> make_job(const SandboxOptions& options, const Gate& gate);
SandboxSetting setting_of(const CommandLine& line);

// sandbox --lang list: which languages there are in the root that the other options describe, and their versions.
inline constexpr const char* kListLanguages = "list";
Result<int> list_languages(const SandboxOptions& options, const CommandLine& line);

}  // namespace pinfold
