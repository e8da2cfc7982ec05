// What a sandbox that stays was started with, in its state, so that it can be started again.
#pragma once

#include <string>
#include <string_view>

#include "pinfold/result.hpp"
#include "pinfold/sandbox.hpp"
#include "state/store.hpp"

namespace pinfold {

// Paths of the host are made absolute. Without what is done once, copies in among it, and without what was its
// caller's.
std::string job_text(const SandboxJob& job);
Result<SandboxJob> job_from_text(std::string_view text);

// Of one whose files are kept; of others nothing is written.
Result<void> keep_job(const SandboxJob& job, const StateDir& state);
Result<SandboxJob> load_job(const std::string& root, const std::string& id);

}  // namespace pinfold
