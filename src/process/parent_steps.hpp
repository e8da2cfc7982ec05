// The parent of a new container: makes what it needs on the host, clones its first process, runs its hooks, by one flat
// list of steps.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "cgroup/cgroup.hpp"
#include "kernel/net_devices.hpp"
#include "pinfold/result.hpp"
#include "plan/plan.hpp"
#include "process/child_options.hpp"
#include "process/child_steps.hpp"
#include "process/pid_file.hpp"
#include "process/supervise.hpp"
#include "state/store.hpp"
#include "verify/receipt.hpp"

namespace pinfold {

struct LaunchOptions {
    ChildOptions child;
    std::string state_root;
    bool keep = false;
    bool again = false;                // the container is there, and has stopped
    char** argv = nullptr;             // to start pinfold again from a protected binary
    const Streams* streams = nullptr;  // of the payload; null: our own
    // What is to be asked right before the container exists, and held until it does.
    std::function<Result<UniqueFd>()> before_state;
    // For a sandbox init that waits: what is to be done before the payload starts. The pid is the sandbox init's.
    std::function<Result<void>(const Child& sandbox_init)> before_start;
    ReceiptHandler on_receipt;  // where one was planned
    // For a payload of a sandbox init that has a listener: what is to be done while its program is still to be
    // executed.
    std::function<Result<void>(pid_t payload)> before_exec;
};

// Of a container that is created now.
ContainerRecord make_record(const Plan& plan, const Spec& spec, StringMap annotations);

// What is started: the plan, and what is remembered of it; the configuration's text is kept beside that.
struct NewContainer {
    Plan plan;
    ContainerRecord record;
    std::string config;
    Ending ending{};  // decide_ending()
};

// What a supervisor holds of a payload that has a sandbox init.
struct SandboxPayload {
    Channel link;       // to the sandbox init
    UniqueFd pidfd;     // of the payload
    UniqueFd listener;  // of its seccomp filter, if that notifies
};

// A container that runs, with all that was made for it, in the order in which it was: so it goes in the opposite one.
struct RunningContainer {
    std::optional<StateDir> state;
    Cgroup cgroup;
    std::optional<Child> child;
    std::optional<MovedDevices> net_devices;
    std::optional<PidFile> pid_file;
    UniqueFd master;  // of the terminal, if there is one for us
    std::optional<SandboxPayload> payload;

    // From now on the container is on its own, until `delete`.
    void commit();
    // --keep: it has ended, and its state and group stay until `delete`.
    void keep();
    // What was announced of it stays true, though it is still ours.
    void commit_announcements();
    // Of one that could not be started: all that concerns its first process.
    void drop_child();
};

// Compiles the filter, and decides by it and the plan how the start ends. Where the container could reach pinfold's own
// file with write access (CVE-2019-5736), and its child cannot leave that behind (trampoline.hpp), this starts pinfold
// again, by options.argv, from a file that nobody can write to, unless it runs from one.
Result<Ending> decide_ending(const Plan& plan, const LaunchOptions& options, bool waits_for_start);

// All steps of a start, as --dry-run prints them.
std::string dump_plan(const Plan& plan, const LaunchOptions& options = {}, bool waits_for_start = false);

// For those who supervise it themselves. Its hooks are not run. It decides on the ending; the callers of the two below
// have done that before.
Result<RunningContainer> launch_container(NewContainer container, const LaunchOptions& options,
                                          const SignalForwarder& signals);

// Leaves it `created`: set up whole, its payload to be run by start_container().
Result<void> create_container(const NewContainer& container, const LaunchOptions& options);

// Runs a container to its end and returns its exit code; 0 at once with detach.
Result<int> run_container(const NewContainer& container, const LaunchOptions& options);

}  // namespace pinfold
