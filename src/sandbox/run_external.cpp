// One job from its beginning to its end, by another OCI runtime.
#include "sandbox/run_external.hpp"

#include "base/strings.hpp"
#include "cgroup/control_files.hpp"
#include "pinfold/generate.hpp"
#include "policy/check_request.hpp"
#include "sandbox/audit_job.hpp"
#include "sandbox/classify.hpp"
#include "sandbox/external_subreaper.hpp"
#include "sandbox/prepare_job.hpp"
#include "sandbox/rlimit_fallback.hpp"
#include "sandbox/supervise_job.hpp"

namespace pinfold {

namespace {

// What takes a sandbox init inside, or a root of pinfold's own.
Result<void> check_wishes(const SandboxJob& job, const SandboxSetting& setting) {
    const std::pair<bool, const char*> refused[] = {
        {!job.copy_in.empty(), "--copy-in"}, {!job.copy_out.empty(), "--copy-out"},
        {!job.secrets.empty(), "--secret"},  {job.writable_root, "--writable-root"},
        {!job.scratch.empty(), "--scratch"}, {job.network == Network::pasta, "--network pasta"},
        {!job.publish.empty(), "--publish"}, {setting.cgroup_manager != CgroupManager::cgroupfs, "--cgroup-manager"},
    };
    for (const auto& [asked, option] : refused) {
        if (asked) return plain_error(concat(option, " cannot be had with --runtime"));
    }
    if (TRY(gather_host_facts()).is_rootless()) {
        return plain_error("--runtime: only root can hand a job to another runtime")
            .with_hint("run it as root, or without --runtime");
    }
    return {};
}

// Limits that nobody could be seen to hold are told as such; but some take a group that we can read.
Result<void> check_groups(const SandboxJob& job, const std::vector<EnforcedLimit>& limits) {
    for (const EnforcedLimit& limit : limits) {
        if (limit.enforced_by != "runtime" || limit.name == "disk_mb") continue;
        if (job.require_cgroup)
            return plain_error(concat("limits: ", job.runtime, " holds ", limit.name, " by no cgroup"));
        if (job.cpu_timeout && limit.name == "cpu_cores")
            return plain_error(concat("--cpu-timeout: ", job.runtime, " has made no cgroup that counts the time"));
    }
    return {};
}

// A first process's own use is not the job's: it may be a kernel.
void forget_first_process(const GroupUsage& usage, SandboxResult& result) {
    if (!usage.cpu_usec) result.cpu_seconds.reset();
    if (!usage.peak_memory) result.peak_memory_bytes.reset();
}

std::optional<uint64_t> count_oom_kills(const CgroupPath& group) {
    if (!read_limit(group, "memory.max", "memory.limit_in_bytes")) return std::nullopt;
    return count_oom(group).kills;
}

Result<SandboxResult> run_prepared(const SandboxJob& job, PreparedJob& prepared, const SandboxSetting& setting,
                                   const ExternalRuntime& runtime) {
    const CgroupPath& group = prepared.plan.cgroup.place;
    const ExternalBundle bundle = plan_bundle(prepared.config, runtime, group, setting.state_root);
    const SignalForwarder signals = TRY(SignalForwarder::create());
    UniqueFd place = TRY(take_place(setting, job.name));
    const StateDir state =
        TRY(StateDir::create(setting.state_root, container_of(prepared).record, config_json(bundle.spec)));
    place.reset();
    const ExternalSubreaper subreaper =
        TRY(ExternalSubreaper::start({prepared.plan.id, runtime, bundle, group, prepared.streams}));
    const Packet born = TRY(expect(subreaper.link(), Message::born, signals.fd()));
    TRY(state.record_init(born.pid));
    state.unlock();
    TRY(prepared.streams.connect());
    SandboxResult result;
    result.limits = read_back_external(job, group, born.pid);
    TRY(check_groups(job, result.limits));
    const int64_t let_go = monotonic_ns();
    TRY(subreaper.link().send(Message::go));
    const JobEnd end =
        TRY(supervise_job({subreaper.pidfd(), &subreaper.link(), group, signals, prepared.streams, nullptr,
                           timeout_of(job), job.cpu_timeout, born.fd.get(), nullptr, -1, let_go}));
    take_output(prepared.streams.output, result);
    result.denied.reset();
    const GroupUsage usage = measure_usage(group);
    classify(end, {usage, count_oom_kills(group), job.cpu_timeout}, result);
    forget_first_process(usage, result);
    return result;
}

}  // namespace

Result<SandboxResult> run_external(const SandboxJob& job, const SandboxSetting& setting) {
    TRY(check_wishes(job, setting));
    TRY_IN("--runtime", check_runtime(setting.policies, job.runtime));
    // Where an administrator has said what is allowed, programs are not looked for where the caller says.
    const bool callers_path = setting.policies.size() == 1;
    const ExternalRuntime runtime = TRY(find_runtime(job.runtime, job.network, callers_path));
    PreparedJob prepared = TRY(prepare_job(job, setting));
    Result<SandboxResult> result = run_prepared(job, prepared, setting, runtime);
    log_result(prepared.audit, prepared.plan.id, result);
    return result;
}

}  // namespace pinfold
