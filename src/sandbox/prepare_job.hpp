// A job that is ready to be launched: everything is checked, opened, planned and compiled, and nothing is made yet.
#pragma once

#include <optional>
#include <string>

#include "audit/log.hpp"
#include "files/inside.hpp"
#include "pinfold/result.hpp"
#include "pinfold/sandbox.hpp"
#include "process/parent_steps.hpp"
#include "sandbox/build_config.hpp"
#include "sandbox/pasta.hpp"
#include "sandbox/run_job.hpp"
#include "sandbox/streams.hpp"
#include "sandbox/transfer.hpp"
#include "seccomp/compile.hpp"

namespace pinfold {

// All that is known before anything is made.
struct PreparedJob {
    JobConfig config;
    Plan plan;
    SeccompFilter filter;  // the profile's own; that of the plan reports, if somebody stays to listen
    Transfers transfers;
    AuditTrail audit;
    JobStreams streams;
};

// With one that is made up, if it has none.
Result<SandboxJob> with_name(SandboxJob job);

// Of a job with a name.
Result<PreparedJob> prepare_job(const SandboxJob& job, const SandboxSetting& setting, bool stays = false);

// Where a policy limits their number: counted while nobody else is, and nobody else is until the descriptor is closed,
// by when the state of the new one is to be there.
Result<UniqueFd> take_place(const SandboxSetting& setting);

NewContainer container_of(const PreparedJob& job);
// `network` is where pasta is held, if the job wants it; it must outlive the container.
LaunchOptions launch_options(const SandboxJob& job, const PreparedJob& prepared, const SandboxSetting& setting,
                             std::optional<Pasta>& network);
Result<InsideOf> inside_of_sandbox_init(pid_t sandbox_init, const Plan& plan);

std::string seccomp_cache(const SandboxSetting& setting);

}  // namespace pinfold
