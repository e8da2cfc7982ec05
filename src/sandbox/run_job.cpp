// One job from its beginning to its end.
#include "sandbox/run_job.hpp"

#include <fcntl.h>
#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>

#include "base/clock.hpp"
#include "base/fs.hpp"
#include "base/sha256.hpp"
#include "base/strings.hpp"
#include "cgroup/oom.hpp"
#include "cgroup/usage.hpp"
#include "kernel/init_process.hpp"
#include "pinfold/generate.hpp"
#include "sandbox/compose.hpp"
#include "sandbox/pasta.hpp"
#include "sandbox/place_limits.hpp"
#include "sandbox/supervise_job.hpp"
#include "sandbox/transfer.hpp"
#include "seccomp/cache.hpp"
#include "seccomp/reporting.hpp"
#include "state/container_id.hpp"

namespace pinfold {

namespace {

Result<std::string> make_up_name() {
    uint64_t number = 0;
    if (::getrandom(&number, sizeof number, 0) != sizeof number) return errno_error("make up a name: getrandom");
    return concat("sandbox-", to_hex(sha256(std::to_string(number))).substr(0, 12));
}

ContainerRecord make_record(const Plan& plan, const Spec& spec) {
    ContainerRecord record;
    record.id = plan.id;
    record.oci_version = spec.oci_version;
    record.bundle = plan.bundle;
    record.rootfs = plan.root.path;
    record.created = rfc3339_now();
    record.cgroup = plan.cgroup.place;
    record.owner = ::geteuid();
    record.annotations = spec.annotations;
    return record;
}

std::string cache_of(const SandboxSetting& setting) { return concat(setting.state_root, "/.seccomp"); }

std::chrono::nanoseconds timeout_of(const SandboxJob& job) {
    const std::chrono::duration<double> seconds(job.limits.timeout_seconds);
    return std::chrono::duration_cast<std::chrono::nanoseconds>(seconds);
}

// Those of this state root that run.
Result<uint64_t> count_sandboxes(const std::string& root) {
    const std::vector<ContainerState> states = TRY(load_all_states(root));
    return std::ranges::count_if(states, [](const ContainerState& state) {
        return state.status != Status::stopped && state.record.annotations.contains(kSandboxAnnotation);
    });
}

// The job's streams: pipes of ours where its output is kept or limited, else our own.
struct JobStreams {
    std::optional<Output> output;
    Streams streams;
};

Result<UniqueFd> duplicate(int fd) {
    UniqueFd copy(::fcntl(fd, F_DUPFD_CLOEXEC, 3));
    if (!copy) return errno_error(concat("standard stream ", fd));
    return copy;
}

Result<JobStreams> make_streams(const SandboxJob& job, const Plan& plan) {
    JobStreams made;
    made.streams.in = job.input >= 0 ? TRY(duplicate(job.input)) : TRY(open_at(AT_FDCWD, "/dev/null", O_RDONLY));
    if (!job.capture && job.output_limit == 0) {
        made.streams.out = TRY(duplicate(STDOUT_FILENO));
        made.streams.err = TRY(duplicate(STDERR_FILENO));
        return made;
    }
    made.output = TRY(Output::create(job.capture, job.output_limit));
    made.streams.out = made.output->take_write_end(0);
    made.streams.err = made.output->take_write_end(1);
    if (plan.stream_owner) {
        // So that the payload can open /dev/stdout; a normal user's pipes are its own anyway.
        for (const UniqueFd* pipe : {&made.streams.out, &made.streams.err}) {
            if (::fchown(pipe->get(), *plan.stream_owner, gid_t(-1)) != 0 && ::geteuid() == 0)
                return errno_error("give the output's pipes to the payload");
        }
    }
    return made;
}

SandboxStatus status_of(const JobEnd& end, const SandboxResult& result, const SandboxJob& job) {
    const bool out_of_time = job.cpu_timeout && result.signal && result.cpu_seconds &&
                             *result.cpu_seconds >= std::chrono::duration<double>(*job.cpu_timeout).count();
    if (end.timed_out || out_of_time) return SandboxStatus::timed_out;
    if (result.oom_kills != 0 && result.exit_code != 0) return SandboxStatus::oom_killed;
    if (result.truncated) return SandboxStatus::output_limit;
    return result.signal ? SandboxStatus::signaled : SandboxStatus::exited;
}

void take_usage(const CgroupPlace& group, const JobEnd& end, SandboxResult& result) {
    GroupUsage usage = measure_usage(group);
    if (!usage.cpu_usec && end.payload) usage.cpu_usec = end.payload->cpu_usec;
    if (!usage.peak_memory && end.payload) usage.peak_memory = end.payload->most_memory;
    result.wall_seconds = std::chrono::duration<double>(end.wall).count();
    if (usage.cpu_usec) result.cpu_seconds = double(*usage.cpu_usec) / 1e6;
    result.peak_memory_bytes = usage.peak_memory;
    result.peak_processes = usage.peak_processes;
    result.read_bytes = usage.read_bytes;
    result.written_bytes = usage.written_bytes;
    result.oom_kills = count_oom(group).kills;
}

void take_end(const JobEnd& end, SandboxResult& result) {
    if (!end.payload || end.payload->signaled) result.signal = end.payload ? end.payload->status : SIGKILL;
    else result.exit_code = end.payload->status;
}

// A policy speaks of whole seconds: what is above one by a fraction is above it.
SandboxRequest request_of(const SandboxJob& job, uint64_t running) {
    static constexpr const char* kNetworks[] = {"none", "host", "pasta"};
    const ResourceLimits& limits = job.limits;
    return {.limits = {limits.cpu_cores, limits.memory_mb, limits.disk_mb, limits.max_processes,
                       static_cast<uint64_t>(std::ceil(limits.timeout_seconds))},
            .network = kNetworks[size_t(job.network)],
            .profile = job.seccomp,
            .running = running};
}

Result<Policies> check_policies(const SandboxJob& job, const SandboxSetting& setting) {
    Policies policies = TRY(load_policies(setting.policy));
    const bool counts = std::ranges::any_of(policies, [](const Policy& one) { return one.max_sandboxes.has_value(); });
    const uint64_t running = counts ? TRY(count_sandboxes(setting.state_root)) : 0;
    TRY_IN("policy", check_request(policies, request_of(job, running)));
    return policies;
}

// All that is known before anything is made.
struct PreparedJob {
    ComposedJob composed;
    Plan plan;
    SeccompFilter filter;  // the profile's own; the plan has the one that reports
    Transfers transfers;
    JobStreams streams;
};

Result<PreparedJob> prepare(const SandboxJob& job, const SandboxSetting& setting) {
    const std::string id = job.name.empty() ? TRY(make_up_name()) : job.name;
    TRY(check_container_id(id));
    const Policies policies = TRY(check_policies(job, setting));
    Transfers transfers = TRY(Transfers::open(job, policies));
    const HostFacts host = gather_host_facts();
    ComposedJob composed = TRY(compose(job, policies, host, id));
    Plan plan = TRY(plan_job(composed, {.id = id, .bundle = "/", .cgroup_manager = setting.cgroup_manager}, host));
    SeccompFilter filter = TRY_IN("seccomp", compile_seccomp_cached(*plan.seccomp, cache_of(setting)));
    plan.seccomp = with_reporting(*plan.seccomp);
    JobStreams streams = TRY(make_streams(job, plan));
    return PreparedJob{std::move(composed), std::move(plan), std::move(filter), std::move(transfers),
                       std::move(streams)};
}

InsideOf inside_of_keeper(pid_t keeper, const Plan& plan) {
    return {keeper, process_start_time(keeper), true, plan.process.identity};
}

LaunchOptions launch_options(const SandboxJob& job, const PreparedJob& prepared, const SandboxSetting& setting) {
    LaunchOptions options{.state_root = setting.state_root, .argv = setting.argv, .streams = &prepared.streams.streams};
    options.child.seccomp_cache = cache_of(setting);
    options.before_start = [&job, &prepared](const Child& keeper) -> Result<void> {
        if (job.network == Network::pasta) TRY(start_pasta(keeper.pid()));
        return prepared.transfers.copy_in(inside_of_keeper(keeper.pid(), prepared.plan));
    };
    return options;
}

void take_output(std::optional<Output>& output, SandboxResult& result) {
    if (!output) return;
    result.out = output->take_text(0);
    result.err = output->take_text(1);
    result.truncated = output->truncated();
}

// A job that was killed has no keeper any more, and with it its files are gone.
void copy_out(const PreparedJob& prepared, const JobEnd& end, pid_t keeper, SandboxResult& result) {
    if (!end.payload) return;
    const Result<void> copied = prepared.transfers.copy_out(inside_of_keeper(keeper, prepared.plan));
    if (copied) return;
    result.error = copied.error().message;
    result.hint = copied.error().hint;
}

Result<SandboxResult> run(const SandboxJob& job, const SandboxSetting& setting) {
    PreparedJob prepared = TRY(prepare(job, setting));
    const Plan& plan = prepared.plan;
    const SignalForwarder signals = TRY(SignalForwarder::create());
    const NewContainer container{plan, make_record(plan, prepared.composed.spec), config_json(prepared.composed.spec)};
    RunningContainer running = TRY(launch_container(container, launch_options(job, prepared, setting), signals));
    running.state.unlock();
    prepared.streams.streams = {};  // or we would wait for ourselves to end
    const pid_t keeper = running.child.pid();
    SandboxResult result;
    result.limits = read_back_limits(job, plan, keeper);  // of the keeper: the payload may have ended
    Denials denials = TRY(Denials::create(std::move(running.payload->listener), prepared.filter.program));
    std::optional<Output>& output = prepared.streams.output;
    const JobEnd end = TRY(supervise_job({running, plan.cgroup.place, signals, output ? &*output : nullptr, &denials,
                                          timeout_of(job), job.cpu_timeout}));
    take_end(end, result);
    take_usage(plan.cgroup.place, end, result);
    take_output(output, result);
    result.denied = denials.take();
    result.status = status_of(end, result, job);
    copy_out(prepared, end, keeper, result);
    return result;
}

}  // namespace

SandboxResult run_job(const SandboxJob& job, const SandboxSetting& setting) {
    Result<SandboxResult> result = run(job, setting);
    if (result) return std::move(result).value();
    SandboxResult failed;
    failed.error = result.error().message;
    failed.hint = result.error().hint;
    return failed;
}

}  // namespace pinfold
