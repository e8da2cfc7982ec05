// The parent's steps on the host, and what each of them does, in words.
#pragma once

#include <optional>

#include "process/child_steps.hpp"
#include "process/hooks.hpp"
#include "process/parent_steps.hpp"
#include "process/step.hpp"

namespace pinfold {

// What the steps are chosen by.
struct StartRequest {
    const Plan& plan;
    const LaunchOptions& options;
    bool waits_for_start = false;  // stop when all is set up but the payload
    LastSteps last{};

    ChildRequest child() const { return {plan.process, plan.seccomp, &plan, waits_for_start, last}; }
};

// The parent's ends. The child closes its copies of them first of all: only so does it see the end of a parent that
// dies before the parent-death signal is set, or after that was lifted.
struct ParentEnds {
    ParentSide handshake;
    std::optional<Channel> link;  // to the sandbox init, if there is to be one

    void close() {
        handshake.close();
        if (link) link->close();
    }
};

// How it ends, while that is decided.
struct EndingContext {
    StartRequest request;
    std::optional<SeccompFilter> filter;
};

// A start on its way.
struct ParentContext {
    StartRequest request;
    const NewContainer& container;
    const SignalForwarder& signals;
    PoststopHooks& poststop;
    std::optional<ParentEnds> ends;
    std::optional<ChildContext> for_child;  // until the clone, which takes it over
    RunningContainer made;
    std::optional<NetworkAhead> network_ahead{};  // while it is made
    UniqueFd network{};                           // until it is the child's

    const Plan& plan() const { return request.plan; }
    const LaunchOptions& options() const { return request.options; }
    ParentSide& handshake() { return ends->handshake; }
};

// What a child cannot do for itself, the container's first process or one of exec.
Result<void> set_oom_score(pid_t pid, int score);
// Pipes on our 0, 1 and 2 that it may open again.
Result<void> give_away_pipes(uid_t owner);
Result<void> send_pidfd(const Child& child, const std::string& socket);
// To the program that decides, at the profile's socket, with the container's state and the pid of the process.
Result<void> send_listener(int listener, const ContainerState& state, pid_t pid, const Seccomp& profile);
// Console socket and window size, as the plan and the caller want them; the filter is still to be compiled.
Result<PayloadSetup> make_setup(const ProcessPlan& process, const ChildOptions& options);

bool joins_pid_namespace(const StartRequest& request);
bool runs_from_clone(const StartRequest& request);
Result<void> run_from_clone(EndingContext& context);
Actions tell_own_binary(const StartRequest& request);
bool makes_network(const StartRequest& request);
Result<void> begin_network(ParentContext& context);
Actions tell_begun_network(const StartRequest& request);
Result<void> finish_network(ParentContext& context);
Actions tell_finished_network(const StartRequest& request);
// CLONE_NEW*, without what is made ahead.
uint64_t cloned_namespaces(const Plan& plan);
Result<void> claim_state(ParentContext& context);
Actions tell_state(const StartRequest& request);
bool has_group(const StartRequest& request);
Result<void> make_group(ParentContext& context);
Actions tell_group(const StartRequest& request);
bool has_filter(const StartRequest& request);
Result<void> compile_filter(EndingContext& context);
Actions tell_compilation(const StartRequest& request);
bool ends_in_trampoline(const StartRequest& request);
Result<void> prepare_trampoline(ParentContext& context);
Actions tell_prepared_trampoline(const StartRequest& request);
bool opens_sources(const StartRequest& request);
Result<void> open_sources(ParentContext& context);
Actions tell_sources(const StartRequest& request);
bool waits_for_start(const StartRequest& request);
Result<void> make_start_socket(ParentContext& context);
Actions tell_start_socket(const StartRequest& request);
Actions tell_clone(const StartRequest& request);
bool attaches_later(const StartRequest& request);
Result<void> attach_child(ParentContext& context);
Actions tell_attachment(const StartRequest& request);
bool maps_ids(const StartRequest& request);
Result<void> map_ids(ParentContext& context);
Actions tell_id_maps(const StartRequest& request);
Result<void> raise_limits(ParentContext& context);
Actions tell_raised_limits(const StartRequest& request);
Result<void> write_oom_score(ParentContext& context);
Actions tell_oom_score(const StartRequest& request);
bool gives_streams(const StartRequest& request);
Result<void> give_streams(ParentContext& context);
Actions tell_stream_owner(const StartRequest& request);
Result<void> record_init(ParentContext& context);
Actions tell_record(const StartRequest& request);
Result<void> move_net_devices(ParentContext& context);
Actions tell_net_devices(const StartRequest& request);
bool announces(const StartRequest& request);
bool announces_child(const StartRequest& request);
Result<void> announce(ParentContext& context);
Actions tell_announcement(const StartRequest& request);

}  // namespace pinfold
