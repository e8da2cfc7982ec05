// argv to CommandLine: the verbs with their options, and a reader of plain lines. What that does not understand is left
// to explain_arguments.cpp, which understands more and says what is wrong.
#include "cli/parse_arguments.hpp"

#include <algorithm>
#include <charconv>
#include <concepts>
#include <cstdlib>
#include <memory>

#include "base/log.hpp"
#include "base/strings.hpp"
#include "cli/explain_arguments.hpp"
#include "cli/option_table.hpp"
#include "cli/version.hpp"
#include "state/store.hpp"

namespace pinfold {

namespace {

using Words = std::span<char*>;

constexpr std::pair<const char*, bool> kLogFormats[] = {{"json", true}, {"text", false}};
constexpr std::pair<const char*, bool> kOutputFormats[] = {{"json", true}, {"table", false}};
constexpr std::pair<const char*, CgroupManager> kCgroupManagers[] = {
    {"cgroupfs", CgroupManager::cgroupfs}, {"disabled", CgroupManager::disabled}, {"systemd", CgroupManager::systemd}};
constexpr std::pair<const char*, std::optional<bool>> kRootless[] = {
    {"auto", std::nullopt}, {"false", false}, {"true", true}};
constexpr std::pair<const char*, const char*> kNetworks[] = {{"none", "none"}, {"host", "host"}, {"pasta", "pasta"}};

void add_id(OptionTable& table, std::string& id) { table.place("ID", id, "the container").require(); }

void add_output_format(OptionTable& table, const char* names, bool& json) {
    table.choice(names, json, kOutputFormats, "form of the output");
}

// What create, run and exec do with the process that they start.
void add_process_options(OptionTable& table, ChildOptions& to) {
    table.add("--pid-file", to.pid_file, "FILE", "write the process's pid to this file").gate(PathUse::entry);
    table.add("--console-socket", to.console_socket, "SOCKET", "send the terminal to this unix socket")
        .gate(PathUse::socket);
    table.add("--pidfd-socket", to.pidfd_socket, "SOCKET", "send the process's pidfd to this unix socket")
        .gate(PathUse::socket);
    table.add("--preserve-fds", to.preserve_fds, "N", "pass this many descriptors after 0, 1, 2");
}

void add_strict(OptionTable& table, bool& strict) {
    table.flag("--strict", strict, "do not start it unless the kernel says that everything is as planned");
}

void add_create_options(OptionTable& table, RunOptions& to) {
    table.place("ID", to.id, "a name for the container").require();
    table.add("-b,--bundle", to.bundle, "DIR", "directory of the bundle").show_default().gate(PathUse::read);
    table.add("-f,--config", to.config, "FILE", "config file, if it is not config.json in the bundle")
        .gate(PathUse::read);
    add_process_options(table, to.child);
    table.flag("--no-pivot", to.no_pivot, "use chroot instead of pivot_root");
    table.flag("--no-new-keyring", to.no_new_keyring, "keep the caller's session keyring");
    table.flag("--dry-run", to.dry_run, "print the plan as JSON and do nothing");
    add_strict(table, to.strict);
}

void add_run_options(OptionTable& table, RunOptions& to) {
    add_create_options(table, to);
    table.flag("-d,--detach", to.child.detach, "return as soon as the container runs");
    table.flag("--keep", to.keep, "keep the state and the cgroup when the container has ended");
    table.flag("--no-subreaper", to.no_subreaper, "for callers of runc: pinfold is never a subreaper");
}

void add_env_file(OptionTable& table, std::string& to) {
    table.add("--env-file", to, "FILE", "a file of NAME=VALUE and NAME, a line each; -e comes on top")
        .gate(PathUse::read);
}

// What sandbox and exec tell of the program that they run.
template <class To>
void add_watch_options(OptionTable& table, To& to) {
    table.add("--output-limit", to.output_limit, "SIZE", "bytes that it may print; the rest is dropped");
    table.add("--result", to.result, "FILE", "write the result as JSON; -: to standard output, with --capture")
        .gate(PathUse::entry);
    table.flag("--capture", to.capture, "put what it prints into the result");
    table.flag("--tee", to.tee, "with --capture: and print it all the same");
    table.flag("--merge-output", to.merge_output, "standard error goes to standard output, in the order of writing");
    table.flag("--receipt", to.receipt, "put what the kernel said of its set-up into the result");
    table.flag("-v,--verbose", to.verbose, "say at the end what stopped it, as on a terminal");
}

void add_exec_options(OptionTable& table, ExecOptions& to) {
    add_id(table, to.id);
    table.add("-p,--process", to.process_file, "FILE", "take the process from this JSON file").gate(PathUse::read);
    table.add("--cwd", to.cwd, "DIR", "working directory");
    table.add("-e,--env", to.env, "NAME=VALUE", "NAME=VALUE, or NAME of your own; may be repeated");
    add_env_file(table, to.env_file);
    table.add("-u,--user", to.user, "USER", "UID[:GID] or NAME[:GROUP]");
    table.add("-g,--additional-gids", to.additional_gids, "GID", "one more group, may be repeated");
    table.add("-c,--cap", to.capabilities, "CAP", "add this capability, may be repeated");
    table.add("--process-label", to.process_label, "LABEL", "SELinux label");
    table.add("--apparmor", to.apparmor, "PROFILE", "AppArmor profile");
    table.add("--cgroup", to.cgroup, "PATH", "a group below the container's");
    table.add("--session", to.session, "ID",
              "the words are a shell's, and go on in the directory and environment of the last ones of this name");
    add_process_options(table, to.child);
    table.add("--timeout", to.timeout, "TIME", "kill it, and all that it started, after this time");
    add_watch_options(table, to);
    table.flag("-t,--tty", to.terminal, "give it a terminal");
    table.flag("-d,--detach", to.child.detach, "return as soon as the program runs");
    table.flag("--no-new-privs", to.no_new_privileges, "forbid new privileges");
    table.flag("--ignore-paused", to.ignore_paused, "also in a paused container, where it waits");
    add_strict(table, to.strict);
}

void add_kill_options(OptionTable& table, KillOptions& to) {
    add_id(table, to.id);
    table.place("SIGNAL", to.signal, "name or number").show_default();
    table.flag("-a,--all", to.all, "to all processes of the container");
}

void add_delete_options(OptionTable& table, DeleteOptions& to) {
    add_id(table, to.id);
    table.flag("-f,--force", to.force, "kill it first if it runs; succeed if there is no such container");
}

void add_list_options(OptionTable& table, ListOptions& to) {
    table.flag("-q,--quiet", to.quiet, "print the ids only");
    add_output_format(table, "-f,--format", to.json);
}

void add_ps_options(OptionTable& table, PsOptions& to) {
    add_id(table, to.id);
    add_output_format(table, "--format", to.json);
}

void add_update_options(OptionTable& table, UpdateOptions& to) {
    add_id(table, to.id);
    table
        .add("-r,--resources", to.resources_file, "FILE",
             "take linux.resources from this JSON file; -: from standard input")
        .gate(PathUse::read);
    table.add("--memory", to.memory, "SIZE", "bytes, or with a unit as in 100M; -1: unlimited");
    table.add("--memory-swap", to.memory_swap, "SIZE", "memory and swap together");
    table.add("--memory-reservation", to.memory_reservation, "SIZE", "soft limit");
    table.add("--kernel-memory", to.kernel_memory, "SIZE", "of the kernel, cgroup v1 only");
    table.add("--kernel-memory-tcp", to.kernel_memory_tcp, "SIZE", "of sockets, cgroup v1 only");
    table.add("--cpu-share", to.cpu_shares, "N", "relative weight, 2 to 262144");
    table.add("--cpu-quota", to.cpu_quota, "N", "microseconds per period; -1: unlimited");
    table.add("--cpu-period", to.cpu_period, "N", "microseconds");
    table.add("--cpu-burst", to.cpu_burst, "N", "microseconds that may be saved up");
    table.add("--cpu-idle", to.cpu_idle, "N", "1: run only when nothing else does");
    table.add("--cpu-rt-period", to.cpu_rt_period, "N", "of real-time processes, cgroup v1 only");
    table.add("--cpu-rt-runtime", to.cpu_rt_runtime, "N", "of real-time processes, cgroup v1 only");
    table.add("--cpuset-cpus", to.cpuset_cpus, "LIST", "as in 0-3,7");
    table.add("--cpuset-mems", to.cpuset_mems, "LIST", "memory nodes");
    table.add("--pids-limit", to.pids_limit, "N", "number of tasks; -1: unlimited");
    table.add("--blkio-weight", to.blkio_weight, "N", "relative weight, 10 to 1000");
}

void add_events_options(OptionTable& table, EventsOptions& to) {
    add_id(table, to.id);
    table.flag("--stats", to.stats, "print the statistics once");
    table.add("--interval", to.interval, "TIME", "time between statistics, as in 500ms or 5s").show_default();
}

void add_cp_options(OptionTable& table, CpOptions& to) {
    table.place("SOURCE", to.source, "ID:PATH in a container, a path on the host, or - for standard input")
        .require()
        .gate(PathUse::source)
        .or_inside();
    table.place("TARGET", to.target, "the same; - for standard output").require().gate(PathUse::entry).or_inside();
    table.add("--max-size", to.max_size, "SIZE", "refuse to copy more bytes than this, as in 100M").show_default();
    table.add("--max-files", to.max_files, "N", "refuse to copy more files, directories and links than this")
        .show_default();
    table.flag("--outward-links", to.outward_links, "also copy links that lead out of the copied tree");
}

void add_limit_options(OptionTable& table, LimitOptions& to) {
    table.add("--limits", to.file, "FILE", "take the limits from this JSON file; the options below come on top")
        .gate(PathUse::read);
    table.add("--cpus", to.cpus, "N", "processors, as in 0.5, from 0.01 to 8192 (1)");
    table.add("--memory", to.memory, "SIZE", "bytes, or with a unit as in 512m (512m)");
    table.add("--disk", to.disk, "SIZE", "of all that is written (100m)");
    table.choice("--network", to.network, kNetworks, "none, host or pasta (none)");
    table.add("--pids", to.processes, "N", "processes and threads, from 1 to 4194303 (50)");
    table.add("--timeout", to.timeout, "TIME", "until it is killed, as in 60s (60s)");
}

// Of one job: its limits, its root, its files, its user. What its root, its files and its runtime are is judged by the
// policies when the job's configuration is built, so that they hold for callers of the library, too.
void add_job_options(OptionTable& table, SandboxOptions& to) {
    add_limit_options(table, to.limits);
    table.add("--lang", to.language, "LANGUAGE",
              "the command is a script in this language, or -; list: which there are");
    table.add("--rootfs", to.rootfs, "DIR", "run in this directory's programs, not in this machine's");
    table.add("--template", to.root_template, "NAME", "show it a part of this machine: see template list; or a file");
    table.add("--bundle", to.bundle, "DIR", "the same, with the command of an OCI bundle");
    table.add("--bind", to.binds, "SRC[:DST]", "let it read and write a directory of this machine");
    table.add("--ro-bind", to.readonly_binds, "SRC[:DST]", "let it read a directory of this machine");
    table.add("--copy-in", to.copies_in, "SRC:DST", "give it a copy of a file or directory");
    table.add("--copy-out", to.copies_out, "SRC:DST", "take a copy of what it has made");
    table.flag("--outward-links", to.outward_links, "copy out links, too, that lead out of the copied tree");
    table.add("-e,--env", to.env, "NAME=VALUE", "or NAME of your own; may be repeated, as may all of these");
    add_env_file(table, to.env_file);
    table.add("--secret", to.secrets, "NAME=FILE", "show it this file as /run/secrets/NAME, in memory");
    table.add("--cwd", to.cwd, "DIR", "working directory (/workspace)");
    table.add("--user", to.user, "UID[:GID]", "inside (1000:1000)");
    table.add("--cpu-timeout", to.cpu_timeout, "TIME", "processor time until it is killed");
    table.add("--name", to.name, "ID", "of the sandbox");
    table.flag("--stdin", to.pass_stdin, "let it read our standard input");
    table.flag("--writable-root", to.writable_root, "let it change its root, for itself alone");
    table.add("--scratch", to.scratch, "DIR|disk", "keep its work directory on a disk, not in memory");
    table.flag("--require-cgroup", to.require_cgroup, "fail where limits could only be held by rlimits");
    table.add("--allow-unenforced", to.allow_unenforced, "LIMIT",
              "start it even if this limit cannot be held here: cpu_cores, disk_mb");
    table.flag("--landlock,!--no-landlock", to.landlock, "use Landlock where the kernel has it (default)");
    table.add("--tcp-bind", to.tcp_bind, "PORTS", "TCP ports that it may listen on: 80,443, any or none");
    table.add("--tcp-connect", to.tcp_connect, "PORTS", "TCP ports that it may connect to: 80,443, any or none");
    table.add("--publish", to.publish, "[ADDR:]HOST:INSIDE",
              "let a TCP port of this machine lead to one inside (127.0.0.1; 0: any that is free)");
    table.flag("--strict,!--no-strict", to.strict,
               "do not start it unless the kernel says that everything is as planned (default)");
}

void add_sandbox_options(OptionTable& table, SandboxOptions& to) {
    add_job_options(table, to);
    table.add("--seccomp", to.seccomp, "PROFILE", "profile: a name, or a file (default; with a network: network)");
    add_watch_options(table, to);
    table.add("--runtime", to.runtime, "RUNTIME", "have it run by another: runc, crun, runsc, kata-runtime, a path");
    table.flag("-t,--tty", to.terminal, "give it a terminal (default where standard input and output are one)");
    table.flag("--no-tty", to.no_terminal, "give it none");
    table.flag("-d,--detach", to.detach, "let it stay, for exec and cp, until it is deleted");
    table.add("--keep-files", to.keep_files, "DIR",
              "with --detach: keep /workspace and /tmp there, for the next start");
    table.add("--idle-timeout", to.idle_timeout, "TIME", "with --detach: unused for so long, prune removes it");
}

void add_logs_options(OptionTable& table, LogsOptions& to) {
    add_id(table, to.id);
    table.flag("-f,--follow", to.follow, "go on until it has ended");
}

void add_wait_options(OptionTable& table, WaitOptions& to) {
    add_id(table, to.id);
    table
        .add("--result", to.result, "FILE", "write the result as JSON, with what it has printed; -: to standard output")
        .gate(PathUse::entry);
}

void add_stop_options(OptionTable& table, StopOptions& to) {
    add_id(table, to.id);
    table.add("-t,--time", to.time, "TIME", "until it is killed").show_default();
}

void add_prune_options(OptionTable& table, PruneOptions& to) {
    table.add("--older-than", to.older_than, "TIME", "only those that ended so long ago");
    table.flag("--dry-run", to.dry_run, "only tell which");
}

void add_spec_options(OptionTable& table, SpecOptions& to) {
    table.add("-b,--bundle", to.bundle, "DIR", "directory to write config.json to").show_default().gate(PathUse::entry);
    table.flag("--rootless", to.rootless, "for a user without privileges");
    add_limit_options(table, to.limits);
    table.add("--seccomp", to.seccomp, "PROFILE", "with limits: profile, a name or a file (default)")
        .gate(PathUse::profile);
}

void add_seccomp_show_options(OptionTable& table, SeccompShowOptions& to) {
    table.place("PROFILE", to.profile, "a name, or a file; without one the names are listed").gate(PathUse::profile);
    table.flag("--json", to.json, "as linux.seccomp of a config.json");
}

void add_seccomp_diff_options(OptionTable& table, SeccompDiffOptions& to) {
    table.place("PROFILE", to.from, "a name, or a file").require().gate(PathUse::profile);
    table.place("OTHER", to.to, "the one to compare it with").require().gate(PathUse::profile);
}

void add_seccomp_learn_options(OptionTable& table, SeccompLearnOptions& to) {
    table.add("-o,--output", to.output, "FILE", "the profile's file; what it allows already is kept")
        .gate(PathUse::entry);
    add_job_options(table, to);
}

void add_template_list_options(OptionTable& table, TemplateListOptions& to) {
    add_output_format(table, "-f,--format", to.json);
}

// The file is judged when it is looked for, as that of --template is.
void add_template_show_options(OptionTable& table, TemplateShowOptions& to) {
    table.place("NAME", to.name, "of a template, or its file").require();
    table.flag("--json", to.json, "as it is written");
}

void add_template_add_options(OptionTable& table, TemplateAddOptions& to) {
    table.place("TEMPLATE", to.name, "its name from then on").require();
    table.place("FILE", to.file, "the template; - for standard input").require().gate(PathUse::read);
    table.flag("--replace", to.replace, "in the place of one that was added before");
}

void add_audit_file(OptionTable& table, AuditOptions& to) {
    table.place("FILE", to.file, "the log; default: the one that --audit or the policy names").gate(PathUse::source);
}

void add_audit_show_options(OptionTable& table, AuditOptions& to) {
    add_audit_file(table, to);
    table.add("--id", to.container, "ID", "events of this container only");
    table.add("--event", to.event, "EVENT", "events of this kind only");
    table.flag("--json", to.json, "print the lines as they are");
}

using Id = std::string;
void add_nothing(OptionTable&, std::monostate&) {}
Result<int> run_features(const std::monostate&, const CommandLine&) { return verb_features(); }

// What a verb is called with: declared by add, and handed to run once a line was read into it.
template <class To, void (*add)(OptionTable&, To&), Result<int> (*run)(const To&, const CommandLine&)>
OptionTable declare() {
    const auto to = std::make_shared<To>();
    OptionTable table;
    table.options.reserve(48);
    add(table, *to);
    if constexpr (std::same_as<To, Id>) table.id = to.get();
    if constexpr (requires { to->id; }) table.id = &to->id;
    if constexpr (requires { to->args; }) table.args = &to->args;
    if constexpr (requires { to->result; }) table.result = &to->result;
    table.args_are_options = std::same_as<To, PsOptions>;
    table.call = [to](const CommandLine& line) { return run(*to, line); };
    return table;
}

constexpr Verb kSeccompVerbs[] = {
    {"show", "list the profiles, or show one with its reasons",
     declare<SeccompShowOptions, add_seccomp_show_options, verb_seccomp_show>},
    {"diff", "show what another profile allows more, and less",
     declare<SeccompDiffOptions, add_seccomp_diff_options, verb_seccomp_diff>},
    {"learn", "run a program in a sandbox, and write the profile that it needs",
     declare<SeccompLearnOptions, add_seccomp_learn_options, verb_seccomp_learn>},
};

constexpr Verb kTemplateVerbs[] = {
    {"list", "list the templates", declare<TemplateListOptions, add_template_list_options, verb_template_list>},
    {"show", "show what one shows of this machine",
     declare<TemplateShowOptions, add_template_show_options, verb_template_show>},
    {"add", "check a template, and let it be found by a name",
     declare<TemplateAddOptions, add_template_add_options, verb_template_add>},
};

constexpr Verb kAuditVerbs[] = {
    {"show", "print the events", declare<AuditOptions, add_audit_show_options, verb_audit_show>},
    {"verify", "find out whether the log was changed", declare<AuditOptions, add_audit_file, verb_audit_verify>},
};

constexpr Verb kVerbs[] = {
    {"create", "create a container from a bundle; its program waits for start",
     declare<RunOptions, add_create_options, verb_create>},
    {"start", "let the program of a created container run, or a stopped sandbox again",
     declare<Id, add_id, verb_start>},
    {"run", "create a container, run it to its end, and clean up", declare<RunOptions, add_run_options, verb_run>},
    {"exec", "run one more program in a container", declare<ExecOptions, add_exec_options, verb_exec>},
    {"kill", "send a signal to a container", declare<KillOptions, add_kill_options, verb_kill>},
    {"delete", "remove what is left of a stopped container", declare<DeleteOptions, add_delete_options, verb_delete>},
    {"state", "print the state of a container as JSON", declare<Id, add_id, verb_state>},
    {"list", "list the containers", declare<ListOptions, add_list_options, verb_list>},
    {"ps", "list the processes of a container", declare<PsOptions, add_ps_options, verb_ps>},
    {"pause", "freeze all processes of a container", declare<Id, add_id, verb_pause>},
    {"resume", "let a paused container go on", declare<Id, add_id, verb_resume>},
    {"update", "change the limits of a container", declare<UpdateOptions, add_update_options, verb_update>},
    {"events", "print statistics and events of a container", declare<EventsOptions, add_events_options, verb_events>},
    {"cp", "copy files into a container, or out of it", declare<CpOptions, add_cp_options, verb_cp>},
    {"spec", "write a config.json to start from", declare<SpecOptions, add_spec_options, verb_spec>},
    {"audit", "read and check the log of what was done", nullptr, kAuditVerbs},
    {"sandbox", "run a program that is not trusted, under limits, and tell what it did",
     declare<SandboxOptions, add_sandbox_options, verb_sandbox>},
    {"logs", "print what the command of a sandbox that stays has printed",
     declare<LogsOptions, add_logs_options, verb_logs>},
    {"wait", "wait for a sandbox that stays, and exit as it did", declare<WaitOptions, add_wait_options, verb_wait>},
    {"stop", "end a sandbox that stays, by SIGTERM first", declare<StopOptions, add_stop_options, verb_stop>},
    {"prune", "remove sandboxes that have ended or are not used", declare<PruneOptions, add_prune_options, verb_prune>},
    {"template", "list, show and add what sandbox --template takes", nullptr, kTemplateVerbs},
    {"seccomp", "show, compare and learn seccomp profiles", nullptr, kSeccompVerbs},
    {"features", "print what this runtime can do, as JSON", declare<std::monostate, add_nothing, run_features>},
};

// --- the reader of plain lines: each word as it stands in the table, numbers in decimal, nothing left out ------------

bool is_option(std::string_view word) { return word.size() > 1 && word[0] == '-' && word != "--"; }

bool is_place(const Option& option) { return option.names[0] != '-'; }

// One of the names, with the "!" that it may have.
std::string_view find_name(std::string_view names, std::string_view name) {
    for (;;) {
        const std::string_view one = names.substr(0, names.find(','));
        if (one == name || (one.starts_with('!') && one.substr(1) == name)) return one;
        if (one.size() == names.size()) return {};
        names.remove_prefix(one.size() + 1);
    }
}

bool take(const char* word, std::string* out) {
    *out = word;
    return true;
}

// A zero in front would make it octal.
template <std::integral Number>
bool take(std::string_view word, Number* out) {
    const std::string_view digits = word.substr(std::signed_integral<Number> && word.starts_with('-') ? 1 : 0);
    if (digits.empty() || (digits[0] == '0' && digits.size() > 1)) return false;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), *out);
    return error == std::errc() && end == word.data() + word.size();
}

