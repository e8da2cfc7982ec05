// argv to CommandLine: the only file that knows CLI11, and the wall where its exceptions stop.
#include "cli/parse_arguments.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>
#include <map>
#include <memory>
#include <sstream>
#include <utility>
#include <vector>

#include "base/strings.hpp"
#include "cli/verbs.hpp"
#include "cli/version.hpp"
#include "state/store.hpp"

namespace pinfold {

namespace {

// The options of one verb. Those that name something of the host's are told apart: main takes them through the gate.
class Arguments {
public:
    Arguments(CLI::App& app, std::vector<NamedPath>& paths) : app_(app), paths_(paths) {}

    template <class Value>
    CLI::Option* add_option(const char* names, Value& out, const char* purpose) const {
        return app_.add_option(names, out, purpose);
    }
    template <class Value>
    CLI::Option* add_flag(const char* names, Value& out, const char* purpose) const {
        return app_.add_flag(names, out, purpose);
    }
    CLI::Option* add_path(const char* names, std::string& out, PathUse use, const char* type,
                          const char* purpose) const {
        paths_.push_back({last_name(names), use, &out});
        CLI::Option* option = app_.add_option(names, out, purpose);
        return *type == '\0' ? option : option->type_name(type);
    }
    CLI::App& app() const { return app_; }

private:
    static std::string last_name(std::string_view names) { return std::string(names.substr(names.rfind(',') + 1)); }

