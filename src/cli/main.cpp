// pinfold: reads a bundle's config.json, sets up the isolation it asks for, and becomes its payload's parent.
// The way of one container: main, then kVerbs of parse_arguments.cpp, verb_run, and in it plan_container (parse_config,
// make_plan, decide_ending) and run_container: launch_once, take_all_steps, clone_child, run_child, become_payload, and
// execve, mostly by way of the trampoline.
#include <signal.h>

#include <cstdlib>

#include "audit/log.hpp"
#include "base/log.hpp"
#include "base/process.hpp"
#include "base/strings.hpp"
#include "cgroup/v2.hpp"
#include "cli/begin.hpp"
#include "cli/parse_arguments.hpp"
#include "cli/result_file.hpp"
#include "policy/verbs.hpp"
#include "sandbox/build_config.hpp"
#include "sandbox/classify.hpp"
#include "state/store.hpp"

namespace pinfold {

namespace {

// Whoever has come by sudo(8) has no business with what was not made by `sandbox` in the same way, and none without
// groups.
Result<void> check_bound_caller(const CommandLine& line) {
    const GlobalOptions& global = line.global;
    if (global.cgroup_manager == CgroupManager::disabled || global.rootless.value_or(false)) {
        return Error{kPolicyRefusal, "policy: limits are held by cgroups", "leave out --cgroup-manager and --rootless"};
    }
    if (line.target.empty()) return {};
    const ContainerState state = TRY(load_state(global.root, line.target));
    if (!state.record.annotations.contains(kSandboxAnnotation))
        return Error{kPolicyRefusal, concat("policy: container ", quoted(line.target), " is no sandbox"), {}};
    // What root has shown to its own is not for them.
    if (state.record.annotations.contains(kBoundAnnotation)) return {};
    return Error{kPolicyRefusal, concat("policy: sandbox ", quoted(line.target), " is root's own"), {}};
}

Result<void> take_through(Gate& gate, CommandLine& line) {
    TRY(gate.add(line.global.policy));
    if (!line.words.empty()) TRY(gate.check_verb());  // none: there is only an error to be told
    for (const Option& option : line.verb.options) {
        // The default root was not named by the caller.
        if (!option.path || (option.path == PathUse::state_root && line.global.root_is_default)) continue;
        TRY(gate.admit(std::string(option.name()), *option.path, *std::get<std::string*>(option.value)));
    }
    if (!gate.binds_caller()) return {};
    // Programs that help, such as ps(1) and pasta(1), are looked for where the system has its own.
    ::setenv("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", 1);
    return check_bound_caller(line);
}

// The gate that all of the line has passed. Names in the line are from then on those of opened files.
Result<Gate> admit(CommandLine& line) {
    Gate gate = TRY(Gate::open(line.words));
    // Before anything is locked or logged: what follows is not the caller's to freeze or to kill.
    if (gate.binds_caller()) TRY_IN("policy", leave_delegated_group());
    const Result<void> taken = take_through(gate, line);
    if (taken) return gate;
    // Logged where the policies say; where the caller says is not sure to be allowed.
    log_refusal(taken.error(), line.target, gate.policies(), "", callers_words(gate));
    return taken.error();
}

// Whether the caller, root or an engine, may name what it likes, whatever the policy says of the verb.
bool is_free(const CommandLine& line) { return !has_borrowed_rights() && is_engine_verb(line.words); }

Result<int> carry_out(const CommandLine& line) {
    if (line.verb.result != nullptr) {
        *line.result_file = TRY(ResultFile::open(*line.verb.result));
        line.result_file->remove_earlier();
    }
    return line.verb.call(line);
}

// Where the line as a whole was refused, --result alone may still be allowed. --policy may be what is wrong.
Result<ResultFile> open_result_alone(const CommandLine& line, std::string path) {
    Gate gate = TRY(Gate::open(line.words));
    [[maybe_unused]] const Result<void> added = gate.add(line.global.policy);
    TRY(gate.check_verb());
    TRY(gate.admit("--result", PathUse::entry, path));
    return ResultFile::open(path);
}

// Whoever reads the file would take the result of an earlier job for this one's.
void write_failure(const CommandLine& line, const std::string& path, const Error& error) {
    ResultFile& file = *line.result_file;
    if (path.empty() || file.was_written()) return;
    if (!file.is_open()) {
        Result<ResultFile> alone = open_result_alone(line, path);
        if (!alone) return;  // the error is about that, or a policy forbids it
        file = std::move(*alone);
    }
    const Result<void> written = file.write(to_json(failed_result(error)));
    if (!written) log_warning(concat("--result: ", written.error().message));
}

constexpr int kNotSetUp = 125;

// The one place where a failure is told: in the audit log, if it is a refusal, to the reader of the result, to the log
// and the terminal, by the exit code.
int fail(const CommandLine& line, const std::string& result, Error error) {
    if (line.gate != nullptr) {
        error.message = line.gate->in_callers_words(std::move(error.message));
        log_refusal(error, line.target, line.gate->policies(), line.global.audit);
    }
    write_failure(line, result, error);
    // Of a sandbox, callers tell a program that is not there from a sandbox that could not be set up.
    const int code = line.failure == kNotSetUp ? program_failure(error.message).value_or(kNotSetUp) : line.failure;
    log_error(line.title.empty() ? error : std::move(error).within(line.title));
    return code;
}

}  // namespace

}  // namespace pinfold

int main(int argc, char** argv) {
    using namespace pinfold;
    if (const Result<void> filled = fill_standard_streams(); !filled) {
        log_error(filled.error());
        return 1;
    }
    // A parent that ignores SIGCHLD has left us a kernel that reaps our children, exit status and all.
    ::signal(SIGCHLD, SIG_DFL);
    // What is larger than a file may be (RLIMIT_FSIZE) is an error of write(), which can be told.
    ::signal(SIGXFSZ, SIG_IGN);
    CommandLine line;
    if (const std::optional<int> exit_code = parse_arguments(argc, argv, line)) return *exit_code;

    ResultFile file;
    line.result_file = &file;
    const std::string named_result = line.verb.result != nullptr ? *line.verb.result : "";  // before the gate opens it
    if (!named_result.empty()) remove_earlier_result(named_result);
    Result<Gate> gate = admit(line);
    line.gate = gate ? &*gate : nullptr;
    // A log that did not get through is not written to, not even with the reason why.
    Result<void> opened = gate || is_free(line) ? open_log(line.global.log) : Result<void>();
    Result<int> result = !opened ? Result<int>(std::move(opened).error())
                         : gate  ? carry_out(line)
                                 : Result<int>(std::move(gate).error());
    return result ? *result : fail(line, named_result, std::move(result).error());
}
