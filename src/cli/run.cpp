// pinfold run and create: config, plan, container.
#include <cerrno>
#include <climits>
#include <cstdlib>

#include "base/sha256.hpp"
#include "base/strings.hpp"
#include "cli/begin.hpp"
#include "cli/verbs.hpp"
#include "json/json.hpp"
#include "process/parent_steps.hpp"
#include "spec/parse.hpp"
#include "state/store.hpp"

namespace pinfold {

namespace {

Result<std::string> absolute(const std::string& path) {
    char resolved[PATH_MAX];
    if (::realpath(path.c_str(), resolved) == nullptr) return errno_error(concat("bundle ", quoted(path)));
    return std::string(resolved);
}

PlanOptions plan_options(const RunOptions& options, std::string bundle, const GlobalOptions& global) {
    return {options.id,        std::move(bundle),       global.cgroup_manager,      global.rootless,
            !options.no_pivot, !options.no_new_keyring, options.child.preserve_fds, options.strict};
}

LaunchOptions launch_options(const RunOptions& options, const CommandLine& line) {
    LaunchOptions launch;
    launch.child = with_cache(options.child, line.global);
    launch.state_root = line.global.root;
    launch.keep = options.keep;
    launch.argv = line.argv;
    return launch;
}

LaunchOptions launch_options(const RunOptions& options, const CommandLine& line, const AuditTrail& trail) {
    LaunchOptions launch = launch_options(options, line);
    launch.on_receipt = require_and_log(trail, options.id);
    return launch;
}

Result<HostFacts> facts_for(const GlobalOptions& global) {
    HostFacts facts = TRY(gather_host_facts());
    if (global.cgroup_manager == CgroupManager::systemd) {
        facts.cgroup.systemd = find_systemd_host(facts.is_rootless());
    }
    return facts;
}

AuditEvent event_of(const std::string& name, const NewContainer& container) {
    return {name,
            container.record.id,
            to_hex(sha256(container.config)),
            {{"bundle", json_quoted(container.record.bundle)}, {"args", json_list(container.plan.process.args)}}};
}

// Parse, plan, decide how it ends. Only a dry run does without that, and without a container.
Result<NewContainer> plan_container(const RunOptions& options, const CommandLine& line, bool waits_for_start) {
    TRY(check_container_id(options.id));
    std::string bundle = TRY(absolute(options.bundle));
    const std::string file = options.config.empty() ? concat(bundle, "/config.json") : options.config;
    std::string config = TRY(options.config.empty() ? read_config(file) : read_document(file));
    Spec spec = TRY(parse_config(config, file, bundle));
    TRY(check_child_options(options.child, *spec.process));
    if (!options.dry_run) TRY(check_input(options.child, *spec.process));
    const HostFacts facts = TRY(facts_for(line.global));
    Plan plan = TRY(make_plan(spec, plan_options(options, std::move(bundle), line.global), facts));
    // Before the audit log is written to, or a second start of pinfold would log the event again.
    Ending ending;
    if (!options.dry_run) ending = TRY(decide_ending(plan, launch_options(options, line), waits_for_start));
    ContainerRecord record = make_record(plan, spec, std::move(spec.annotations));
    return NewContainer{std::move(plan), std::move(record), std::move(config), std::move(ending)};
}

Result<int> tell(const NewContainer& container, const RunOptions& options, const CommandLine& line, bool waits) {
    TRY(print(dump_plan(container.plan, launch_options(options, line), waits)));
    return 0;
}

}  // namespace

Result<int> verb_run(const RunOptions& options, const CommandLine& line) {
    const NewContainer container = TRY(plan_container(options, line, false));
    if (options.dry_run) return tell(container, options, line, false);
    const AuditTrail trail = TRY(open_audit(line));
    const auto run = [&]() -> Result<int> {
        const int exit_code = TRY(run_container(container, launch_options(options, line, trail)));
        if (!options.child.detach)
            append_or_warn(trail, {"end", options.id, "", {{"exit_code", std::to_string(exit_code)}}});
        return exit_code;
    };
    return audited(
        trail, [&] { return event_of("run", container); }, run);
}

Result<int> verb_create(const RunOptions& options, const CommandLine& line) {
    RunOptions background = options;
    background.child.detach = true;
    const NewContainer container = TRY(plan_container(background, line, true));
    if (options.dry_run) return tell(container, background, line, true);
    const AuditTrail trail = TRY(open_audit(line));
    const auto create = [&]() -> Result<int> {
        TRY(create_container(container, launch_options(background, line, trail)));
        return 0;
    };
    return audited(
        trail, [&] { return event_of("create", container); }, create);
}

}  // namespace pinfold