bool take(const char* word, double* out) {
    char* end = nullptr;
    *out = static_cast<double>(std::strtold(word, &end));
    return *word >= '0' && *word <= '9' && *end == '\0';
}

template <class Value>
bool take(const char* word, std::optional<Value>* out) {
    return take(word, &out->emplace());
}

template <class Value>
bool take(const char* word, std::vector<Value>* out) {
    return std::string_view(word) != "{}" && take(word, &out->emplace_back());
}

template <class Out, class In>
bool take(std::string_view word, const OneOf<Out, In>& choice) {
    const auto chosen = std::ranges::find(choice.words, word, &std::pair<const char*, In>::first);
    if (chosen == choice.words.end()) return false;
    *choice.out = chosen->second;
    return true;
}

// An option that has no value.
bool take(const char*, bool*) { return false; }

bool take_value(const Option& option, const char* word) {
    return *word != '\0' && std::visit([word](const auto& out) { return take(word, out); }, option.value);
}

// The option at the beginning of the words, and its value.
bool take_option(const std::vector<Option>& options, Words& words) {
    const std::string_view word = words[0];
    const size_t equals = word.starts_with("--") ? word.find('=') : word.npos;
    std::string_view name;
    const auto option = std::ranges::find_if(options, [&](const Option& one) {
        name = find_name(one.names, word.substr(0, equals));
        return !name.empty();
    });
    if (option == options.end()) return false;
    if (option->clears != nullptr) *option->clears = false;
    if (bool* const* flag = std::get_if<bool*>(&option->value)) {
        **flag = !name.starts_with('!');
        words = words.subspan(1);
        return equals == word.npos;
    }
    const size_t count = equals == word.npos ? 2 : 1;
    if (words.size() < count) return false;
    const char* const value = count == 2 ? words[1] : words[0] + equals + 1;
    words = words.subspan(count);
    return std::string_view(value) != "--" && take_value(*option, value);
}

