// pinfold sandbox: from options to a job, and from its result to an exit code.
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "base/address.hpp"
#include "base/log.hpp"
#include "base/strings.hpp"
#include "base/units.hpp"
#include "cli/begin.hpp"
#include "cli/environment.hpp"
#include "cli/limits.hpp"
#include "cli/make_job.hpp"
#include "cli/result_file.hpp"
#include "cli/verbs.hpp"
#include "json/json.hpp"
#include "sandbox/detached.hpp"
#include "sandbox/languages.hpp"
#include "sandbox/publish.hpp"
#include "sandbox/run_job.hpp"

namespace pinfold {

namespace {

// "SRC:DST" at the last colon; without one both are the same, where that is possible.
Result<FileCopy> parse_pair(std::string_view option, const std::string& text, bool may_be_one) {
    const size_t colon = text.rfind(':');
    if (colon == std::string::npos && may_be_one) return FileCopy{text, text};
    if (colon == std::string::npos || colon == 0 || colon + 1 == text.size())
        return plain_error(concat(option, ' ', quoted(text), ": expected SRC:DST"));
    return FileCopy{text.substr(0, colon), text.substr(colon + 1)};
}

Result<void> add_pairs(const SandboxOptions& options, SandboxJob& job) {
    for (const std::string& text : options.binds) {
        const FileCopy pair = TRY(parse_pair("--bind", text, true));
        job.binds.push_back({pair.source, pair.destination, true});
    }
    for (const std::string& text : options.readonly_binds) {
        const FileCopy pair = TRY(parse_pair("--ro-bind", text, true));
        job.binds.push_back({pair.source, pair.destination, false});
    }
    for (const std::string& text : options.copies_in) job.copy_in.push_back(TRY(parse_pair("--copy-in", text, false)));
    for (const std::string& text : options.copies_out) {
        job.copy_out.push_back(TRY(parse_pair("--copy-out", text, false)));
    }
    for (const std::string& text : options.secrets) {
        const size_t equals = text.find('=');
        if (equals == 0 || equals == text.npos || equals + 1 == text.size())
            return plain_error(concat("--secret ", quoted(text), ": expected NAME=FILE"));
        job.secrets.push_back({text.substr(0, equals), text.substr(equals + 1)});
    }
    return {};
}

// The first word is the script's file; the others are its arguments.
Result<void> take_script(const std::string& name, const Gate& gate, SandboxJob& job) {
    const Language language = TRY(find_language(name));
    if (job.command.empty()) return plain_error("--lang: name the script's file, or - for standard input");
    const std::string& file = job.command[0];
    const UniqueFd opened = TRY_IN("--lang", gate.open_to_read(file));
    job.script = TRY_IN("--lang", read_document_or_input(opened ? concat("/proc/self/fd/", opened.get()) : file));
    job.script_name = script_name(language, file);
    job.command = script_command(language, job.script_name, {job.command.begin() + 1, job.command.end()});
    return {};
}

Result<std::chrono::nanoseconds> parse_time(std::string_view option, const std::string& text) {
    const std::optional<std::chrono::nanoseconds> time = parse_duration(text);
    if (time && time->count() > 0) return *time;
    return plain_error(concat(option, ' ', quoted(text), ": expected a time, as in 10s"));
}

// A sandbox that stays has no deadline unless one is given.
Result<void> take_stay(const SandboxOptions& options, SandboxJob& job) {
    if (!options.idle_timeout.empty()) job.idle_timeout = TRY(parse_time("--idle-timeout", options.idle_timeout));
    if (!options.detach) {
        if (job.idle_timeout) return plain_error("--idle-timeout is for a sandbox that stays: --detach");
        return {};
    }
    if (options.capture || options.tee || options.verbose || !options.result.empty() || !options.copies_out.empty()) {
        return plain_error("--detach: nobody stays for --result, --capture, --tee, --verbose and --copy-out")
            .with_hint("use wait --result, logs, state and cp on the sandbox");
    }
    if (!options.runtime.empty()) return plain_error("--detach: a sandbox that stays cannot be had with --runtime");
    if (!options.limits.timeout.empty()) job.lifetime = TRY(parse_time("--timeout", options.limits.timeout));
    return {};
}

// What cannot be had together with a terminal, which has one stream and one reader; empty: nothing.
const char* excludes_terminal(const SandboxOptions& options) {
    const std::pair<bool, const char*> others[] = {
        {options.detach, "--detach"},
        {options.capture || options.result == "-", "--capture"},
        {options.pass_stdin, "--stdin"},
        {!options.output_limit.empty(), "--output-limit"},
        {options.merge_output, "--merge-output"},
        {!options.runtime.empty(), "--runtime"},
        {!options.language.empty() && !options.args.empty() && options.args[0] == "-", "a script on standard input"}};
    for (const auto& [asked, option] : others) {
        if (asked) return option;
    }
    return "";
}

// One of its own, if somebody sits in front of both ends, or asks for it.
Result<void> take_terminal(const SandboxOptions& options, SandboxJob& job) {
    const std::string_view other = excludes_terminal(options);
    const bool is_there = ::isatty(STDIN_FILENO) != 0 && ::isatty(STDOUT_FILENO) != 0;
    if (options.terminal && options.no_terminal) return plain_error("--tty and --no-tty exclude each other");
    if (options.terminal && !other.empty()) return plain_error(concat("--tty and ", other, " exclude each other"));
    if (options.terminal && ::isatty(STDIN_FILENO) == 0)
        return plain_error("--tty: standard input is no terminal").with_hint("leave it out, or use --stdin");
    job.terminal = options.terminal || (is_there && other.empty() && !options.no_terminal);
    const auto is_set = [](const std::string& one) { return one.starts_with("TERM="); };
    const char* const kind = std::getenv("TERM");
    if (job.terminal && kind != nullptr && std::ranges::none_of(job.env, is_set))
        job.env.push_back(concat("TERM=", kind));
    return {};
}

void tell_published(const std::vector<PublishedPort>& ports) {
    for (const PublishedPort& port : ports)
        log_notice(concat("published: ", address_text(port.address, port.host), " leads to port ", port.inside));
}

// A sandbox whose name could not be told is nobody's. A reader that has gone is an error like others, not a signal.
Result<int> start_and_tell(const SandboxJob& job, const SandboxSetting& setting, const CommandLine& line) {
    const Result<std::string> started = start_sandbox(job, setting);
    if (!started) return Error{0, started.error().message, started.error().hint};  // as a refusal it is in the log
    const std::string& id = *started;
    ::signal(SIGPIPE, SIG_IGN);
    Result<void> told = print(id + "\n");
    if (told) return 0;
    const Result<int> removed = audited(line, {"delete", id, "", {{"force", "true"}}}, [&]() -> Result<int> {
        TRY(remove_sandbox(setting.state_root, id));
        return 0;
    });
    if (!removed) log_warning(concat("sandbox ", quoted(id), " is left: ", removed.error().message));
    return std::move(told).error();
}

}  // namespace

SandboxSetting setting_of(const CommandLine& line) {
    return {.state_root = line.global.root,
            .cgroup_manager = line.global.cgroup_manager,
            .policies = line.gate->policies(),
            .audit = line.global.audit,
            .words = callers_words(*line.gate),
            .argv = line.argv,
            .bound = line.gate->binds_caller()};
}

Result<SandboxJob> make_job(const SandboxOptions& options, const Gate& gate) {
    SandboxJob job;
    const WantedLimits wanted = TRY(resolve_limits(options.limits));
    job.limits = wanted.limits;
    job.network = wanted.network;
    job.command = options.args;
    if (!options.language.empty()) TRY(take_script(options.language, gate, job));
    if (job.command.empty() && options.bundle.empty() && !options.detach)
        return plain_error("nothing to run: name a program after --, or a script with --lang");
    job.rootfs = options.rootfs;
    job.bundle = options.bundle;
    job.root_template = options.root_template;
    TRY(add_pairs(options, job));
    job.outward_links = options.outward_links;
    job.env = TRY(read_environment(options.env_file, options.env));
    job.cwd = options.cwd;
    job.user = options.user;
    job.seccomp = options.seccomp;
    job.writable_root = options.writable_root;
    job.scratch = options.scratch;
    job.keep_files = options.keep_files;
    job.require_cgroup = options.require_cgroup;
    job.must_hold = wanted.asked;
    job.allow_unenforced = options.allow_unenforced;
    job.receipt = options.receipt;
    job.strict = options.strict;
    job.landlock = options.landlock;
    job.tcp_bind = options.tcp_bind;
    job.tcp_connect = options.tcp_connect;
    for (const std::string& text : options.publish) job.publish.push_back(TRY(parse_publish(text)));
    job.runtime = options.runtime;
    job.name = options.name;
    TRY(take_stay(options, job));
    job.capture = options.capture || options.result == "-";
    job.tee = options.tee;
    job.merge_output = options.merge_output;
    if (options.pass_stdin) job.input = STDIN_FILENO;
    if (!options.cpu_timeout.empty()) job.cpu_timeout = TRY(parse_time("--cpu-timeout", options.cpu_timeout));
    job.output_limit = TRY(output_limit(options.output_limit, job.capture));
    return job;
}

Result<int> verb_sandbox(const SandboxOptions& options, const CommandLine& line) {
    if (options.language == kListLanguages) return list_languages(options, line);
    SandboxJob job = TRY(make_job(options, *line.gate));
    TRY(take_terminal(options, job));
    TRY(check_capture(options.capture, options.tee, options.result));
    if (!options.detach) TRY(check_receipt(options.receipt, options.result));  // there it is kept for wait --result
    SandboxSetting setting = setting_of(line);
    if (options.verbose) setting.on_published = tell_published;
    if (options.detach) return start_and_tell(job, setting, line);
    return conclude(run_job(job, setting), line, options.verbose);
}

Result<int> verb_prune(const PruneOptions& options, const CommandLine& line) {
    const std::string& root = line.global.root;
    if (line.global.root_is_default && ::access(root.c_str(), F_OK) != 0) return 0;  // there never was a container
    std::chrono::nanoseconds age{};
    if (!options.older_than.empty()) age = TRY(parse_time("--older-than", options.older_than));
    const AuditTrail trail = options.dry_run ? AuditTrail() : TRY(open_audit(line));
    const WhatToPrune what{age, line.gate->binds_caller()};
    const auto names = options.dry_run ? sandboxes_to_prune(root, what) : prune_sandboxes(root, trail, what);
    for (const std::string& id : TRY(names)) TRY(print(id + "\n"));
    return 0;
}

}  // namespace pinfold
