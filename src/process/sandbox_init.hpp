// The sandbox init: pinfold itself as the first process of a sandbox. It starts the payload as its child, passes
// signals on to it, reaps what is orphaned, and keeps the sandbox until its supervisor has taken out what it wants.
//
// Supervisor and sandbox init speak over a channel of their own:
//
//     init       -> supervisor   created   (only if it is to wait) the root is entered: files can be copied in
//     supervisor -> init         go        they are there
//     init       -> supervisor   born      the payload's pidfd; the payload speaks over the other channel now
//     supervisor -> init         go        (only if there is a deadline) the payload's time starts now
//     init       -> supervisor   ended     how the payload ended; everything else in the sandbox is dead
//     (end of file)                        the supervisor is done, or dead: init ends, and the sandbox with it
#pragma once

#include <sys/types.h>

#include <chrono>
#include <optional>
#include <utility>

#include "kernel/capabilities.hpp"
#include "pinfold/result.hpp"
#include "plan/plan.hpp"
#include "process/handshake.hpp"
#include "process/spawn.hpp"

namespace pinfold {

struct SandboxInitContext {
    Channel link;
    ArgvRegion words;
};

// For one that waits: until the files are there, among which may be its working directory and its program.
Result<void> await_files(const Channel& link);

// What a sandbox init exits with that has ended the payload at its deadline, because its supervisor had not.
inline constexpr int kDeadlinePassed = 124;

// Returns in the payload's process, which has yet to become it. In init's own it returns only if there is no payload to
// be started: the error is for the channel that leads to its parent.
Result<void> become_sandbox_init(const SandboxInitPlan& plan, SandboxInitContext context, ChildSide& handshake);

}  // namespace pinfold
