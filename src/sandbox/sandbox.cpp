// SandboxRunner and Sandbox: what a C++ program sees of all this.
#include "pinfold/sandbox.hpp"

#include <unistd.h>

#include "base/sha256.hpp"
#include "base/strings.hpp"
#include "files/copy.hpp"
#include "json/json.hpp"
#include "sandbox/audit_job.hpp"
#include "sandbox/classify.hpp"
#include "sandbox/detached.hpp"
#include "sandbox/exec_job.hpp"
#include "sandbox/languages.hpp"
#include "sandbox/result_json.hpp"
#include "sandbox/run_job.hpp"
#include "sandbox/transfer.hpp"
#include "sandbox/worker.hpp"
#include "spec/parse.hpp"
#include "state/lifecycle.hpp"

namespace pinfold {

namespace {

Result<SandboxSetting> setting_of(const RunnerOptions& options) {
    return SandboxSetting{.state_root = options.state_root.empty() ? default_state_root() : options.state_root,
                          .policies = TRY(load_policies(options.policy)),
                          .audit = options.audit};
}

SandboxResult result_of(const Result<std::string>& answer) {
    if (!answer) return failed_result(answer.error());
    Result<SandboxResult> result = from_wire(*answer);
    return result ? std::move(result).value() : failed_result(result.error());
}

// A container that runs, with its configuration.
struct Found {
    ContainerState state;
    std::string config;
    Spec spec;
};

Result<Found> find(const std::string& root, const std::string& name, Operation operation) {
    ContainerState state = TRY(load_state(root, name));
    TRY(check_operation(operation, state));
    std::string config = TRY(load_config_text(root, name));
    Spec spec = TRY(parse_checked_config(config));
    mark_use(root, name);
    return Found{std::move(state), std::move(config), std::move(spec)};
}

Result<SandboxResult> exec_here(const std::string& name, const SandboxSetting& setting,
                                std::vector<std::string> command, const ExecLimits& limits) {
    Found found = TRY(find(setting.state_root, name, Operation::exec));
    ExecOverrides overrides{*found.spec.process, "", 0};
    overrides.process.args = std::move(command);
    const HostFacts facts = TRY(gather_host_facts());
    const AuditTrail trail = TRY(open_trail(setting.policies, setting.audit));
    const AuditEvent event{
        "exec",
        name,
        to_hex(sha256(found.config)),
        {{"args", json_list(overrides.process.args)}, {"user", std::to_string(overrides.process.user.uid)}}};
    const ExecPlan plan = TRY(plan_exec(std::move(found.spec), name, overrides, facts));
    const ChildOptions child{.seccomp_cache = concat(setting.state_root, "/.seccomp")};
    TRY(trail.append(event));
    const auto on_receipt = [&](const Receipt& receipt) {
        if (trail.is_on()) append_or_warn(trail, receipt_event(name, receipt));
        return require(receipt);
    };
    SandboxResult result = run_exec_job(plan, found.state, child,
                                        {limits.timeout, {limits.input, true, limits.output_limit, {}}, on_receipt});
    log_result(trail, name, result, Ended::exec);
    return result;
}

// In the log before it begins, or it does not begin.
template <class Work>
Result<std::string> audited(const SandboxSetting& setting, const AuditEvent& event, const Work& work) {
    const AuditTrail trail = TRY(open_trail(setting.policies, setting.audit));
    TRY(trail.append(event));
    Result<std::string> done = work();
    if (done) return done;
    append_failure(trail, event, done.error());
    log_refusal(done.error(), event.id, setting.policies, setting.audit);
    return done;
}

// Work on the files of a sandbox; the answer is for read_file alone. The caller's memory is "-".
template <class Work>
Result<std::string> with_files(const std::string& name, const RunnerOptions& options, const FileCopy& copied,
                               const Work& work) {
    return in_worker([&]() -> Result<std::string> {
        const SandboxSetting setting = TRY(setting_of(options));
        const AuditEvent event{
            "copy", name, "", {{"source", json_quoted(copied.source)}, {"target", json_quoted(copied.destination)}}};
        return audited(setting, event, [&]() -> Result<std::string> {
            const Found found = TRY(find(setting.state_root, name, Operation::copy));
            return work(inside_of(found.state, found.spec), setting);
        });
    });
}

Result<void> without_answer(Result<std::string> answer) {
    if (!answer) return std::move(answer).error();
    return {};
}

Result<void> transfer(const std::string& name, const RunnerOptions& options, const FileCopy& copied,
                      const SandboxJob& job, Result<void> (Transfers::*copy)(const InsideOf&) const) {
    const auto work = [&](const InsideOf& inside, const SandboxSetting& setting) -> Result<std::string> {
        const Transfers transfers = TRY(Transfers::open(job, with_state_root(setting.policies, setting.state_root)));
        TRY((transfers.*copy)(inside));
        return std::string();
    };
    return without_answer(with_files(name, options, copied, work));
}

}  // namespace

SandboxResult SandboxRunner::run_command(std::vector<std::string> command, SandboxJob job) const {
    if (!command.empty()) job.command = std::move(command);
    job.capture = true;
    return result_of(in_worker([&]() -> Result<std::string> {
        const SandboxSetting setting = TRY(setting_of(options_));
        return to_wire(run_job(job, setting));
    }));
}

SandboxResult SandboxRunner::run_code(const std::string& language, std::string code, SandboxJob job) const {
    const Result<Language> known = find_language(language);
    if (!known) return failed_result(known.error());
    job.command = script_command(*known, {});
    job.script_name = known->file;
    job.script = std::move(code);
    return run_command({}, std::move(job));
}

Result<Sandbox> Sandbox::start(SandboxJob job, RunnerOptions options) {
    const auto start_it = [&]() -> Result<std::string> {
        const SandboxSetting setting = TRY(setting_of(options));
        return start_sandbox(job, setting);
    };
    std::string name = TRY(in_worker(start_it));
    return Sandbox(std::move(name), std::move(options));
}

Sandbox::Sandbox(Sandbox&& other) noexcept
    : name_(std::exchange(other.name_, {})), options_(std::move(other.options_)) {}

Sandbox::~Sandbox() {
    // Nobody is there to be told; prune finds what was left.
    [[maybe_unused]] const Result<void> removed = cleanup();
}

SandboxResult Sandbox::exec(std::vector<std::string> command, const ExecLimits& limits) const {
    return result_of(in_worker([&]() -> Result<std::string> {
        const SandboxSetting setting = TRY(setting_of(options_));
        SandboxResult result = TRY(exec_here(name_, setting, std::move(command), limits));
        return to_wire(std::move(result));
    }));
}

Result<std::string> Sandbox::read_file(const std::string& path, uint64_t max) const {
    return with_files(name_, options_, {concat(name_, ':', path), "-"},
                      [&](const InsideOf& inside, const SandboxSetting&) { return read_inside(inside, path, max); });
}

Result<void> Sandbox::write_file(const std::string& path, std::string_view bytes, unsigned mode) const {
    return without_answer(with_files(name_, options_, {"-", concat(name_, ':', path)},
                                     [&](const InsideOf& inside, const SandboxSetting&) -> Result<std::string> {
                                         TRY(write_inside(inside, path, bytes, mode));
                                         return std::string();
                                     }));
}

Result<void> Sandbox::copy_to(const std::string& host_path, const std::string& path) const {
    SandboxJob job;
    job.copy_in = {{host_path, path}};
    return transfer(name_, options_, {host_path, concat(name_, ':', path)}, job, &Transfers::copy_in);
}

Result<void> Sandbox::copy_from(const std::string& path, const std::string& host_path) const {
    SandboxJob job;
    job.copy_out = {{path, host_path}};
    return transfer(name_, options_, {concat(name_, ':', path), host_path}, job, &Transfers::copy_out);
}

Result<void> Sandbox::cleanup() {
    if (name_.empty()) return {};
    const std::string name = std::exchange(name_, {});
    return without_answer(in_worker([&]() -> Result<std::string> {
        const SandboxSetting setting = TRY(setting_of(options_));
        const AuditEvent event{"delete", name, "", {{"force", "true"}}};
        return audited(setting, event, [&]() -> Result<std::string> {
            TRY(remove_sandbox(setting.state_root, name));
            return std::string();
        });
    }));
}

}  // namespace pinfold
