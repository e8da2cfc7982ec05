// pinfold run: config, plan, container.
#include <cerrno>
#include <climits>
#include <cstdlib>

#include "base/fs.hpp"
#include "base/strings.hpp"
#include "cli/verbs.hpp"
#include "kernel/own_binary.hpp"
#include "plan/dump.hpp"
#include "process/launcher.hpp"
#include "spec/load.hpp"
#include "state/container_id.hpp"

namespace pinfold {

namespace {

Result<std::string> absolute(const std::string& path) {
    char resolved[PATH_MAX];
    if (::realpath(path.c_str(), resolved) == nullptr) return errno_error(concat("bundle ", quoted(path)));
    return std::string(resolved);
}

Result<void> check_terminal(const Process& process, const RunOptions& options) {
    const bool socket = !options.console_socket.empty();
    if (process.terminal && options.detach && !socket) {
        return plain_error("process.terminal with --detach needs --console-socket: nobody would hold the terminal");
    }
    if (!process.terminal && socket) return plain_error("--console-socket needs process.terminal to be true");
    return {};
}

// Without id maps the container's root is the host's, so pinfold will have to start again from a protected file
// (CVE-2019-5736). The sooner it does, the less is done twice; the plan decides on the other configs.
Result<void> protect_early(const std::string& config, char** argv) {
    const Result<std::string> text = read_file(config);
    if (!text || text->find("\"uidMappings\"") != std::string::npos) return {};
    return run_from_readonly_binary(argv);
}

PlanOptions plan_options(const RunOptions& options, std::string bundle, CgroupManager manager) {
    return {options.id, std::move(bundle), manager, !options.no_pivot, !options.no_new_keyring, options.preserve_fds};
}

}  // namespace

Result<int> verb_run(const RunOptions& options, const CommandLine& line) {
    TRY(check_container_id(options.id));
    std::string bundle = TRY(absolute(options.bundle));
    const std::string config = options.config.empty() ? concat(bundle, "/config.json") : options.config;
    if (!options.dry_run) TRY(protect_early(config, line.argv));
    const Spec spec = TRY(load_spec(bundle, config));
    TRY(check_terminal(*spec.process, options));
    const Plan plan =
        TRY(make_plan(spec, plan_options(options, std::move(bundle), line.global.cgroup_manager), gather_host_facts()));
    if (options.dry_run) {
        TRY(print(dump_plan(plan)));
        return 0;
    }
    LaunchOptions launch;
    launch.state_root = line.global.root;
    launch.pid_file = options.pid_file;
    launch.console_socket = options.console_socket;
    launch.seccomp_cache = concat(line.global.root, "/.seccomp");
    launch.detach = options.detach;
    launch.keep = options.keep;
    launch.argv = line.argv;
    return run_container(plan, spec, launch);
}

}  // namespace pinfold
