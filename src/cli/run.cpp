// pinfold run and create: config, plan, container.
#include <cerrno>
#include <climits>
#include <cstdlib>

#include "base/sha256.hpp"
#include "base/strings.hpp"
#include "cli/audited.hpp"
#include "cli/child_checks.hpp"
#include "cli/verbs.hpp"
#include "json/writer.hpp"
#include "kernel/own_binary.hpp"
#include "process/parent_steps.hpp"
#include "spec/load.hpp"
#include "state/container_id.hpp"

namespace pinfold {

namespace {

Result<std::string> absolute(const std::string& path) {
    char resolved[PATH_MAX];
    if (::realpath(path.c_str(), resolved) == nullptr) return errno_error(concat("bundle ", quoted(path)));
    return std::string(resolved);
}

// Without id maps the container's root is the host's, so pinfold will have to start again from a protected file
// (CVE-2019-5736). The sooner it does, the less is done twice; the plan decides on the other configs.
Result<void> protect_early(const std::string& config, char** argv) {
    if (config.find("\"uidMappings\"") != std::string::npos) return {};
    return run_from_readonly_binary(argv);
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

template <class Launch>
Result<int> launch_audited(const std::string& name, const NewContainer& container, const CommandLine& line,
                           Launch launch) {
    const AuditTrail trail = TRY(open_audit(line));
    if (!trail.is_on()) return launch(trail);
    return audited(trail, event_of(name, container), [&] { return launch(trail); });
}

template <class Launch>
Result<int> with_plan(const std::string& name, const RunOptions& options, const CommandLine& line, Launch launch) {
    TRY(check_container_id(options.id));
    std::string bundle = TRY(absolute(options.bundle));
    const std::string file = options.config.empty() ? concat(bundle, "/config.json") : options.config;
    std::string config = TRY(read_config(file));
    if (!options.dry_run) TRY(protect_early(config, line.argv));
    Spec spec = TRY(parse_config(config, file, bundle));
    TRY(check_child_options(options.child, *spec.process));
    if (!options.dry_run) TRY(check_input(options.child, *spec.process));
    const HostFacts facts = TRY(facts_for(line.global));
    Plan plan = TRY(make_plan(spec, plan_options(options, std::move(bundle), line.global), facts));
    if (options.dry_run) {
        TRY(print(dump_plan(plan, launch_options(options, line))));
        return 0;
    }
    // Before the audit log is written to, or its second start would log the event again.
    TRY(protect_binary(plan, line.argv));
    ContainerRecord record = make_record(plan, spec, std::move(spec.annotations));
    spec = Spec();  // what it said is in the plan; a large one is not held twice
    const NewContainer container{std::move(plan), std::move(record), std::move(config)};
    return launch_audited(name, container, line, [&](const AuditTrail& trail) {
        LaunchOptions how = launch_options(options, line);
        how.on_receipt = require_and_log(trail, options.id);
        return launch(container, how, trail);
    });
}

}  // namespace

Result<int> verb_run(const RunOptions& options, const CommandLine& line) {
    const auto run = [](const NewContainer& container, const LaunchOptions& launch, const AuditTrail& trail) {
        Result<int> ended = run_container(container, launch);
        if (ended && !launch.child.detach) {
            append_or_warn(trail, {"end", container.record.id, "", {{"exit_code", std::to_string(*ended)}}});
        }
        return ended;
    };
    return with_plan("run", options, line, run);
}

Result<int> verb_create(const RunOptions& options, const CommandLine& line) {
    RunOptions background = options;
    background.child.detach = true;
    const auto create = [](const NewContainer& container, const LaunchOptions& launch,
                           const AuditTrail&) -> Result<int> {
        TRY(create_container(container, launch));
        return 0;
    };
    return with_plan("create", background, line, create);
}

}  // namespace pinfold
