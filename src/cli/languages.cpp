// pinfold sandbox --lang list: what is there is what a sandbox can execute, so each interpreter is asked in one of its
// own. Nothing of another root is ever executed outside.
#include "sandbox/languages.hpp"
#include "base/strings.hpp"
#include "cli/make_job.hpp"
#include "cli/verbs.hpp"
#include "sandbox/result_json.hpp"
#include "sandbox/run_job.hpp"
#include "sandbox/worker.hpp"

namespace pinfold {

namespace {

constexpr int kNotFound = 127;
constexpr int kNotExecutable = 126;

Result<void> check_options(const SandboxOptions& options) {
    if (!options.args.empty())
        return plain_error(concat("--lang list takes no script: found ", quoted(options.args[0])));
    if (options.detach || options.terminal || !options.result.empty())
        return plain_error("--lang list prints a list: it excludes --detach, --tty and --result");
    return {};
}

void ask_for_version(const Language& language, SandboxJob& job) {
    const bool by_script = language.version_command.empty();
    job.command = script_command(language, std::string(language.file), {});
    if (by_script) {
        job.script_name = language.file;
        job.script = language.version_script;
        return;
    }
    const std::vector<std::string_view> words = split(language.version_command, ' ');
    job.command.assign(words.begin(), words.end());
}

// A job is run by a process of its own.
Result<SandboxResult> run_apart(const SandboxJob& job, const SandboxSetting& setting) {
    const std::string wire = TRY(in_worker([&]() -> Result<std::string> { return to_wire(run_job(job, setting)); }));
    return from_wire(wire);
}

}  // namespace

Result<int> list_languages(const SandboxOptions& options, const CommandLine& line) {
    TRY(check_options(options));
    SandboxOptions wanted = options;
    wanted.language.clear();
    wanted.args = {"list"};  // for want of a program; each language puts its own there
    SandboxJob job = TRY(make_job(wanted, *line.gate));
    job.capture = true;
    SandboxSetting setting = setting_of(line);
    setting.argv = nullptr;  // this program is not started again for each
    std::vector<std::vector<std::string>> rows = {{"LANGUAGE", "PROGRAM", "VERSION"}};
    for (const Language& language : all_languages()) {
        SandboxJob one = job;
        ask_for_version(language, one);
        const SandboxResult result = TRY(run_apart(one, setting));
        const bool missing = result.exit_code == kNotFound || result.exit_code == kNotExecutable;
        if (result.status == SandboxStatus::setup_failed && !missing) return Error{0, result.error, result.hint};
        if (result.status == SandboxStatus::setup_failed) continue;
        const std::string version = version_in(concat(result.out, '\n', result.err));
        rows.push_back({std::string(language.name), one.command[0], version.empty() ? "-" : version});
    }
    TRY(print(in_columns(rows)));
    return 0;
}

}  // namespace pinfold
