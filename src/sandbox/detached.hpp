// Sandboxes that stay: started now, used by exec and cp, and removed by delete, by the end of their time, or by prune.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "audit/log.hpp"
#include "pinfold/result.hpp"
#include "pinfold/sandbox.hpp"
#include "sandbox/run_job.hpp"

namespace pinfold {

// Its name. With a command, that runs in it until it ends, and the sandbox with it.
Result<std::string> start_sandbox(const SandboxJob& wanted, const SandboxSetting& setting);

// One that has stopped, with the same command, limits and files, which must have been kept. Copies in are not repeated;
// what it has printed before is gone.
Result<void> restart_sandbox(const SandboxSetting& setting, const std::string& id);

// Ends it, and what runs in it.
Result<void> remove_sandbox(const std::string& state_root, const std::string& id);

struct WhatToPrune {
    std::chrono::nanoseconds age{};  // of those that have ended: since then at least
    bool bound = false;              // only what callers have started whom a policy binds
};

// Those that have ended, should have, or were not used for as long as they may be unused; and what is left of those
// that were never there. The names of what is to go.
Result<std::vector<std::string>> sandboxes_to_prune(const std::string& state_root, const WhatToPrune& what = {});

// Each is logged before it is removed; a failure of that ends it all, any other is a warning. The names of what was
// removed.
Result<std::vector<std::string>> prune_sandboxes(const std::string& state_root, const AuditTrail& trail,
                                                 const WhatToPrune& what = {});

}  // namespace pinfold
