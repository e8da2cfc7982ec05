// One job from its beginning to its end.
#include "sandbox/run_job.hpp"

#include <fcntl.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/clock.hpp"
#include "base/fs.hpp"
#include "base/sha256.hpp"
#include "base/strings.hpp"
#include "cgroup/oom.hpp"
#include "cgroup/usage.hpp"
#include "pinfold/generate.hpp"
#include "sandbox/compose.hpp"
#include "sandbox/place_limits.hpp"
#include "sandbox/supervise_job.hpp"
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

Result<SandboxResult> run(const SandboxJob& job, const SandboxSetting& setting) {
    const std::string id = job.name.empty() ? TRY(make_up_name()) : job.name;
    TRY(check_container_id(id));
    const HostFacts host = gather_host_facts();
    const ComposedJob composed = TRY(compose(job, host, id));
    Plan plan = TRY(plan_job(composed, {.id = id, .bundle = "/", .cgroup_manager = setting.cgroup_manager}, host));
    LaunchOptions launch{.state_root = setting.state_root, .argv = setting.argv};
    launch.child.seccomp_cache = concat(setting.state_root, "/.seccomp");
    const SeccompFilter filter = TRY_IN("seccomp", compile_seccomp_cached(*plan.seccomp, launch.child.seccomp_cache));
    plan.seccomp = with_reporting(*plan.seccomp);
    JobStreams streams = TRY(make_streams(job, plan));
    launch.streams = &streams.streams;

    const SignalForwarder signals = TRY(SignalForwarder::create());
    const NewContainer container{plan, make_record(plan, composed.spec), config_json(composed.spec)};
    RunningContainer running = TRY(launch_container(container, launch, signals));
    running.state.unlock();
    streams.streams = {};  // or we would wait for ourselves to end
    SandboxResult result;
    result.limits = read_back_limits(job, plan, running.child.pid());  // the keeper's: the payload may have ended
    Denials denials = TRY(Denials::create(std::move(running.payload->listener), filter.program));
    const auto timeout =
        std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::duration<double>(job.limits.timeout_seconds));
    const JobEnd end =
        TRY(supervise_job({running, plan.cgroup.place, signals, streams.output ? &*streams.output : nullptr, &denials,
                           timeout, job.cpu_timeout}));
    take_end(end, result);
    take_usage(plan.cgroup.place, end, result);
    if (streams.output) {
        result.out = streams.output->take_text(0);
        result.err = streams.output->take_text(1);
        result.truncated = streams.output->truncated();
    }
    result.denied = denials.take();
    result.status = status_of(end, result, job);
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