bool take_options(const std::vector<Option>& options, Words& words) {
    while (!words.empty() && is_option(words[0])) {
        if (!take_option(options, words)) return false;
    }
    return true;
}

// The verb's options and places, up to the words that are another program's.
bool take_line(OptionTable& table, Words words) {
    for (const Option& option : table.options) {
        if (!is_place(option)) continue;
        if (!take_options(table.options, words)) return false;
        if (words.empty() && !option.is_required) continue;
        const std::string_view word = words.empty() ? "--" : words[0];
        if (word == "--" || word == "++" || !take_value(option, words[0])) return false;
        words = words.subspan(1);
    }
    if (!take_options(table.options, words)) return false;
    if (table.args == nullptr) return words.empty();
    if (words.empty()) return true;
    const std::string_view first = words[0];
    if (first == "--") words = words.subspan(1);
    table.args->assign(words.begin(), words.end());
    return first != "++";
}

const Verb* take_verb(std::span<const Verb> verbs, Words& words, std::string& name) {
    if (words.empty()) return nullptr;
    const auto verb = std::ranges::find(verbs, std::string_view(words[0]), &Verb::name);
    if (verb == verbs.end()) return nullptr;
    words = words.subspan(1);
    name = name.empty() ? verb->name : concat(name, ' ', verb->name);
    return verb->below.empty() ? &*verb : take_verb(verb->below, words, name);
}

