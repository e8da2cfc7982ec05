// argv to CommandLine: the only file that knows CLI11, and the wall where its exceptions stop.
#include "cli/parse_arguments.hpp"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <map>

#include "base/strings.hpp"
#include "cli/version.hpp"

namespace pinfold {

namespace {

std::string default_root() {
    const char* runtime_dir = std::getenv("XDG_RUNTIME_DIR");
    const bool usable = runtime_dir != nullptr && *runtime_dir != '\0';
    return ::geteuid() != 0 && usable ? concat(runtime_dir, "/pinfold") : "/run/pinfold";
}

void add_global_options(CLI::App& app, GlobalOptions& options) {
    static const std::map<std::string, CgroupManager> kManagers = {{"cgroupfs", CgroupManager::cgroupfs},
                                                                   {"disabled", CgroupManager::disabled}};
    static const std::map<std::string, bool> kFormats = {{"text", false}, {"json", true}};
    options.root = default_root();
    app.add_option("--root", options.root, "directory of the containers' states")
        ->type_name("DIR")
        ->capture_default_str();
    app.add_flag("--debug", options.log.debug, "show each step with its time");
    app.add_option("--log", options.log.file, "write messages to this file, errors also to standard error")
        ->type_name("FILE");
    app.add_option("--log-format", options.log.json, "text or json")
        ->transform(CLI::CheckedTransformer(kFormats))
        ->type_name("FORMAT");
    app.add_option("--cgroup-manager", options.cgroup_manager, "cgroupfs, or disabled to touch no cgroup")
        ->transform(CLI::CheckedTransformer(kManagers))
        ->type_name("MANAGER");
}

void add_run(CLI::App& app, CommandLine& line) {
    CLI::App* verb = app.add_subcommand("run", "create a container from a bundle, run it to its end, and clean up");
    auto options = std::make_shared<RunOptions>();
    verb->add_option("ID", options->id, "a name for the container")->required();
    verb->add_option("-b,--bundle", options->bundle, "directory of the bundle")
        ->type_name("DIR")
        ->capture_default_str();
    verb->add_option("-f,--config", options->config, "config file, if it is not config.json in the bundle")
        ->type_name("FILE");
    verb->add_option("--pid-file", options->pid_file, "write the pid of the container's first process here")
        ->type_name("FILE");
    verb->add_option("--console-socket", options->console_socket, "send the terminal to this unix socket")
        ->type_name("SOCKET");
    verb->add_option("--preserve-fds", options->preserve_fds, "pass this many descriptors after 0, 1, 2")
        ->type_name("N");
    verb->add_flag("--no-pivot", options->no_pivot, "use chroot instead of pivot_root");
    verb->add_flag("--no-new-keyring", options->no_new_keyring, "keep the caller's session keyring");
    verb->add_flag("-d,--detach", options->detach, "return as soon as the container runs");
    verb->add_flag("--keep", options->keep, "keep the state and the cgroup when the container has ended");
    verb->add_flag("--dry-run", options->dry_run, "print the plan as JSON and do nothing");
    verb->callback([&line, options] { line.verb = *options; });
}

void add_state(CLI::App& app, CommandLine& line) {
    CLI::App* verb = app.add_subcommand("state", "print the state of a container as JSON");
    auto options = std::make_shared<StateOptions>();
    verb->add_option("ID", options->id, "the container")->required();
    verb->callback([&line, options] { line.verb = *options; });
}

void add_delete(CLI::App& app, CommandLine& line) {
    CLI::App* verb = app.add_subcommand("delete", "remove what is left of a stopped container");
    auto options = std::make_shared<DeleteOptions>();
    verb->add_option("ID", options->id, "the container")->required();
    verb->add_flag("-f,--force", options->force, "kill it first if it runs; succeed if there is no such container");
    verb->callback([&line, options] { line.verb = *options; });
}

}  // namespace

std::variant<CommandLine, int> parse_arguments(int argc, char** argv) {
    CommandLine line;
    line.argv = argv;
    CLI::App app("a sandbox for code that is not trusted: an OCI runtime without a daemon", "pinfold");
    app.set_version_flag("-v,--version", kVersionText);
    app.require_subcommand(1);
    add_global_options(app, line.global);
    add_run(app, line);
    add_state(app, line);
    add_delete(app, line);
    try {
        app.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
        return app.exit(error) == 0 ? 0 : 1;
    }
    return line;
}

}  // namespace pinfold
