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
#include "sandbox/kept_files.hpp"
#include "sandbox/languages.hpp"
#include "sandbox/monitor.hpp"
#include "sandbox/publish.hpp"
#include "sandbox/result_json.hpp"
#include "sandbox/run_job.hpp"
#include "sandbox/session.hpp"
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
    if (!limits.session.empty()) TRY(check_session(limits.session));
    overrides.process.args =
        limits.session.empty() ? std::move(command) : session_command({limits.session, std::move(command)});
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
    SandboxResult result = run_exec_job(
        plan, found.state, child,
        {limits.timeout,
         {.input = limits.input, .capture = true, .merge = limits.merge_output, .output_limit = limits.output_limit},
         on_receipt,
         limits.receipt});
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

// Work on the files of a sandbox, at a path of its own; the answer is for read_file alone. The caller's memory is "-".
template <class Work>
Result<std::string> with_files(const std::string& name, const RunnerOptions& options, const std::string& path,
                               const FileCopy& copied, const Work& work) {
    return in_worker([&]() -> Result<std::string> {
        const SandboxSetting setting = TRY(setting_of(options));
        const AuditEvent event{
            "copy", name, "", {{"source", json_quoted(copied.source)}, {"target", json_quoted(copied.destination)}}};
        return audited(setting, event, [&]() -> Result<std::string> {
            const Policies policies = for_sandboxes(setting.policies, setting.state_root, setting.audit);
            return work(TRY(files_of(setting.state_root, name, path, policies)), setting);
        });
    });
}

Result<void> without_answer(Result<std::string> answer) {
    if (!answer) return std::move(answer).error();
    return {};
}

Result<void> transfer(const std::string& name, const RunnerOptions& options, const std::string& path,
                      const FileCopy& copied, const SandboxJob& job,
                      Result<void> (*copy)(const Transfers&, const InsideOf&)) {
    const auto work = [&](const InsideOf& inside, const SandboxSetting& setting) -> Result<std::string> {
        const Transfers transfers =
            TRY(Transfers::open(job, for_sandboxes(setting.policies, setting.state_root, setting.audit)));
        TRY(copy(transfers, inside));
        return std::string();
    };
    return without_answer(with_files(name, options, path, copied, work));
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
    job.script_name = known->file;
    job.command = script_command(*known, job.script_name, {});
    job.script = std::move(code);
    return run_command({}, std::move(job));
}

Result<Sandbox> Sandbox::start(SandboxJob job, RunnerOptions options) {
    const auto start_it = [&](int answer) -> Result<std::string> {
        SandboxSetting setting = TRY(setting_of(options));
        setting.answer = answer;
        return start_sandbox(job, setting);
    };
    std::string name = TRY(in_clean_worker(start_it));
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

SandboxResult Sandbox::wait() const {
    return result_of(in_worker([&]() -> Result<std::string> {
        const SandboxSetting setting = TRY(setting_of(options_));
        SandboxEnd end = TRY(await_sandbox(setting.state_root, name_, true));
        return to_wire(std::move(end.result));
    }));
}

Result<std::vector<PublishedPort>> Sandbox::published() const {
    const auto read = [&]() -> Result<std::string> {
        const SandboxSetting setting = TRY(setting_of(options_));
        const ContainerState state = TRY(load_state(setting.state_root, name_));
        const auto found = state.record.annotations.find(kPublishedAnnotation);
        return found == state.record.annotations.end() ? std::string() : found->second;
    };
    const std::string annotation = TRY(in_worker(read));
    return annotation.empty() ? std::vector<PublishedPort>() : TRY(parse_published(annotation));
}

Result<Sandbox::Output> Sandbox::output() const {
    const auto read = [&]() -> Result<std::string> {
        const SandboxSetting setting = TRY(setting_of(options_));
        SandboxResult printed;
        TRY(show_output(setting.state_root, name_, false, [&](size_t stream, std::string_view bytes) -> Result<void> {
            (stream == 0 ? printed.out : printed.err) += bytes;
            return {};
        }));
        return to_wire(std::move(printed));
    };
    const std::string wire = TRY(in_worker(read));
    SandboxResult printed = TRY(from_wire(wire));
    return Output{std::move(printed.out), std::move(printed.err)};
}

Result<void> Sandbox::stop(std::chrono::nanoseconds time) const {
    return without_answer(in_worker([&]() -> Result<std::string> {
        const SandboxSetting setting = TRY(setting_of(options_));
        return audited(setting, {"stop", name_, "", {}}, [&]() -> Result<std::string> {
            TRY(stop_sandbox(setting.state_root, name_, time));
            return std::string();
        });
    }));
}

Result<void> Sandbox::restart() const {
    return without_answer(in_clean_worker([&](int answer) -> Result<std::string> {
        SandboxSetting setting = TRY(setting_of(options_));
        setting.answer = answer;
        return audited(setting, {"start", name_, "", {}}, [&]() -> Result<std::string> {
            TRY(restart_sandbox(setting, name_));
            return std::string();
        });
    }));
}

Result<std::string> Sandbox::read_file(const std::string& path, uint64_t max) const {
    return with_files(name_, options_, path, {concat(name_, ':', path), "-"},
                      [&](const InsideOf& inside, const SandboxSetting&) { return read_inside(inside, path, max); });
}

Result<void> Sandbox::write_file(const std::string& path, std::string_view bytes, unsigned mode) const {
    return without_answer(with_files(name_, options_, path, {"-", concat(name_, ':', path)},
                                     [&](const InsideOf& inside, const SandboxSetting&) -> Result<std::string> {
                                         TRY(write_inside(inside, path, bytes, mode));
                                         return std::string();
                                     }));
}

Result<void> Sandbox::copy_to(const std::string& host_path, const std::string& path) const {
    SandboxJob job;
    job.copy_in = {{host_path, path}};
    return transfer(name_, options_, path, {host_path, concat(name_, ':', path)}, job,
                    [](const Transfers& transfers, const InsideOf& inside) { return transfers.copy_in(inside); });
}

Result<void> Sandbox::copy_from(const std::string& path, const std::string& host_path) const {
    SandboxJob job;
    job.copy_out = {{path, host_path}};
    return transfer(name_, options_, path, {concat(name_, ':', path), host_path}, job,
                    [](const Transfers& transfers, const InsideOf& inside) -> Result<void> {
                        const std::vector<CopyFailure> failures = transfers.copy_out(inside);
                        if (failures.empty()) return {};
                        return Error{0, failures.front().error, failures.front().hint};
                    });
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