int print_version() {
    const Result<void> printed = print(concat(kVersionText, '\n'));
    if (!printed) log_error(printed.error());
    return printed ? 0 : 1;
}

}  // namespace

std::span<const Verb> all_verbs() { return kVerbs; }

OptionTable global_options(GlobalOptions& to) {
    to.root = default_state_root();
    OptionTable table;
    table.add("--root", to.root, "DIR", "directory of the containers' states")
        .show_default()
        .gate(PathUse::state_root)
        .clear(to.root_is_default);
    table.flag("--debug", to.log.debug, "show each step with its time");
    table.add("--log", to.log.file, "FILE", "write messages to this file, errors also to standard error")
        .gate(PathUse::append);
    table.choice("--log-format", to.log.json, kLogFormats, "form of the messages");
    table.choice("--cgroup-manager", to.cgroup_manager, kCgroupManagers, "who makes the cgroup; disabled: nobody");
    table.flag("--systemd-cgroup", to.systemd_cgroup, "the same as --cgroup-manager systemd");
    table.choice("--rootless", to.rootless, kRootless,
                 "whether to do without a cgroup that cannot be made; auto: if the caller is not root");
    // Taken through the gate when that is opened, as a part of it.
    table.add("--policy", to.policy, "FILE",
              "forbid what this file forbids, besides what /etc/pinfold/policy.json does");
    table.add("--audit", to.audit, "FILE", "log what is done with containers to this file").gate(PathUse::entry);
    return table;
}

