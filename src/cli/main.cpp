// pinfold: reads a bundle's config.json, sets up the isolation it asks for, and becomes its payload's parent.
// The way of one container: main, then kVerbs of parse_arguments.cpp, verb_run, and in it plan_container (parse_config,
// make_plan) and run_container: take_all_steps, clone_child, run_child, execve.
#include <signal.h>

#include <cstdlib>

#include "audit/log.hpp"
#include "base/log.hpp"
#include "base/process.hpp"
#include "base/strings.hpp"
#include "cli/parse_arguments.hpp"
#include "policy/verbs.hpp"
#include "sandbox/build_config.hpp"
#include "state/store.hpp"

namespace pinfold {

namespace {

// Whoever has come by sudo(8) has no business with containers that were not made by `sandbox`, and none without groups.
Result<void> check_bound_caller(const CommandLine& line) {
    const GlobalOptions& global = line.global;
    if (global.cgroup_manager == CgroupManager::disabled || global.rootless.value_or(false)) {
        return Error{kPolicyRefusal, "policy: limits are held by cgroups", "leave out --cgroup-manager and --rootless"};
    }
    if (line.target.empty()) return {};
    const ContainerState state = TRY(load_state(global.root, line.target));
    if (state.record.annotations.contains(kSandboxAnnotation)) return {};
    return Error{kPolicyRefusal, concat("policy: container ", quoted(line.target), " is no sandbox"), {}};
}

Result<void> take_through(Gate& gate, CommandLine& line) {
    TRY(gate.add(line.global.policy));
    TRY(gate.check_verb());
    for (const NamedPath& named : line.paths) {
        // The default root was not named by the caller.
        if (named.use == PathUse::state_root && line.global.root_is_default) continue;
        TRY(gate.admit(named.option, named.use, *named.value));
    }
    if (!gate.binds_caller()) return {};
    // Programs that help, such as ps(1) and pasta(1), are looked for where the system has its own.
    ::setenv("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", 1);
    return check_bound_caller(line);
}

// The gate that all of the line has passed. Names in the line are from then on those of opened files.
Result<Gate> admit(CommandLine& line) {
    Gate gate = TRY(Gate::open(line.words));
    const Result<void> taken = take_through(gate, line);
    if (taken) return gate;
    // Logged where the policies say; where the caller says is not sure to be allowed.
    const Result<AuditTrail> trail = open_trail(gate.policies(), "");
    if (trail && trail->is_on() && taken.error().code == kPolicyRefusal) {
        append_or_warn(*trail, {"policy", line.target, "", {{"refused", json_quoted(taken.error().message)}}});
    }
    return taken.error();
}

// Whether the caller, root or an engine, may name what it likes, whatever the policy says of the verb.
bool is_free(const CommandLine& line) { return !has_borrowed_rights() && is_engine_verb(line.words); }

}  // namespace

}  // namespace pinfold

int main(int argc, char** argv) {
    using namespace pinfold;
    if (const Result<void> filled = fill_standard_streams(); !filled) {
        log_error(filled.error());
        return 1;
    }
    // A parent that ignores SIGCHLD has left us a kernel that reaps our children, exit status and all.
    ::signal(SIGCHLD, SIG_DFL);
    // What is larger than a file may be (RLIMIT_FSIZE) is an error of write(), which can be told.
    ::signal(SIGXFSZ, SIG_IGN);
    CommandLine line;
    if (const std::optional<int> exit_code = parse_arguments(argc, argv, line)) return *exit_code;

    Result<Gate> gate = admit(line);
    line.gate = gate ? &*gate : nullptr;
    // A log that did not get through is not written to, not even with the reason why.
    Result<void> opened = gate || is_free(line) ? open_log(line.global.log) : Result<void>();
    Result<int> result = !opened ? Result<int>(std::move(opened).error())
                         : gate  ? line.verb(line)
                                 : Result<int>(std::move(gate).error());
    if (result) return *result;
    Error error = std::move(result).error().within(line.title);
    if (line.gate != nullptr) error.message = line.gate->in_callers_words(std::move(error.message));
    log_error(error);
    return line.failure;
}
