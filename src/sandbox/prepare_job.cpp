// A job that is ready to be launched.
#include "sandbox/prepare_job.hpp"

#include <fcntl.h>
#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>

#include "base/fs.hpp"
#include "base/process.hpp"
#include "base/sha256.hpp"
#include "base/strings.hpp"
#include "pinfold/generate.hpp"
#include "policy/check_request.hpp"
#include "sandbox/audit_job.hpp"
#include "seccomp/cache.hpp"
#include "seccomp/reporting.hpp"
#include "state/store.hpp"

namespace pinfold {

namespace {

// Those of this state root that run, or are about to.
Result<uint64_t> count_sandboxes(const std::string& root) {
    const std::vector<ContainerState> states = TRY(load_all_states(root));
    return std::ranges::count_if(states, [&](const ContainerState& state) {
        return state.record.annotations.contains(kSandboxAnnotation) && state.status != Status::stopped &&
               !is_abandoned(root, state);
    });
}

// A policy speaks of whole seconds: what is above one by a fraction is above it.
SandboxRequest request_of(const SandboxJob& job) {
    static constexpr const char* kNetworks[] = {"none", "host", "pasta"};
    const ResourceLimits& limits = job.limits;
    return {.limits = {limits.cpu_cores, limits.memory_mb, limits.disk_mb, limits.max_processes,
                       static_cast<uint64_t>(std::ceil(limits.timeout_seconds))},
            .network = kNetworks[size_t(job.network)],
            .profile = profile_of(job)};
}

// In a directory of its own a caller would start to count anew.
Result<void> check_count_root(const Policies& policies, const std::string& state_root) {
    const auto counts = [](const Policy& policy) { return policy.max_sandboxes && policy.is_system(); };
    if (std::ranges::none_of(policies, counts) || state_root == default_state_root()) return {};
    return Error{
        kPolicyRefusal,
        concat("policy: max_sandboxes: only those in ", default_state_root(), " are counted, not in ", state_root),
        "leave out --root"};
}

Result<PreparedJob> prepare(const std::string& id, const SandboxJob& job, const SandboxSetting& setting, bool stays) {
    const Policies policies = with_state_root(setting.policies, setting.state_root);
    TRY(check_count_root(policies, setting.state_root));
    TRY(check_request(policies, request_of(job)));
    Transfers transfers = TRY(Transfers::open(job, policies));
    const HostFacts host = TRY(gather_host_facts());
    JobConfig config = TRY(build_config(job, policies, host, id, stays));
    const Seccomp profile = setting.recorder != nullptr ? setting.recorder->watched() : *config.spec.linux_.seccomp;
    SandboxParts parts{.root = config.root, .init = config.sandbox_init};
    if (config.root.over_directory) parts.root_path = concat("/proc/self/fd/", config.root_source.get());
    parts.profile = stays ? profile : with_reporting(profile);
    Plan plan = TRY(make_plan(config.spec,
                              {.id = id,
                               .bundle = "/",
                               .cgroup_manager = setting.cgroup_manager,
                               .receipt = true,
                               .sandbox = std::move(parts)},
                              host));
    TRY(require_state_root(setting.state_root));  // whoever could change it could change the filters that it holds
    SeccompFilter filter = TRY_IN("seccomp", compile_seccomp_cached(profile, seccomp_cache(setting)));
    JobStreams streams = TRY(make_streams({job.input, job.capture, job.output_limit, plan.stream_owner}));
    return PreparedJob{.config = std::move(config),
                       .plan = std::move(plan),
                       .filter = std::move(filter),
                       .transfers = std::move(transfers),
                       .streams = std::move(streams)};
}

}  // namespace

std::string seccomp_cache(const SandboxSetting& setting) { return concat(setting.state_root, "/.seccomp"); }

Result<SandboxJob> with_name(SandboxJob job) {
    if (!job.name.empty()) return job;
    uint64_t number = 0;
    if (::getrandom(&number, sizeof number, 0) != sizeof number) return errno_error("make up a name: getrandom");
    job.name = concat("sandbox-", to_hex(sha256(std::to_string(number))).substr(0, 12));
    return job;
}

// What is about to be started is logged: if that cannot be, it is not.
Result<PreparedJob> prepare_job(const SandboxJob& job, const SandboxSetting& setting, bool stays) {
    TRY(check_container_id(job.name));
    AuditTrail trail = TRY(open_trail(setting.policies, setting.audit, setting.words));
    PreparedJob prepared = TRY(prepare(job.name, job, setting, stays));
    if (trail.is_on()) TRY(trail.append(job_event(job, job.name, config_json(prepared.config.spec))));
    prepared.audit = std::move(trail);
    return prepared;
}

Result<UniqueFd> take_place(const SandboxSetting& setting) {
    const auto counts = [](const Policy& policy) { return policy.max_sandboxes.has_value(); };
    if (std::ranges::none_of(setting.policies, counts)) return UniqueFd();
    UniqueFd turn = TRY(take_turn(setting.state_root));
    const uint64_t running = TRY(count_sandboxes(setting.state_root));
    TRY(check_count(setting.policies, running));
    return turn;
}

NewContainer container_of(const PreparedJob& job) {
    const Spec& spec = job.config.spec;
    ContainerRecord record = make_record(job.plan, spec, spec.annotations);
    if (!job.config.root_path.empty()) record.rootfs = job.config.root_path;
    return {job.plan, std::move(record), config_json(spec)};
}

Result<InsideOf> inside_of_sandbox_init(pid_t sandbox_init, const Plan& plan) {
    const uint64_t started = TRY(process_start_time(sandbox_init));
    return InsideOf{sandbox_init, started, true, plan.process.identity};
}

LaunchOptions launch_options(const SandboxJob& job, const PreparedJob& prepared, const SandboxSetting& setting,
                             std::optional<Pasta>& network) {
    LaunchOptions options{.state_root = setting.state_root, .argv = setting.argv, .streams = &prepared.streams.streams};
    options.child.seccomp_cache = seccomp_cache(setting);
    options.before_state = [&setting] { return take_place(setting); };
    options.before_start = [&job, &prepared, &network](const Child& sandbox_init) -> Result<void> {
        if (job.network == Network::pasta) network.emplace(TRY(Pasta::start(sandbox_init)));
        const InsideOf inside = TRY(inside_of_sandbox_init(sandbox_init.pid(), prepared.plan));
        return prepared.transfers.copy_in(inside);
    };
    options.on_receipt = [&job, &prepared](const Receipt& receipt) -> Result<void> {
        if (prepared.audit.is_on()) append_or_warn(prepared.audit, receipt_event(prepared.plan.id, receipt));
        return job.strict ? require(receipt) : Result<void>();
    };
    return options;
}

}  // namespace pinfold
