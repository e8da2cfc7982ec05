// From a job to a container: its configuration, its root, its init.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "pinfold/result.hpp"
#include "pinfold/sandbox.hpp"
#include "pinfold/spec.hpp"
#include "pinfold/unique_fd.hpp"
#include "plan/plan.hpp"
#include "policy/policy.hpp"
#include "sandbox/kept_files.hpp"

namespace pinfold {

// Seconds without use after which it may be removed.
inline constexpr const char* kIdleAnnotation = "org.pinfold.idle-timeout";
// Seconds after which one that stays ends.
inline constexpr const char* kLifetimeAnnotation = "org.pinfold.lifetime";

// The one it names, or the one that fits its network: a network is of no use without its sockets.
std::string profile_of(const SandboxJob& job);

// The same without set-user-ID and set-group-ID bits, where the job can write to a directory of the host's.
Seccomp profile_beside_binds(const SandboxJob& job, Seccomp profile);

// As it was given, for errors.
std::string option_of(const HostBind& bind);

struct JobConfig {
    Spec spec;
    MadeRoot root;
    std::string root_path;  // what it lies over; empty: nothing
    UniqueFd root_source;   // the same, opened: its name may lead elsewhere by now
    SandboxInitPlan sandbox_init;
    std::vector<UniqueFd> sources;  // of binds, which the configuration names by number
    std::optional<KeptFiles> kept;
};

// One that stays has a lifetime, if that is limited, and no deadline; and perhaps no payload.
Result<JobConfig> build_config(const SandboxJob& job, const Policies& policies, const HostFacts& host,
                               const std::string& id, bool stays);

std::chrono::nanoseconds timeout_of(const SandboxJob& job);

}  // namespace pinfold
