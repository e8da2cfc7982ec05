// One job from its beginning to its end.
#include "sandbox/run_job.hpp"

#include <algorithm>
#include <chrono>

#include "cgroup/control_files.hpp"
#include "sandbox/audit_job.hpp"
#include "sandbox/classify.hpp"
#include "sandbox/prepare_job.hpp"
#include "sandbox/rlimit_fallback.hpp"
#include "sandbox/run_external.hpp"
#include "sandbox/supervise_job.hpp"
#include "sandbox/tracer.hpp"

namespace pinfold {

namespace {

// How long files may come out of a job that has ended, if its own time was not longer: what there is to copy is its
// choice.
constexpr std::chrono::nanoseconds kCopyPatience = std::chrono::minutes(1);

}  // namespace

Result<SandboxResult> run_prepared(const SandboxJob& job, PreparedJob& prepared, const SandboxSetting& setting,
                                   const OnStay& on_stay) {
    const Plan& plan = prepared.plan;
    const SignalForwarder signals = TRY(SignalForwarder::create());
    NetworkHelpers network;
    std::optional<Tracer> tracer;
    LaunchOptions options = launch_options(job, prepared, setting, network);
    if (setting.recorder != nullptr) {
        options.before_exec = [&](pid_t payload) -> Result<void> {
            tracer.emplace(TRY(Tracer::start(payload, *setting.recorder)));
            return {};
        };
    }
    SandboxResult result;
    int64_t let_go = monotonic_ns();
    options.on_receipt = [&result, &let_go, check_receipt = options.on_receipt](const Receipt& receipt) {
        result.receipt = receipt;
        let_go = monotonic_ns();  // right after it
        return check_receipt(receipt);
    };
    RunningContainer running = TRY(launch_job(job, prepared, options, signals));
    if (!on_stay) running.state->unlock();
    result.published = prepared.published;
    if (setting.on_published && !prepared.published.empty()) setting.on_published(prepared.published);
    TRY(prepared.streams.connect());  // not before: a pinfold that starts itself again would lose what was read
    if (plan.process.landlock) result.landlock_abi = plan.process.landlock->abi;
    const pid_t sandbox_init = running.child->pid();
    auto memory = MemoryWatch::create(plan.cgroup.place, sandbox_init, job.limits.memory_mb << 20);
    const std::vector<UniqueFd> disks =
        job.keep_files.empty() ? open_disks(sandbox_init, job) : std::vector<UniqueFd>();
    result.limits = read_back_limits(job, plan, sandbox_init, memory.has_value(), disks);  // the payload may have ended
    Denials denials = TRY(Denials::create(std::move(running.payload->listener), prepared.filter.program));
    const std::optional<std::chrono::nanoseconds>& timeout = plan.sandbox_init->deadline;
    if (!timeout)
        std::erase_if(result.limits, [](const EnforcedLimit& each) { return each.name == "timeout_seconds"; });
    if (timeout) TRY_IN("deadline", running.payload->link.send(Message::go));
    if (on_stay) {
        TRY(on_stay(running));
        running.keep();
        running.state->unlock();  // all that others look for is there
    }
    std::optional<PtyRelay> terminal;
    if (job.terminal) terminal.emplace(TRY(PtyRelay::create(std::move(running.master), STDIN_FILENO, STDOUT_FILENO)));
    const JobEnd end =
        TRY(supervise_job({running.child->pidfd.get(), &running.payload->link, plan.cgroup.place, signals,
                           prepared.streams, &denials, timeout, job.cpu_timeout, -1, memory ? &*memory : nullptr, -1,
                           let_go, bool(on_stay), terminal ? &*terminal : nullptr}));
    terminal.reset();                                    // the caller's is as it was
    read_group_again(plan.cgroup.place, result.limits);  // it may have been updated
    take_output(prepared.streams.output, result);
    result.denied = denials.take();
    const std::optional<bool> full = disks.empty() ? std::nullopt : std::optional(is_any_full(disks));
    std::optional<uint64_t> kills;  // unknown without a group
    if (plan.cgroup.place.exists()) kills = count_oom(plan.cgroup.place).kills;
    classify(end, {measure_usage(plan.cgroup.place), kills, job.cpu_timeout, full}, result);
    if (std::string hint = denials.hint(end.ended_at, end.wall); result.exit_code != 0 && !hint.empty())
        result.hint = std::move(hint);
    keep_receipt(job.receipt, result);
    const UniqueFd interrupt = TRY(open_end_signals());
    result.copy_failures = prepared.transfers.copy_out(
        prepared.inside,
        {monotonic_ns() + std::max(timeout.value_or(kCopyPatience), kCopyPatience).count(), interrupt.get()});
    return result;
}

namespace {

Result<SandboxResult> run(const SandboxJob& job, const SandboxSetting& setting) {
    PreparedJob prepared = TRY(prepare_job(job, setting));
    Result<SandboxResult> result = run_prepared(job, prepared, setting);
    log_result(prepared.audit, prepared.plan.id, result);
    return result;
}

}  // namespace

SandboxResult run_job(const SandboxJob& wanted, const SandboxSetting& setting) {
    const Result<SandboxJob> job = with_name(wanted);
    if (!job) return failed_result(job.error());
    Result<SandboxResult> result = job->runtime.empty() ? run(*job, setting) : run_external(*job, setting);
    if (!result) log_refusal(result.error(), job->name, setting.policies, setting.audit, setting.words);
    return result ? std::move(result).value() : failed_result(result.error());
}

}  // namespace pinfold