    CLI::App& app_;
    std::vector<NamedPath>& paths_;
};

// An option that is one of a few words, which its help lists.
template <class Value>
CLI::Option* add_choice(const Arguments& verb, const char* names, Value& out,
                        const std::map<std::string, Value>& choices, const char* purpose) {
    std::vector<std::string> words;
    for (const auto& [word, value] : choices) words.push_back(word);
    const auto choose = [&out, choices](const std::string& word) { out = choices.at(word); };
    return verb.app()
        .add_option_function<std::string>(names, choose, purpose)
        ->check(CLI::IsMember(std::move(words)))
        ->type_name("");
}

void add_global_options(const Arguments& app, GlobalOptions& options) {
    options.root = default_state_root();
    app.add_path("--root", options.root, PathUse::state_root, "DIR", "directory of the containers' states")
        ->capture_default_str()
        ->each([&options](const std::string&) { options.root_is_default = false; });
    app.add_flag("--debug", options.log.debug, "show each step with its time");
    app.add_path("--log", options.log.file, PathUse::append, "FILE",
                 "write messages to this file, errors also to standard error");
    add_choice(app, "--log-format", options.log.json, {{"text", false}, {"json", true}}, "form of the messages");
    add_choice(app, "--cgroup-manager", options.cgroup_manager,
               {{"cgroupfs", CgroupManager::cgroupfs},
                {"systemd", CgroupManager::systemd},
                {"disabled", CgroupManager::disabled}},
               "who makes the cgroup; disabled: nobody");
    app.app().add_flag_callback(
        "--systemd-cgroup", [&options] { options.cgroup_manager = CgroupManager::systemd; },
        "the same as --cgroup-manager systemd");
    add_choice(app, "--rootless", options.rootless, {{"auto", std::optional<bool>()}, {"true", true}, {"false", false}},
               "whether to do without a cgroup that cannot be made; auto: if the caller is not root");
    // Taken through the gate when that is opened, as a part of it.
    app.add_option("--policy", options.policy,
                   "forbid what this file forbids, besides what /etc/pinfold/policy.json does")
        ->type_name("FILE");
    app.add_path("--audit", options.audit, PathUse::entry, "FILE", "log what is done with containers to this file");
}

void add_id(const Arguments& verb, std::string& id) { verb.add_option("ID", id, "the container")->required(); }

void add_output_format(const Arguments& verb, const char* names, bool& json) {
    add_choice(verb, names, json, {{"table", false}, {"json", true}}, "form of the output");
}

// What create, run and exec do with the process that they start.
void add_process_options(const Arguments& verb, ChildOptions& options) {
    verb.add_path("--pid-file", options.pid_file, PathUse::entry, "FILE", "write the process's pid to this file");
    verb.add_path("--console-socket", options.console_socket, PathUse::socket, "SOCKET",
                  "send the terminal to this unix socket");
    verb.add_path("--pidfd-socket", options.pidfd_socket, PathUse::socket, "SOCKET",
                  "send the process's pidfd to this unix socket");
    verb.add_option("--preserve-fds", options.preserve_fds, "pass this many descriptors after 0, 1, 2")->type_name("N");
}

void add_strict(const Arguments& verb, bool& strict) {
    verb.add_flag("--strict", strict, "do not start it unless the kernel says that everything is as planned");
}

void add_create_options(const Arguments& verb, RunOptions& options) {
    verb.add_option("ID", options.id, "a name for the container")->required();
    verb.add_path("-b,--bundle", options.bundle, PathUse::read, "DIR", "directory of the bundle")
        ->capture_default_str();
    verb.add_path("-f,--config", options.config, PathUse::read, "FILE",
                  "config file, if it is not config.json in the bundle");
    add_process_options(verb, options.child);
    verb.add_flag("--no-pivot", options.no_pivot, "use chroot instead of pivot_root");
    verb.add_flag("--no-new-keyring", options.no_new_keyring, "keep the caller's session keyring");
    verb.add_flag("--dry-run", options.dry_run, "print the plan as JSON and do nothing");
    add_strict(verb, options.strict);
}

void add_run_options(const Arguments& verb, RunOptions& options) {
    add_create_options(verb, options);
    verb.add_flag("-d,--detach", options.child.detach, "return as soon as the container runs");
    verb.add_flag("--keep", options.keep, "keep the state and the cgroup when the container has ended");
    verb.app().add_flag_callback(
        "--no-subreaper", [] {}, "for callers of runc: pinfold is never a subreaper");
}

// What sandbox and exec tell of the program that they run.
template <class Options>
void add_watch_options(const Arguments& verb, Options& options) {
    verb.add_option("--output-limit", options.output_limit, "bytes that it may print; the rest is dropped")
        ->type_name("SIZE");
    verb.add_path("--result", options.result, PathUse::entry, "FILE",
                  "write the result as JSON; -: to standard output, with --capture");
    verb.add_flag("--capture", options.capture, "put what it prints into the result");
}

void add_exec_options(const Arguments& verb, ExecOptions& options) {
    add_id(verb, options.id);
    verb.add_path("-p,--process", options.process_file, PathUse::read, "FILE", "take the process from this JSON file");
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

void add_kill_options(const Arguments& verb, KillOptions& options) {
    add_id(verb, options.id);
    verb.add_option("SIGNAL", options.signal, "name or number")->capture_default_str();
    verb.add_flag("-a,--all", options.all, "to all processes of the container");
}

void add_delete_options(const Arguments& verb, DeleteOptions& options) {
    add_id(verb, options.id);
    verb.add_flag("-f,--force", options.force, "kill it first if it runs; succeed if there is no such container");
}

void add_list_options(const Arguments& verb, ListOptions& options) {
    verb.add_flag("-q,--quiet", options.quiet, "print the ids only");
    add_output_format(verb, "-f,--format", options.json);
}

void add_ps_options(const Arguments& verb, PsOptions& options) {
    add_id(verb, options.id);
    add_output_format(verb, "--format", options.json);
}

void add_update_options(const Arguments& verb, UpdateOptions& options) {
    add_id(verb, options.id);
    verb.add_path("-r,--resources", options.resources_file, PathUse::read, "FILE",
                  "take linux.resources from this JSON file; -: from standard input");
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

void add_events_options(const Arguments& verb, EventsOptions& options) {
    add_id(verb, options.id);
    verb.add_flag("--stats", options.stats, "print the statistics once");
    verb.add_option("--interval", options.interval, "time between statistics, as in 500ms or 5s")
        ->type_name("TIME")
        ->capture_default_str();
}

void add_cp_options(const Arguments& verb, CpOptions& options) {
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
void add_list(const Arguments& verb, const char* names, std::vector<std::string>& out, const char* type,
              const char* purpose) {
    verb.add_option(names, out, purpose)->type_name(type)->take_all()->allow_extra_args(false);
}

void add_limit_options(const Arguments& verb, LimitOptions& options) {
    verb.add_path("--limits", options.file, PathUse::read, "FILE",
                  "take the limits from this JSON file; the options below come on top");
    verb.add_option("--cpus", options.cpus, "processors, as in 0.5 (1)")->type_name("N");
    verb.add_option("--memory", options.memory, "bytes, or with a unit as in 512m (512m)")->type_name("SIZE");
    verb.add_option("--disk", options.disk, "of all that is written (100m)")->type_name("SIZE");
    verb.add_option("--network", options.network, "none, host or pasta (none)")
        ->check(CLI::IsMember({"none", "host", "pasta"}))
        ->type_name("");
    verb.add_option("--pids", options.processes, "processes and threads (50)")->type_name("N");
    verb.add_option("--timeout", options.timeout, "until it is killed, as in 60s (60s)")->type_name("TIME");
}

// Of one job: its limits, its root, its files, its user. What its root, its files and its runtime are is judged by the
// policies when the job's configuration is built, so that they hold for callers of the library, too.
void add_job_options(const Arguments& verb, SandboxOptions& options) {
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

void add_sandbox_options(const Arguments& verb, SandboxOptions& options) {
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

void add_prune_options(const Arguments& verb, PruneOptions& options) {
    verb.add_flag("--dry-run", options.dry_run, "only tell which");
}

void add_spec_options(const Arguments& verb, SpecOptions& options) {
    verb.add_path("-b,--bundle", options.bundle, PathUse::entry, "DIR", "directory to write config.json to")
        ->capture_default_str();
    verb.add_flag("--rootless", options.rootless, "for a user without privileges");
    add_limit_options(verb, options.limits);
    verb.add_path("--seccomp", options.seccomp, PathUse::profile, "PROFILE",
                  "with limits: profile, a name or a file (default)");
}

void add_seccomp_show_options(const Arguments& verb, SeccompShowOptions& options) {
    verb.add_path("PROFILE", options.profile, PathUse::profile, "",
                  "a name, or a file; without one the names are listed");
    verb.add_flag("--json", options.json, "as linux.seccomp of a config.json");
}

void add_seccomp_diff_options(const Arguments& verb, SeccompDiffOptions& options) {
    verb.add_path("PROFILE", options.from, PathUse::profile, "", "a name, or a file")->required();
    verb.add_path("OTHER", options.to, PathUse::profile, "", "the one to compare it with")->required();
}

void add_seccomp_learn_options(const Arguments& verb, SeccompLearnOptions& options) {
    verb.add_path("-o,--output", options.output, PathUse::entry, "FILE",
                  "the profile's file; what it allows already is kept");
    add_job_options(verb, options);
}

void add_audit_file(const Arguments& verb, AuditOptions& options) {
    verb.add_path("FILE", options.file, PathUse::source, "",
                  "the log; default: the one that --audit or the policy names");
}

void add_audit_show_options(const Arguments& verb, AuditOptions& options) {
    add_audit_file(verb, options);
    verb.add_option("--id", options.container, "events of this container only")->type_name("ID");
    verb.add_option("--event", options.event, "events of this kind only")->type_name("EVENT");
    verb.add_flag("--json", options.json, "print the lines as they are");
}

// Not one that a program is likely to end with: callers tell the two apart by it.
int failure_of(std::string_view verb) {
    if (verb == "exec") return 255;
    return verb == "sandbox" || verb == "seccomp learn" ? 125 : 1;
}

using Id = std::string;
void add_nothing(const Arguments&, std::monostate&) {}

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

// Which of the two sides is in a container shows in the words alone.
void name_sides(CpOptions& options, std::vector<NamedPath>& paths, std::string& target) {
    for (std::string* side : {&options.source, &options.target}) {
        if (const std::optional<PathInside> inside = inside_part(*side)) target = inside->id;
        else if (side == &options.source) paths.push_back({"SOURCE", PathUse::source, side});
        else paths.push_back({"TARGET", PathUse::entry, side});
    }
}

// Options of one verb: registered with add, and handed to run once they are parsed.
template <class Options, void (*add)(const Arguments&, Options&),
          Result<int> (*run)(const Options&, const CommandLine&)>
void add_verb(CLI::App& verb, CommandLine& line) {
    auto options = std::make_shared<Options>();
    auto paths = std::make_shared<std::vector<NamedPath>>();
    add({verb, *paths}, *options);
    // From the first word that is no option on, these are another program's arguments.
    constexpr bool kTakesArguments = requires { options->args; };
    if (kTakesArguments) verb.prefix_command()->allow_extras();
    verb.callback([&verb, &line, options, paths] {
        if constexpr (kTakesArguments) options->args = without_mark(verb.remaining());
        if constexpr (requires { options->args; } && !std::same_as<Options, PsOptions>) refuse_option(verb.remaining());
        if constexpr (requires { options->result; }) line.result = &options->result;
        const std::string id = id_of(*options);
        line.words = words_of(verb);
        line.failure = failure_of(line.words);
        line.title = id.empty() ? line.words : concat(verb.get_name(), " ", pinfold::quoted(id));
        line.target = id;
        if constexpr (std::same_as<Options, CpOptions>) name_sides(*options, *paths, line.target);
        line.paths.insert(line.paths.end(), paths->begin(), paths->end());
        line.verb = [options](const CommandLine& all) { return run(*options, all); };
    });
}

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
    {"spec", "write a config.json to start from", add_verb<SpecOptions, add_spec_options, verb_spec>},
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

// How many letters have to be put in, left out or replaced to make one word of the other.
size_t edit_distance(std::string_view one, std::string_view other) {
    std::vector<size_t> row(other.size() + 1);
    for (size_t j = 0; j < row.size(); ++j) row[j] = j;
    for (size_t i = 0; i < one.size(); ++i) {
        size_t diagonal = std::exchange(row[0], i + 1);
        for (size_t j = 0; j < other.size(); ++j) {
            const size_t replaced = diagonal + (one[i] == other[j] ? 0 : 1);
            diagonal = std::exchange(row[j + 1], std::min({replaced, row[j] + 1, row[j + 1] + 1}));
        }
    }
    return row[other.size()];
}

std::string_view without_dashes(std::string_view word) {
    return word.substr(std::min(word.find_first_not_of('-'), word.size()));
}

// The word that was probably meant, or nothing.
std::string nearest(std::string_view word, const std::vector<std::string>& known) {
    word = without_dashes(word);
    size_t least = word.size() < 3 ? 1 : std::min<size_t>(word.size() / 2, 2) + 1;
    std::string best;
    for (const std::string& one : known) {
        const size_t distance = edit_distance(word, without_dashes(one));
        if (distance < least) best = one;
        least = std::min(least, distance);
    }
    return best;
}

std::vector<std::string> option_names(const CLI::App& app) {
    std::vector<std::string> names;
    for (const CLI::Option* option : app.get_options()) {
        for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
    }
    return names;
}

// The verb that the words got to; the program itself where they did not name one.
const CLI::App& verb_of(const CLI::App& app) {
    const std::vector<CLI::App*> named = app.get_subcommands();
    return named.empty() ? app : verb_of(*named.back());
}

std::string help_of(const CLI::App& verb) {
    return concat("pinfold ", verb.get_parent() ? words_of(verb) + " " : "", "--help lists what there is");
}

std::string meant_or_help(const std::string& meant, const CLI::App& verb) {
    return meant.empty() ? help_of(verb) : concat("did you mean ", meant, "?");
}

// `at` is where the option stands: the verb, or before it the program itself.
Error unknown_option(const std::string& word, const CLI::App& at, const CLI::App& app, const CLI::App& verb) {
    const std::string name = word.substr(0, word.find('='));
    Error error = plain_error(concat("unknown option ", pinfold::quoted(name)));
    if (&at != &app && app.get_option_no_throw(name) != nullptr)
        return std::move(error).with_hint("it is one of the global options: put it before the verb");
    if (&at == &app && verb.get_option_no_throw(name) != nullptr)
        return std::move(error).with_hint(concat("it is an option of ", words_of(verb), ": put it behind the verb"));
    return std::move(error).with_hint(meant_or_help(nearest(name, option_names(at)), at));
}

Error unknown_verb(const std::string& word, const CLI::App& above) {
    std::vector<std::string> known;
    if (above.get_parent() == nullptr) {
        known = {"--help", "--version"};
        for (const Verb& verb : kVerbs) known.push_back(verb.name);
    } else {
        for (const CLI::App* verb : above.get_subcommands([](const CLI::App*) { return true; }))
            known.push_back(verb->get_name());
    }
    return plain_error(concat("unknown verb ", pinfold::quoted(word)))
        .with_hint(meant_or_help(nearest(word, known), above));
}

// An option that has taken the end of the options for its value.
const CLI::Option* option_without_value(const CLI::App& app) {
    for (const CLI::Option* option : app.get_options()) {
        const auto& values = option->results();
        if (std::ranges::find(values, kMark) != values.end()) return option;
    }
    return nullptr;
}

bool is_option(const std::string& word) { return word.size() > 1 && word[0] == '-'; }

// What is wrong with the words, in ours where CLI11's do not help.
Error mistake(const CLI::App& app, const std::string& complaint) {
    const CLI::App& verb = verb_of(app);
    for (const CLI::App* one : {&verb, &app}) {
        if (const CLI::Option* option = option_without_value(*one))
            return plain_error(concat(option->get_name(), " needs a value")).with_hint(help_of(verb));
    }
    for (const CLI::App* at : {&verb, &app}) {
        const std::vector<std::string> words = at->remaining();
        if (words.empty()) continue;
        if (is_option(words[0])) return unknown_option(words[0], *at, app, verb);
        if (at->get_require_subcommand_min() > 0 && words[0] != kMark) return unknown_verb(words[0], *at);
    }
    if (verb.get_require_subcommand_min() > 0) return plain_error("a verb is required").with_hint(help_of(verb));
    return plain_error(complaint).with_hint(help_of(verb));
}

std::string last_value(const CLI::App& app, const char* name) {
    const CLI::Option* option = app.get_option_no_throw(name);
    return option == nullptr || option->empty() ? "" : option->results().back();
}

// What --result names, also behind a mistyped option. But not where that may have been the program's: a word that could
// be its name ends the search, unless it is the value of what was probably meant.
std::string named_result(const CLI::App& verb) {
    std::string result = last_value(verb, "--result");
    if (verb.get_option_no_throw("--result") == nullptr) return result;
    const std::vector<std::string> words = verb.remaining();
    for (size_t i = 0; i < words.size() && is_option(words[i]); ++i) {
        const size_t equals = words[i].find('=');
        const std::string name = words[i].substr(0, equals);
        const CLI::Option* option = verb.get_option_no_throw(name);
        if (option == nullptr) option = verb.get_option_no_throw(nearest(name, option_names(verb)));
        std::string value = equals == name.npos ? "" : words[i].substr(equals + 1);
        const bool takes_next = equals == name.npos && option != nullptr && option->get_expected_max() > 0;
        if (takes_next && i + 1 < words.size()) value = words[++i];
        if (name == "--result" && value != kMark) result = value;
    }
    return result;
}

// A line whose verb is to fail: so main tells of it as of any failure, and takes through the gate what it writes to.
void fail_with(Error error, const CLI::App& app, CommandLine& line) {
    const CLI::App& verb = verb_of(app);
    auto result = std::make_shared<std::string>(named_result(verb));
    line.words = verb.get_parent() ? words_of(verb) : "";
    line.title = line.words;
    line.target.clear();
    line.failure = failure_of(line.words);
    line.global = {};
    line.global.root = default_state_root();
    line.global.log = {.file = last_value(app, "--log"), .json = last_value(app, "--log-format") == "json"};
    line.global.policy = last_value(app, "--policy");
    line.paths = {{"--log", PathUse::append, &line.global.log.file}, {"--result", PathUse::entry, result.get()}};
    line.result = result.get();
    line.verb = [error = std::move(error), result](const CommandLine&) -> Result<int> { return error; };
}

// Names and words of the caller's may be in it.
int print_answer(const CLI::App& app, const CLI::Success& answer) {
    std::ostringstream out;
    app.exit(answer, out, out);
    std::cout << printable(out.str(), kLineEnds) << std::flush;
    return 0;
}

}  // namespace

std::optional<int> parse_arguments(int argc, char** argv, CommandLine& line) {
    line.argv = argv;
    CLI::App app("a sandbox for code that is not trusted: an OCI runtime without a daemon", "pinfold");
    app.set_version_flag("-v,--version", kVersionText);
    app.require_subcommand(1);
    app.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
    add_global_options({app, line.paths}, line.global);
    add_verbs(app, {argv + 1, argv + argc}, line);
    try {
        std::vector<std::string> words = mark_end_of_options(argc, argv);
        std::ranges::reverse(words);  // as CLI11 wants them
        app.parse(std::move(words));
        if (option_without_value(app) || option_without_value(verb_of(app))) fail_with(mistake(app, ""), app, line);
    } catch (const CLI::Success& answer) {
        return print_answer(app, answer);
    } catch (const CLI::ParseError& error) {
        fail_with(mistake(app, error.what()), app, line);
    }
    return std::nullopt;
}

}  // namespace pinfold
