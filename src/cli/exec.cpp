// pinfold exec.
#include "process/exec.hpp"
#include <unistd.h>

#include "base/sha256.hpp"
#include "base/strings.hpp"
#include "base/units.hpp"
#include "cli/begin.hpp"
#include "cli/result_file.hpp"
#include "cli/verbs.hpp"
#include "json/json.hpp"
#include "kernel/own_binary.hpp"
#include "sandbox/audit_job.hpp"
#include "sandbox/build_config.hpp"
#include "sandbox/exec_job.hpp"
#include "spec/parse.hpp"
#include "state/lifecycle.hpp"

namespace pinfold {

namespace {

void add_capabilities(const std::vector<std::string>& names, Process& process) {
    if (names.empty()) return;
    if (!process.capabilities) process.capabilities.emplace();
    Capabilities& sets = *process.capabilities;
    for (std::vector<std::string>* set : {&sets.bounding, &sets.effective, &sets.permitted}) {
        set->insert(set->end(), names.begin(), names.end());
    }
}

// The container's own process, with another program and what else the command line says.
Process from_command_line(Process process, const ExecOptions& options) {
    process.args = options.args;
    process.terminal = options.terminal;
    if (!options.cwd.empty()) process.cwd = options.cwd;
    process.env.insert(process.env.end(), options.env.begin(), options.env.end());
    std::vector<uint32_t>& groups = process.user.additional_gids;
    if (!options.user.empty()) groups.clear();
    groups.insert(groups.end(), options.additional_gids.begin(), options.additional_gids.end());
    add_capabilities(options.capabilities, process);
    if (options.no_new_privileges) process.no_new_privileges = true;
    if (!options.apparmor.empty()) process.apparmor_profile = options.apparmor;
    if (!options.process_label.empty()) process.selinux_label = options.process_label;
    return process;
}

Result<Process> wanted_process(const Spec& spec, const ExecOptions& options) {
    if (options.process_file.empty()) {
        if (options.args.empty()) return plain_error("nothing to run: name a program, or a file with --process");
        TRY(check_env(options.env));
        return from_command_line(*spec.process, options);
    }
    if (!options.args.empty()) return plain_error("a program and --process exclude each other");
    Process process = TRY(load_process(options.process_file));
    if (options.terminal) process.terminal = true;
    return process;
}

AuditEvent event_of(const ExecOptions& options, const std::string& config, const Process& process) {
    return {"exec",
            options.id,
            to_hex(sha256(config)),
            {{"args", json_list(process.args)},
             {"user", options.user.empty() ? std::to_string(process.user.uid) : json_quoted(options.user)}}};
}

// What a sandbox may do was judged when it was started: one more program in it may do no more.
Result<void> check_rights(const ExecOptions& options, const ContainerState& state, const CommandLine& line) {
    const bool is_sandbox = state.record.annotations.contains(kSandboxAnnotation);
    if (!line.gate->has_policy() || !is_sandbox) return {};
    const std::pair<bool, const char*> refused[] = {{!options.process_file.empty(), "--process"},
                                                    {!options.capabilities.empty(), "--cap"},
                                                    {!options.apparmor.empty(), "--apparmor"},
                                                    {!options.process_label.empty(), "--process-label"},
                                                    {!options.cgroup.empty(), "--cgroup"}};
    for (const auto& [asked, option] : refused) {
        if (asked)
            return Error{kPolicyRefusal, concat("policy: ", option, ": a sandbox has its rights from its start"), {}};
    }
    return {};
}

bool is_watched(const ExecOptions& options) {
    return !options.timeout.empty() || !options.result.empty() || !options.output_limit.empty() || options.capture;
}

// What the options ask for, told before anything is looked for in the container's name.
Result<ExecWatch> make_watch(const ExecOptions& options) {
    ExecWatch watch;
    if (!options.timeout.empty()) {
        watch.timeout = parse_duration(options.timeout);
        if (!watch.timeout || watch.timeout->count() <= 0)
            return plain_error(concat("--timeout ", quoted(options.timeout), ": expected a time, as in 10s"));
    }
    watch.streams.capture = options.capture || options.result == "-";
    watch.streams.output_limit = TRY(output_limit(options.output_limit, watch.streams.capture));
    TRY(check_capture(options.capture, options.result));
    return watch;
}

Result<int> run_watched(const ExecPlan& plan, const ContainerState& state, const ExecOptions& options, ExecWatch watch,
                        const CommandLine& line, const AuditTrail& trail) {
    if (options.child.detach || plan.process.terminal || !options.cgroup.empty()) {
        return plain_error("--timeout, --result, --capture and --output-limit exclude --detach, --tty and --cgroup");
    }
    watch.streams.input = input_without_terminal();
    watch.on_receipt = require_and_log(trail, options.id);
    const SandboxResult result = run_exec_job(plan, state, with_cache(options.child, line.global), watch);
    log_result(trail, options.id, result, Ended::exec);
    return conclude(result, line);
}

}  // namespace

Result<int> verb_exec(const ExecOptions& options, const CommandLine& line) {
    const ExecWatch watch = TRY(make_watch(options));
    const ContainerState state = TRY(load_state(line.global.root, options.id));
    // With a deadline a paused one is refused later, with what helps then.
    const bool ignores_pause = options.ignore_paused || watch.timeout;
    TRY(check_operation(ignores_pause ? Operation::exec_ignoring_pause : Operation::exec, state));
    TRY(check_rights(options, state, line));
    const std::string config = TRY(load_config_text(line.global.root, options.id));
    Spec spec = TRY(parse_checked_config(config));
    ExecOverrides overrides{TRY(wanted_process(spec, options)), options.user, options.child.preserve_fds,
                            options.strict};
    TRY(check_child_options(options.child, overrides.process));
    TRY(check_input(options.child, overrides.process));
    const HostFacts facts = TRY(gather_host_facts());
    const ExecPlan plan = TRY(plan_exec(std::move(spec), options.id, overrides, facts));
    if (plan.protect_binary) TRY(run_from_readonly_binary(line.argv));
    const AuditTrail trail = TRY(open_audit(line));
    const auto exec = [&]() -> Result<int> {
        mark_use(line.global.root, options.id);
        if (is_watched(options)) return run_watched(plan, state, options, watch, line, trail);
        const ChildOptions child = with_cache(options.child, line.global);
        const ExecRequest request{.plan = plan,
                                  .state = state,
                                  .group = options.cgroup,
                                  .options = child,
                                  .on_receipt = require_and_log(trail, options.id)};
        const bool relayed = state.record.annotations.contains(kSandboxAnnotation) && !plan.process.terminal;
        return relayed ? run_exec_relayed(request) : exec_in_container(request);
    };
    return audited(
        trail, [&] { return event_of(options, config, overrides.process); }, exec);
}

}  // namespace pinfold
