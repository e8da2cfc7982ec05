// One job from its beginning to its end.
#include "sandbox/run_job.hpp"

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

// A job that was killed has no sandbox init any more, and with it its files are gone.
void copy_out(const PreparedJob& prepared, const JobEnd& end, pid_t sandbox_init, SandboxResult& result) {
    if (!end.payload) return;
    const Result<void> copied = [&]() -> Result<void> {
        const InsideOf inside = TRY(inside_of_sandbox_init(sandbox_init, prepared.plan));
        return prepared.transfers.copy_out(inside);
    }();
    if (copied) return;
    result.error = copied.error().message;
    result.hint = copied.error().hint;
}

Result<SandboxResult> run_prepared(const SandboxJob& job, PreparedJob& prepared, const SandboxSetting& setting) {
    const Plan& plan = prepared.plan;
    const SignalForwarder signals = TRY(SignalForwarder::create());
    std::optional<Pasta> network;
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
    RunningContainer running = TRY(launch_container(container_of(prepared), options, signals));
    running.state->unlock();
    TRY(prepared.streams.connect());  // not before: a pinfold that starts itself again would lose what was read
    if (plan.process.landlock) result.landlock_abi = plan.process.landlock->abi;
    const pid_t sandbox_init = running.child->pid();
    auto memory = MemoryWatch::create(plan.cgroup.place, sandbox_init, job.limits.memory_mb << 20);
    result.limits = read_back_limits(job, plan, sandbox_init, memory.has_value());  // the payload may have ended
    Denials denials = TRY(Denials::create(std::move(running.payload->listener), prepared.filter.program));
    TRY_IN("deadline", running.payload->link.send(Message::go));
    const JobEnd end = TRY(
        supervise_job({running.child->pidfd.get(), &running.payload->link, plan.cgroup.place, signals, prepared.streams,
                       &denials, timeout_of(job), job.cpu_timeout, -1, memory ? &*memory : nullptr, -1, let_go}));
    take_output(prepared.streams.output, result);
    result.denied = denials.take();
    classify(end, {measure_usage(plan.cgroup.place), count_oom(plan.cgroup.place).kills, job.cpu_timeout}, result);
    copy_out(prepared, end, sandbox_init, result);
    return result;
}

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
