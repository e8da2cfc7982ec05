// The child: from the clone to execve. Flat lists of steps, which stand at the end of child_steps.cpp: into the
// container, to the payload's user, to its restrictions, and to its program. The last is taken by the child, by the
// trampoline that it becomes (trampoline.hpp), or by a process that it clones where others see that; each has its list.
#pragma once

#include <sys/resource.h>

#include <optional>
#include <string>
#include <vector>

#include "kernel/safe_path.hpp"
#include "pinfold/unique_fd.hpp"
#include "plan/plan.hpp"
#include "process/handshake.hpp"
#include "process/sandbox_init.hpp"
#include "process/spawn.hpp"
#include "process/step.hpp"
#include "seccomp/compile.hpp"
#include "state/store.hpp"

namespace pinfold {

// What the payload gets as 0, 1 and 2 instead of the caller's own.
struct Streams {
    UniqueFd in;
    UniqueFd out;
    UniqueFd err;
};

// What the parent has made ready for the payload.
struct PayloadSetup {
    std::optional<SeccompFilter> filter;
    UniqueFd console_socket;  // empty: the terminal goes to the parent
    std::optional<winsize> window;
    const Streams* streams = nullptr;  // null: the caller's own
};

// Detached mounts: the parent has made those that the child cannot, the child makes the others.
struct OpenedTrees {
    UniqueFd root;
    std::vector<UniqueFd> mounts;  // one per request, in order
};

// How the last steps are taken, which the filter has a say in.
struct LastSteps {
    // The filter is in force before others may look at the process: it allows what is left of the start.
    bool filters_early = false;
    bool in_trampoline = false;  // trampoline.hpp
};

// What is decided on before anything is made: pinfold may have to start again for it (parent_steps.hpp).
struct Ending {
    std::optional<SeccompFilter> filter;  // compiled
    LastSteps last;
};

// What the steps are chosen by.
struct ChildRequest {
    const ProcessPlan& process;
    const std::optional<Seccomp>& seccomp;
    const Plan* plan = nullptr;    // null: a process of exec, for which there are only the steps of a payload
    bool waits_for_start = false;  // all is set up but the payload
    LastSteps last{};
    bool joins_users = false;  // an exec's, in the container's user namespace
};

// What the child takes over from its parent besides the plan, and what one step leaves for the next ones.
struct ChildContext {
    ChildRequest request;
    ChildSide handshake;
    PayloadSetup setup;
    OpenedTrees trees;
    UniqueFd network;        // to be entered: it was made ahead, and came with `go`; empty: we have it from the clone
    UniqueFd trampoline;     // empty: the last steps are taken here
    UniqueFd start_socket;   // empty: do not wait for `start`
    UniqueFd pid_namespace;  // to be entered when all else is set up; empty: we are where we belong
    ArgvRegion words;        // our caller's, to be wiped where others could read them
    std::optional<SandboxInitContext> sandbox_init;  // where the plan has one
    const ContainerRecord* record = nullptr;         // for hooks
    pid_t host_pid = 0;                              // our own, as the host sees it; the parent says it

    std::optional<RootFd> root;
    std::optional<rlimit> descriptor_limit;     // the caller's, while there are more
    std::vector<ResourceLimit> rlimits_inside;  // those that a clone must not inherit
    bool in_cwd = false;
    std::string program;
    std::vector<std::string> env;
    Readiness readiness;

    const Plan& plan() const { return *request.plan; }
    const ProcessPlan& process() const { return request.process; }
};

using ChildStep = Step<ChildRequest, ChildContext>;

// A step is taken where its part of the plan asks for anything.
template <auto Part>
bool asks(const ChildRequest& request) {
    if constexpr (std::is_invocable_v<decltype(Part), const Plan&>) return is_set(std::invoke(Part, *request.plan));
    else return is_set(std::invoke(Part, request.process));
}

// As the filter allows (null: there is none). It is early where that should be, and nobody has to hear of it, or to
// look at the process between the filter and execve.
LastSteps choose_last_steps(const ChildRequest& request, const SeccompFilter* filter);
// Whether they can be taken in a trampoline, whatever the filter says. Not where the process is looked at, has to do
// more than system calls, or takes a label with its next execve.
bool can_end_in_trampoline(const ChildRequest& request);

// The first process of a container, in the clone.
[[noreturn]] void run_child(ChildContext context);

// All of it from the payload's user on, for the first process and for one of exec. Where others are to see the process
// (spawn.hpp) it is in two halves: outside of their sight it gets the payload's user, streams and rights, but for those
// that the rest takes; what it clones then, inside, does that rest. Returns only on failure.
Result<void> become_payload(ChildContext& context);

// In the order in which they are taken; those of the process that takes over inside, if there is one, apart.
void tell_child_steps(const ChildRequest& request, std::vector<ToldStep>& told);
void tell_steps_inside(const ChildRequest& request, std::vector<ToldStep>& told);
// With --debug: those that the child takes when standard error is the payload's, once it is seen that it has.
void log_silent_steps(const ChildRequest& request);

}  // namespace pinfold