// Not one that a program is likely to end with: callers tell the two apart by it.
int failure_of(std::string_view words) {
    if (words == "exec") return 255;
    return words == "sandbox" || words == "wait" || words == "seccomp learn" ? 125 : 1;
}

void complete(CommandLine& line, std::string words, OptionTable global, OptionTable verb) {
    if (line.global.systemd_cgroup) line.global.cgroup_manager = CgroupManager::systemd;
    line.failure = failure_of(words);
    line.target = verb.id != nullptr ? *verb.id : "";
    line.title = line.target.empty() ? words : concat(words.substr(words.rfind(' ') + 1), ' ', quoted(line.target));
    line.words = std::move(words);
    for (Option& option : verb.options) {
        if (!option.may_be_inside) continue;
        // Which of the two sides of a copy is in a container shows in the words alone.
        const std::optional<PathInside> inside = inside_part(*std::get<std::string*>(option.value));
        if (inside) line.target = inside->id, option.path.reset();
    }
    line.verb = std::move(verb);
    line.verb.options.insert(line.verb.options.begin(), global.options.begin(), global.options.end());
}

bool parse_plain(int argc, char** argv, CommandLine& line) {
    Words words(argv + std::min(argc, 1), argv + argc);
    line.argv = argv;
    OptionTable global = global_options(line.global);
    std::string name;
    if (!take_options(global.options, words)) return false;
    const Verb* const verb = take_verb(kVerbs, words, name);
    if (verb == nullptr) return false;
    OptionTable table = verb->declare();
    if (!take_line(table, words)) return false;
    complete(line, std::move(name), std::move(global), std::move(table));
    return true;
}

std::optional<int> parse_arguments(int argc, char** argv, CommandLine& line) {
    const std::string_view only = argc == 2 ? argv[1] : "";
    if (only == "--version" || only == "-v") return print_version();
    if (parse_plain(argc, argv, line)) return std::nullopt;
    line = {};
    return explain_arguments(argc, argv, line);
}

}  // namespace pinfold
