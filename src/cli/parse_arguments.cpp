// argv to CommandLine: the only file that knows CLI11, and the wall where its exceptions stop.
#include "cli/parse_arguments.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <map>
#include <memory>
#include <vector>

#include "base/strings.hpp"
#include "cli/verbs.hpp"
#include "cli/version.hpp"
#include "state/store.hpp"

namespace pinfold {

namespace {

// An option that is one of a few words, which its help lists.
template <class Value>
CLI::Option* add_choice(CLI::App& app, const char* names, Value& out, const std::map<std::string, Value>& choices,
                        const char* purpose) {
    std::vector<std::string> words;
    for (const auto& [word, value] : choices) words.push_back(word);
    const auto choose = [&out, choices](const std::string& word) { out = choices.at(word); };
    return app.add_option_function<std::string>(names, choose, purpose)
        ->check(CLI::IsMember(std::move(words)))
        ->type_name("");
}

void add_global_options(CLI::App& app, GlobalOptions& options) {
    options.root = default_state_root();
    app.add_option("--root", options.root, "directory of the containers' states")
        ->type_name("DIR")
        ->capture_default_str()
        ->each([&options](const std::string&) { options.root_is_default = false; });
    app.add_flag("--debug", options.log.debug, "show each step with its time");
    app.add_option("--log", options.log.file, "write messages to this file, errors also to standard error")
        ->type_name("FILE");
    add_choice(app, "--log-format", options.log.json, {{"text", false}, {"json", true}}, "form of the messages");
    add_choice(app, "--cgroup-manager", options.cgroup_manager,
               {{"cgroupfs", CgroupManager::cgroupfs},
                {"systemd", CgroupManager::systemd},
                {"disabled", CgroupManager::disabled}},
               "who makes the cgroup; disabled: nobody");
    app.add_flag_callback(
        "--systemd-cgroup", [&options] { options.cgroup_manager = CgroupManager::systemd; },
        "the same as --cgroup-manager systemd");
    add_choice(app, "--rootless", options.rootless, {{"auto", std::optional<bool>()}, {"true", true}, {"false", false}},
               "whether to do without a cgroup that cannot be made; auto: if the caller is not root");
    app.add_option("--policy", options.policy,
                   "forbid what this file forbids, besides what /etc/pinfold/policy.json does")
        ->type_name("FILE");
    app.add_option("--audit", options.audit, "log what is done with containers to this file")->type_name("FILE");
}

void add_id(CLI::App& verb, std::string& id) { verb.add_option("ID", id, "the container")->required(); }

void add_output_format(CLI::App& verb, const char* names, bool& json) {
    add_choice(verb, names, json, {{"table", false}, {"json", true}}, "form of the output");
}

// What create, run and exec do with the process that they start.
void add_process_options(CLI::App& verb, ChildOptions& options) {
    verb.add_option("--pid-file", options.pid_file, "write the process's pid to this file")->type_name("FILE");
    verb.add_option("--console-socket", options.console_socket, "send the terminal to this unix socket")
        ->type_name("SOCKET");
    verb.add_option("--pidfd-socket", options.pidfd_socket, "send the process's pidfd to this unix socket")
        ->type_name("SOCKET");
    verb.add_option("--preserve-fds", options.preserve_fds, "pass this many descriptors after 0, 1, 2")->type_name("N");
}

void add_strict(CLI::App& verb, bool& strict) {
    verb.add_flag("--strict", strict, "do not start it unless the kernel says that everything is as planned");
}

void add_create_options(CLI::App& verb, RunOptions& options) {
    verb.add_option("ID", options.id, "a name for the container")->required();
    verb.add_option("-b,--bundle", options.bundle, "directory of the bundle")->type_name("DIR")->capture_default_str();
    verb.add_option("-f,--config", options.config, "config file, if it is not config.json in the bundle")
        ->type_name("FILE");
    add_process_options(verb, options.child);
    verb.add_flag("--no-pivot", options.no_pivot, "use chroot instead of pivot_root");
    verb.add_flag("--no-new-keyring", options.no_new_keyring, "keep the caller's session keyring");
    verb.add_flag("--dry-run", options.dry_run, "print the plan as JSON and do nothing");
    add_strict(verb, options.strict);
}

void add_run_options(CLI::App& verb, RunOptions& options) {
    add_create_options(verb, options);
    verb.add_flag("-d,--detach", options.child.detach, "return as soon as the container runs");
    verb.add_flag("--keep", options.keep, "keep the state and the cgroup when the container has ended");
    verb.add_flag_callback(
        "--no-subreaper", [] {}, "for callers of runc: pinfold is never a subreaper");
}

// What sandbox and exec tell of the program that they run.
template <class Options>
void add_watch_options(CLI::App& verb, Options& options) {
    verb.add_option("--output-limit", options.output_limit, "bytes that it may print; the rest is dropped")
        ->type_name("SIZE");
    verb.add_option("--result", options.result, "write the result as JSON; -: to standard output, with --capture")
        ->type_name("FILE");
    verb.add_flag("--capture", options.capture, "put what it prints into the result");
}

void add_exec_options(CLI::App& verb, ExecOptions& options) {
    add_id(verb, options.id);
    verb.add_option("-p,--process", options.process_file, "take the process from this JSON file")->type_name("FILE");
    verb.add_option("--cwd", options.cwd, "working directory")->type_name("DIR");
    verb.add_option("-e,--env", options.env, "NAME=VALUE, may be repeated")
        ->type_name("NAME=VALUE")
        ->take_all()
        ->allow_extra_args(false);
    verb.add_option("-u,--user", options.user, "UID[:GID] or NAME[:GROUP]")->type_name("USER");
    verb.add_option("-g,--additional-gids", options.additional_gids, "one more group, may be repeated")
        ->type_name("GID")
        ->take_all()
        ->allow_extra_args(false);
    verb.add_option("-c,--cap", options.capabilities, "add this capability, may be repeated")
        ->type_name("CAP")
        ->take_all()
        ->allow_extra_args(false);
    verb.add_option("--process-label", options.process_label, "SELinux label")->type_name("LABEL");
    verb.add_option("--apparmor", options.apparmor, "AppArmor profile")->type_name("PROFILE");
    verb.add_option("--cgroup", options.cgroup, "a group below the container's")->type_name("PATH");
    add_process_options(verb, options.child);
    verb.add_option("--timeout", options.timeout, "kill it, and all that it started, after this time")
        ->type_name("TIME");
    add_watch_options(verb, options);
    verb.add_flag("-t,--tty", options.terminal, "give it a terminal");
    verb.add_flag("-d,--detach", options.child.detach, "return as soon as the program runs");
    verb.add_flag("--no-new-privs", options.no_new_privileges, "forbid new privileges");
    verb.add_flag("--ignore-paused", options.ignore_paused, "also in a paused container, where it waits");
    add_strict(verb, options.strict);
}

void add_kill_options(CLI::App& verb, KillOptions& options) {
    add_id(verb, options.id);
    verb.add_option("SIGNAL", options.signal, "name or number")->capture_default_str();
    verb.add_flag("-a,--all", options.all, "to all processes of the container");
}

void add_delete_options(CLI::App& verb, DeleteOptions& options) {
    add_id(verb, options.id);
    verb.add_flag("-f,--force", options.force, "kill it first if it runs; succeed if there is no such container");
}

void add_list_options(CLI::App& verb, ListOptions& options) {
    verb.add_flag("-q,--quiet", options.quiet, "print the ids only");
    add_output_format(verb, "-f,--format", options.json);
}

void add_ps_options(CLI::App& verb, PsOptions& options) {
    add_id(verb, options.id);
    add_output_format(verb, "--format", options.json);
}

void add_update_options(CLI::App& verb, UpdateOptions& options) {
    add_id(verb, options.id);
    verb.add_option("-r,--resources", options.resources_file,
                    "take linux.resources from this JSON file; -: from standard input")
        ->type_name("FILE");
    verb.add_option("--memory", options.memory, "bytes, or with a unit as in 100M; -1: unlimited")->type_name("SIZE");
    verb.add_option("--memory-swap", options.memory_swap, "memory and swap together")->type_name("SIZE");
    verb.add_option("--memory-reservation", options.memory_reservation, "soft limit")->type_name("SIZE");
    verb.add_option("--kernel-memory", options.kernel_memory, "of the kernel, cgroup v1 only")->type_name("SIZE");
    verb.add_option("--kernel-memory-tcp", options.kernel_memory_tcp, "of sockets, cgroup v1 only")->type_name("SIZE");
    verb.add_option("--cpu-share", options.cpu_shares, "relative weight, 2 to 262144")->type_name("N");
    verb.add_option("--cpu-quota", options.cpu_quota, "microseconds per period; -1: unlimited")->type_name("N");
    verb.add_option("--cpu-period", options.cpu_period, "microseconds")->type_name("N");
    verb.add_option("--cpu-burst", options.cpu_burst, "microseconds that may be saved up")->type_name("N");
    verb.add_option("--cpu-idle", options.cpu_idle, "1: run only when nothing else does")->type_name("N");
    verb.add_option("--cpu-rt-period", options.cpu_rt_period, "of real-time processes, cgroup v1 only")->type_name("N");
    verb.add_option("--cpu-rt-runtime", options.cpu_rt_runtime, "of real-time processes, cgroup v1 only")
        ->type_name("N");
    verb.add_option("--cpuset-cpus", options.cpuset_cpus, "as in 0-3,7")->type_name("LIST");
    verb.add_option("--cpuset-mems", options.cpuset_mems, "memory nodes")->type_name("LIST");
    verb.add_option("--pids-limit", options.pids_limit, "number of tasks; -1: unlimited")->type_name("N");
    verb.add_option("--blkio-weight", options.blkio_weight, "relative weight, 10 to 1000")->type_name("N");
}

void add_events_options(CLI::App& verb, EventsOptions& options) {
    add_id(verb, options.id);
    verb.add_flag("--stats", options.stats, "print the statistics once");
    verb.add_option("--interval", options.interval, "time between statistics, as in 500ms or 5s")
        ->type_name("TIME")
        ->capture_default_str();
}

void add_cp_options(CLI::App& verb, CpOptions& options) {
    verb.add_option("SOURCE", options.source, "ID:PATH in a container, a path on the host, or - for standard input")
        ->required();
    verb.add_option("TARGET", options.target, "the same; - for standard output")->required();
    verb.add_option("--max-size", options.max_size, "refuse to copy more bytes than this, as in 100M")
        ->type_name("SIZE")
        ->capture_default_str();
    verb.add_option("--max-files", options.max_files, "refuse to copy more files, directories and links than this")
        ->type_name("N")
        ->capture_default_str();
    verb.add_flag("--outward-links", options.outward_links, "also copy links that lead out of the copied tree");
}

// An option that may be given more than once.
void add_list(CLI::App& verb, const char* names, std::vector<std::string>& out, const char* type, const char* purpose) {
    verb.add_option(names, out, purpose)->type_name(type)->take_all()->allow_extra_args(false);
}

void add_limit_options(CLI::App& verb, LimitOptions& options) {
    verb.add_option("--limits", options.file, "take the limits from this JSON file; the options below come on top")
        ->type_name("FILE");
    verb.add_option("--cpus", options.cpus, "processors, as in 0.5 (1)")->type_name("N");
    verb.add_option("--memory", options.memory, "bytes, or with a unit as in 512m (512m)")->type_name("SIZE");
    verb.add_option("--disk", options.disk, "of all that is written (100m)")->type_name("SIZE");
    verb.add_option("--network", options.network, "none, host or pasta (none)")
        ->check(CLI::IsMember({"none", "host", "pasta"}))
        ->type_name("");
    verb.add_option("--pids", options.processes, "processes and threads (50)")->type_name("N");
    verb.add_option("--timeout", options.timeout, "until it is killed, as in 60s (60s)")->type_name("TIME");
}

// Of one job: its limits, its root, its files, its user.
void add_job_options(CLI::App& verb, SandboxOptions& options) {
    add_limit_options(verb, options.limits);
    verb.add_option("--lang", options.language, "the command is a script in this language, or - for standard input")
        ->type_name("LANGUAGE");
    verb.add_option("--rootfs", options.rootfs, "run in this directory's programs, not in this machine's")
        ->type_name("DIR");
    verb.add_option("--template", options.root_template,
                    "show it a part of this machine: a name of bundles/, or a file")
        ->type_name("NAME");
    verb.add_option("--bundle", options.bundle, "the same, with the command of an OCI bundle")->type_name("DIR");
    add_list(verb, "--bind", options.binds, "SRC[:DST]", "let it read and write a directory of this machine");
    add_list(verb, "--ro-bind", options.readonly_binds, "SRC[:DST]", "let it read a directory of this machine");
    add_list(verb, "--copy-in", options.copies_in, "SRC:DST", "give it a copy of a file or directory");
    add_list(verb, "--copy-out", options.copies_out, "SRC:DST", "take a copy of what it has made");
    add_list(verb, "-e,--env", options.env, "NAME=VALUE", "may be repeated, as may all of these");
    verb.add_option("--cwd", options.cwd, "working directory (/workspace)")->type_name("DIR");
    verb.add_option("--user", options.user, "inside (1000:1000)")->type_name("UID[:GID]");
    verb.add_option("--cpu-timeout", options.cpu_timeout, "processor time until it is killed")->type_name("TIME");
    verb.add_option("--name", options.name, "of the sandbox")->type_name("ID");
    verb.add_flag("--stdin", options.pass_stdin, "let it read our standard input");
    verb.add_flag("--writable-root", options.writable_root, "let it change its root, for itself alone");
    verb.add_flag("--require-cgroup", options.require_cgroup, "fail where limits could only be held by rlimits");
    verb.add_flag("--landlock,!--no-landlock", options.landlock, "use Landlock where the kernel has it (default)");
    verb.add_option("--tcp-bind", options.tcp_bind, "TCP ports that it may listen on: 80,443, any or none")
        ->type_name("PORTS");
    verb.add_option("--tcp-connect", options.tcp_connect, "TCP ports that it may connect to: 80,443, any or none")
        ->type_name("PORTS");
    verb.add_flag("--strict,!--no-strict", options.strict,
                  "do not start it unless the kernel says that everything is as planned (default)");
}

void add_sandbox_options(CLI::App& verb, SandboxOptions& options) {
    add_job_options(verb, options);
    verb.add_option("--seccomp", options.seccomp, "profile: a name, or a file (default; with a network: network)")
        ->type_name("PROFILE");
    add_watch_options(verb, options);
    verb.add_option("--runtime", options.runtime, "have it run by another: runc, crun, runsc, kata-runtime, a path")
        ->type_name("RUNTIME");
    verb.add_flag("-d,--detach", options.detach, "let it stay, for exec and cp, until it is deleted");
    verb.add_option("--idle-timeout", options.idle_timeout, "with --detach: unused for so long, prune removes it")
        ->type_name("TIME");
}

void add_prune_options(CLI::App& verb, PruneOptions& options) {
    verb.add_flag("--dry-run", options.dry_run, "only tell which");
}

void add_spec_options(CLI::App& verb, SpecOptions& options) {
    verb.add_option("-b,--bundle", options.bundle, "directory to write config.json to")
        ->type_name("DIR")
        ->capture_default_str();
    verb.add_flag("--rootless", options.rootless, "for a user without privileges");
    add_limit_options(verb, options.limits);
    verb.add_option("--seccomp", options.seccomp, "with limits: profile, a name or a file (default)")
        ->type_name("PROFILE");
}

void add_seccomp_show_options(CLI::App& verb, SeccompShowOptions& options) {
    verb.add_option("PROFILE", options.profile, "a name, or a file; without one the names are listed");
    verb.add_flag("--json", options.json, "as linux.seccomp of a config.json");
}

void add_seccomp_diff_options(CLI::App& verb, SeccompDiffOptions& options) {
    verb.add_option("PROFILE", options.from, "a name, or a file")->required();
    verb.add_option("OTHER", options.to, "the one to compare it with")->required();
}

void add_seccomp_learn_options(CLI::App& verb, SeccompLearnOptions& options) {
    verb.add_option("-o,--output", options.output, "the profile's file; what it allows already is kept")
        ->type_name("FILE");
    add_job_options(verb, options);
}

void add_audit_file(CLI::App& verb, AuditOptions& options) {
    verb.add_option("FILE", options.file, "the log; default: the one that --audit or the policy names");
}

void add_audit_show_options(CLI::App& verb, AuditOptions& options) {
    add_audit_file(verb, options);
    verb.add_option("--id", options.container, "events of this container only")->type_name("ID");
    verb.add_option("--event", options.event, "events of this kind only")->type_name("EVENT");
    verb.add_flag("--json", options.json, "print the lines as they are");
}

// Not one that a program is likely to end with: callers tell the two apart by it.
constexpr int kExecFailed = 255;
constexpr int kSandboxFailed = 125;

using Id = std::string;
void add_nothing(CLI::App&, std::monostate&) {}

struct Verb {
    const char* name;
    const char* purpose;
    void (*add)(CLI::App& verb, CommandLine& line);
};

template <class Options>
std::string id_of(const Options& options) {
    if constexpr (std::same_as<Options, Id>) return options;
    else if constexpr (requires { options.id; }) return options.id;
    else return "";
}

// CLI11 takes "--" for the end of a verb that has no more positional arguments, and what follows for its parent's. So
// the first one is put as a word that nobody writes, with which another program's arguments may well begin.
constexpr const char* kMark = "\x01--";

std::vector<std::string> mark_end_of_options(int argc, char** argv) {
    std::vector<std::string> words(argv + 1, argv + argc);
    if (const auto end = std::ranges::find(words, "--"); end != words.end()) *end = kMark;
    return words;
}

// A program whose name begins with a dash is more likely a mistyped option; ps(1) alone is called with options only.
void refuse_option(const std::vector<std::string>& words) {
    if (!words.empty() && words[0].starts_with('-') && words[0] != "-") throw CLI::ExtrasError("option", {words[0]});
}

std::vector<std::string> without_mark(std::vector<std::string> words) {
    const auto mark = std::ranges::find(words, kMark);
    if (mark == words.begin() && mark != words.end()) words.erase(mark);
    else if (mark != words.end()) *mark = "--";
    return words;
}

// "run", or of a verb below a verb, "seccomp show".
std::string words_of(const CLI::App& verb) {
    const CLI::App* above = verb.get_parent();
    return above->get_parent() ? concat(above->get_name(), " ", verb.get_name()) : verb.get_name();
}

// Options of one verb: registered with add, and handed to run once they are parsed.
template <class Options, void (*add)(CLI::App&, Options&), Result<int> (*run)(const Options&, const CommandLine&)>
void add_verb(CLI::App& verb, CommandLine& line) {
    auto options = std::make_shared<Options>();
    add(verb, *options);
    // From the first word that is no option on, these are another program's arguments.
    constexpr bool kTakesArguments = requires { options->args; };
    if (kTakesArguments) verb.prefix_command()->allow_extras();
    verb.callback([&verb, &line, options] {
        if constexpr (kTakesArguments) options->args = without_mark(verb.remaining());
        if constexpr (requires { options->args; } && !std::same_as<Options, PsOptions>) refuse_option(verb.remaining());
        if constexpr (std::same_as<Options, ExecOptions>) line.failure = kExecFailed;
        if constexpr (std::derived_from<Options, SandboxOptions>) line.failure = kSandboxFailed;
        const std::string id = id_of(*options);
        line.title = id.empty() ? words_of(verb) : concat(verb.get_name(), " ", pinfold::quoted(id));
        line.verb = [options](const CommandLine& all) { return run(*options, all); };
    });
}

Result<int> run_spec(const SpecOptions& options, const CommandLine&) { return verb_spec(options); }
Result<int> run_features(const std::monostate&, const CommandLine&) { return verb_features(); }

constexpr Verb kSeccompVerbs[] = {
    {"show", "list the profiles, or show one with its reasons",
     add_verb<SeccompShowOptions, add_seccomp_show_options, verb_seccomp_show>},
    {"diff", "show what another profile allows more, and less",
     add_verb<SeccompDiffOptions, add_seccomp_diff_options, verb_seccomp_diff>},
    {"learn", "run a program in a sandbox, and write the profile that it needs",
     add_verb<SeccompLearnOptions, add_seccomp_learn_options, verb_seccomp_learn>},
};

constexpr Verb kAuditVerbs[] = {
    {"show", "print the events", add_verb<AuditOptions, add_audit_show_options, verb_audit_show>},
    {"verify", "find out whether the log was changed", add_verb<AuditOptions, add_audit_file, verb_audit_verify>},
};

template <const auto& verbs>
void add_verbs_below(CLI::App& verb, CommandLine& line) {
    verb.require_subcommand(1);
    for (const Verb& below : verbs) below.add(*verb.add_subcommand(below.name, below.purpose), line);
}

constexpr Verb kVerbs[] = {
    {"create", "create a container from a bundle; its program waits for start",
     add_verb<RunOptions, add_create_options, verb_create>},
    {"start", "let the program of a created container run", add_verb<Id, add_id, verb_start>},
    {"run", "create a container, run it to its end, and clean up", add_verb<RunOptions, add_run_options, verb_run>},
    {"exec", "run one more program in a container", add_verb<ExecOptions, add_exec_options, verb_exec>},
    {"kill", "send a signal to a container", add_verb<KillOptions, add_kill_options, verb_kill>},
    {"delete", "remove what is left of a stopped container", add_verb<DeleteOptions, add_delete_options, verb_delete>},
    {"state", "print the state of a container as JSON", add_verb<Id, add_id, verb_state>},
    {"list", "list the containers", add_verb<ListOptions, add_list_options, verb_list>},
    {"ps", "list the processes of a container", add_verb<PsOptions, add_ps_options, verb_ps>},
    {"pause", "freeze all processes of a container", add_verb<Id, add_id, verb_pause>},
    {"resume", "let a paused container go on", add_verb<Id, add_id, verb_resume>},
    {"update", "change the limits of a container", add_verb<UpdateOptions, add_update_options, verb_update>},
    {"events", "print statistics and events of a container", add_verb<EventsOptions, add_events_options, verb_events>},
    {"cp", "copy files into a container, or out of it", add_verb<CpOptions, add_cp_options, verb_cp>},
    {"spec", "write a config.json to start from", add_verb<SpecOptions, add_spec_options, run_spec>},
    {"audit", "read and check the log of what was done", add_verbs_below<kAuditVerbs>},
    {"sandbox", "run a program that is not trusted, under limits, and tell what it did",
     add_verb<SandboxOptions, add_sandbox_options, verb_sandbox>},
    {"prune", "remove sandboxes that have ended or are not used",
     add_verb<PruneOptions, add_prune_options, verb_prune>},
    {"seccomp", "show, compare and learn seccomp profiles", add_verbs_below<kSeccompVerbs>},
    {"features", "print what this runtime can do, as JSON", add_verb<std::monostate, add_nothing, run_features>},
};

// CLI11 takes its time for what is not used: only the verbs that the arguments name, or all where they name none.
void add_verbs(CLI::App& app, const std::vector<std::string_view>& words, CommandLine& line) {
    const auto is_named = [&](const Verb& verb) { return std::ranges::find(words, verb.name) != words.end(); };
    const bool any = std::ranges::any_of(kVerbs, is_named);
    for (const Verb& verb : kVerbs) {
        if (!any || is_named(verb)) verb.add(*app.add_subcommand(verb.name, verb.purpose), line);
    }
}

}  // namespace

std::variant<CommandLine, int> parse_arguments(int argc, char** argv) {
    CommandLine line;
    line.argv = argv;
    CLI::App app("a sandbox for code that is not trusted: an OCI runtime without a daemon", "pinfold");
    app.set_version_flag("-v,--version", kVersionText);
    app.require_subcommand(1);
    app.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
    add_global_options(app, line.global);
    add_verbs(app, {argv + 1, argv + argc}, line);
    try {
        std::vector<std::string> words = mark_end_of_options(argc, argv);
        std::ranges::reverse(words);  // as CLI11 wants them
        app.parse(std::move(words));
    } catch (const CLI::ParseError& error) {
        return app.exit(error) == 0 ? 0 : 1;
    }
    return line;
}

}  // namespace pinfold
