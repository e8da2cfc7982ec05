// A job that is ready to be launched: everything is checked, opened, planned and compiled, and nothing is made yet.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "audit/log.hpp"
#include "files/inside.hpp"
#include "pinfold/result.hpp"
#include "pinfold/sandbox.hpp"
#include "process/parent_steps.hpp"
#include "sandbox/build_config.hpp"
#include "sandbox/forwarder.hpp"
#include "sandbox/pasta.hpp"
#include "sandbox/publish.hpp"
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
    InsideOf inside;                       // once it has been made
    std::vector<PublishedPort> published;  // the ports that the listeners have
    SeccompFilter forwarder;               // what the process is held to that passes connections on
    std::vector<Listener> listeners;       // until that has them
};

// With one that is made up, if it has none.
Result<SandboxJob> with_name(SandboxJob job);

// Of a job with a name.
Result<PreparedJob> prepare_job(const SandboxJob& job, const SandboxSetting& setting, bool stays = false);

// Where a policy limits their number: counted while nobody else is, and nobody else is until the descriptor is closed,
// by when the state of the new one is to be there.
Result<UniqueFd> take_place(const SandboxSetting& setting, const std::string& name);

NewContainer container_of(const PreparedJob& job);

// Processes of ours, outside of the sandbox, that its network takes: those that the job asks for. They must outlive the
// container.
struct NetworkHelpers {
    std::optional<Pasta> pasta;
    std::optional<Forwarder> forwarder;

    void release() noexcept;
};

LaunchOptions launch_options(const SandboxJob& job, PreparedJob& prepared, const SandboxSetting& setting,
                             NetworkHelpers& network);
// What listens is the forwarder's alone from then on.
Result<RunningContainer> launch_job(const SandboxJob& job, PreparedJob& prepared, const LaunchOptions& options,
                                    const SignalForwarder& signals);

std::string seccomp_cache(const SandboxSetting& setting);

}  // namespace pinfold
