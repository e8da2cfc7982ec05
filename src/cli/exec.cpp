// pinfold exec.
#include "process/exec.hpp"
#include <unistd.h>

#include <algorithm>

#include "base/sha256.hpp"
#include "base/strings.hpp"
#include "base/units.hpp"
#include "cli/begin.hpp"
#include "cli/environment.hpp"
#include "cli/result_file.hpp"
#include "cli/verbs.hpp"
#include "json/json.hpp"
#include "kernel/capabilities.hpp"
#include "kernel/own_binary.hpp"
#include "sandbox/audit_job.hpp"
#include "sandbox/build_config.hpp"
#include "sandbox/exec_job.hpp"
#include "sandbox/session.hpp"
#include "spec/parse.hpp"
#include "state/lifecycle.hpp"

namespace pinfold {

namespace {

// One that libcap knows and this kernel does not is left out with a warning, as in a config.
Result<void> check_capabilities(const std::vector<std::string>& names) {
    const std::vector<std::string> known = capability_names();
    for (const std::string& name : names) {
        if (capability_bit(name) || std::ranges::find(known, name) != known.end()) continue;
        return plain_error(concat("--cap ", quoted(name), ": there is no such capability"))
            .with_hint("capabilities(7) lists them, as in CAP_NET_RAW");
    }
    return {};
}

// Options that would do nothing here.
Result<void> check_effects(const ExecOptions& options, const ContainerState& state, const ExecPlan& plan) {
    if (!options.cgroup.empty() && !state.record.cgroup.exists())
        return plain_error(concat("--cgroup ", quoted(options.cgroup), ": the container has no cgroup of its own"));
    if (options.additional_gids.empty() || plan.process.identity.set_groups) return {};
    return plain_error(
               "--additional-gids: the container was started by a normal user with one id mapped, and the kernel "
               "lets it have no more groups")
        .with_hint("leave the option out");
}

void add_capabilities(const std::vector<std::string>& names, Process& process) {
    if (names.empty()) return;
    if (!process.capabilities) process.capabilities.emplace();
    Capabilities& sets = *process.capabilities;
    for (std::vector<std::string>* set : {&sets.bounding, &sets.effective, &sets.permitted}) {
        set->insert(set->end(), names.begin(), names.end());
    }
}

std::string path_from(const std::string& directory, const std::string& path) {
    return path.starts_with('/') ? path : concat(directory, directory.ends_with('/') ? "" : "/", path);
}

// The container's own process, with another program and what else the command line says.
Process from_command_line(Process process, const ExecOptions& options) {
    if (!options.cwd.empty()) process.cwd = path_from(process.cwd, options.cwd);
    process.args = options.session.empty() ? options.args
                                           : session_command({options.session, options.args, options.cwd, options.env});
    process.terminal = options.terminal;
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

Result<Process> wanted_process(const Spec& spec, ExecOptions options) {
    if (options.process_file.empty()) {
        if (options.args.empty()) return plain_error("nothing to run: name a program, or a file with --process");
        options.env = TRY(read_environment(options.env_file, options.env));
        TRY(check_capabilities(options.capabilities));
        if (!options.session.empty()) TRY(check_session(options.session));
        return from_command_line(*spec.process, options);
    }
    if (!options.args.empty()) return plain_error("a program and --process exclude each other");
    const std::pair<bool, const char*> ignored[] = {
        {!options.cwd.empty(), "--cwd"},           {!options.session.empty(), "--session"},
        {!options.env.empty(), "--env"},           {!options.additional_gids.empty(), "--additional-gids"},
        {!options.capabilities.empty(), "--cap"},  {options.no_new_privileges, "--no-new-privs"},
        {!options.apparmor.empty(), "--apparmor"}, {!options.process_label.empty(), "--process-label"},
        {!options.env_file.empty(), "--env-file"}};
    for (const auto& [asked, option] : ignored) {
        if (asked) return plain_error(concat("--process names the whole process, and excludes ", option));
    }
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

// What one user has left in /tmp another would execute.
Result<void> check_one_user(const ExecOptions& options, const ContainerState& state) {
    if (options.session.empty()) return {};
    if (!options.user.empty()) return plain_error("--session and --user exclude each other");
    if (state.record.annotations.contains(kSandboxAnnotation)) return {};
    return plain_error("--session is for sandboxes: in another container /tmp may be that of several users");
}

// The end of a pipe is nothing that can be typed: a program that reads to the end would wait for ever. An engine gives
// a console socket, or a process with a terminal of its own.
Result<void> check_typist(const ExecOptions& options) {
    const bool is_ours = options.terminal && options.child.console_socket.empty();
    if (!is_ours || ::isatty(STDIN_FILENO) != 0) return {};
    return plain_error("--tty: standard input is no terminal").with_hint("leave it out, or give --console-socket");
}

bool is_watched(const ExecOptions& options) {
    return !options.timeout.empty() || !options.result.empty() || !options.output_limit.empty() || options.capture ||
           options.verbose || options.tee || options.merge_output;
}

// What the options ask for, told before anything is looked for in the container's name.
Result<ExecWatch> make_watch(const ExecOptions& options) {
    ExecWatch watch;
    if (!options.timeout.empty()) {
        watch.timeout = parse_duration(options.timeout);
        if (!watch.timeout || watch.timeout->count() <= 0)
            return plain_error(concat("--timeout ", quoted(options.timeout), ": expected a time, as in 10s"));
    }
    watch.receipt = options.receipt;
    watch.streams.capture = options.capture || options.result == "-";
    watch.streams.output_limit = TRY(output_limit(options.output_limit, watch.streams.capture));
    watch.streams.tee = options.tee;
    watch.streams.merge = options.merge_output;
    TRY(check_capture(options.capture, options.tee, options.result));
    TRY(check_receipt(options.receipt, options.result));
    return watch;
}

Result<int> run_watched(const ExecPlan& plan, const ContainerState& state, const ExecOptions& options, ExecWatch watch,
                        const CommandLine& line, const AuditTrail& trail) {
    if (options.child.detach || plan.process.terminal || !options.cgroup.empty()) {
        return plain_error(
            "--timeout, --result, --capture, --merge-output, --output-limit and --verbose exclude --detach, --tty and "
            "--cgroup");
    }
    watch.streams.input = input_without_terminal();
    watch.on_receipt = require_and_log(trail, options.id);
    const SandboxResult result = run_exec_job(plan, state, with_cache(options.child, line.global), watch);
    log_result(trail, options.id, result, Ended::exec);
    return conclude(result, line, options.verbose);
}

}  // namespace

Result<int> verb_exec(const ExecOptions& options, const CommandLine& line) {
    const ExecWatch watch = TRY(make_watch(options));
    const ContainerState state = TRY(load_state(line.global.root, options.id));
    // With a deadline a paused one is refused later, with what helps then.
    const bool ignores_pause = options.ignore_paused || watch.timeout;
    TRY(check_operation(ignores_pause ? Operation::exec_ignoring_pause : Operation::exec, state));
    TRY(check_rights(options, state, line));
    TRY(check_one_user(options, state));
    const std::string config = TRY(load_config_text(line.global.root, options.id));
    Spec spec = TRY(parse_checked_config(config));
    ExecOverrides overrides{TRY(wanted_process(spec, options)), options.user, options.child.preserve_fds,
                            options.strict};
    TRY(check_child_options(options.child, overrides.process));
    TRY(check_input(options.child, overrides.process));
    TRY(check_typist(options));
    const HostFacts facts = TRY(gather_host_facts());
    const ExecPlan plan = TRY(plan_exec(std::move(spec), options.id, overrides, facts));
    TRY(check_effects(options, state, plan));
    const ChildOptions child = with_cache(options.child, line.global);
    // One that is watched is planned anew, and looked at before its execve.
    const Ending ending = is_watched(options) ? Ending() : TRY(decide_exec_ending(plan, child));
    if (plan.process.protect_binary && !ending.last.in_trampoline) return run_from_readonly_binary(line.argv);
    const AuditTrail trail = TRY(open_audit(line));
    const auto exec = [&]() -> Result<int> {
        mark_use(line.global.root, options.id);
        if (is_watched(options)) return run_watched(plan, state, options, watch, line, trail);
        const ExecRequest request{.plan = plan,
                                  .state = state,
                                  .group = options.cgroup,
                                  .options = child,
                                  .ending = ending,
                                  .on_receipt = require_and_log(trail, options.id)};
        const bool relayed = state.record.annotations.contains(kSandboxAnnotation) && !plan.process.terminal;
        return relayed ? run_exec_relayed(request) : exec_in_container(request);
    };
    return audited(
        trail, [&] { return event_of(options, config, overrides.process); }, exec);
}

}  // namespace pinfold
