// One more program in a container, watched like a job of its own.
#include "sandbox/exec_job.hpp"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <ctime>
#include <vector>

#include "base/clock.hpp"
#include "base/fs.hpp"
#include "base/log.hpp"
#include "base/process.hpp"
#include "base/strings.hpp"
#include "cgroup/cgroup.hpp"
#include "cgroup/control_files.hpp"
#include "cgroup/v1.hpp"
#include "kernel/capabilities.hpp"
#include "sandbox/classify.hpp"
#include "sandbox/denials.hpp"
#include "sandbox/rlimit_fallback.hpp"
#include "sandbox/supervise_job.hpp"
#include "sandbox/watchdog.hpp"
#include "seccomp/cache.hpp"
#include "seccomp/reporting.hpp"
#include "seccomp/user_namespaces.hpp"

namespace pinfold {

namespace {

// The directories that hold the container's group: that of cgroup v2, or without that each of v1's.
std::vector<std::string> directories_of(const CgroupPath& container) {
    if (!container.mount.empty()) return {container.mount + container.path};
    std::vector<std::string> directories;
    for (const std::string& mount : v1_mounts(container)) directories.push_back(mount + container.path);
    return directories;
}

constexpr std::string_view kGroupPrefix = "exec-";

// An exec that was killed leaves its group. Removed is only what holds nobody, and whose exec is no more.
void remove_left_groups(const CgroupPath& container) {
    for (const std::string& directory : directories_of(container)) {
        const Result<UniqueFd> group = open_at(AT_FDCWD, directory, O_PATH | O_DIRECTORY);
        if (!group) continue;
        (void)visit_children(group->get(), [&](std::string_view name) {
            if (!name.starts_with(kGroupPrefix)) return true;
            const std::string_view maker = name.substr(kGroupPrefix.size());
            const pid_t pid = parse_number<pid_t>(maker.substr(0, maker.find('-'))).value_or(0);
            const bool is_left = pid == ::getpid() || (pid > 0 && ::kill(pid, 0) != 0 && errno == ESRCH);
            if (is_left) ::unlinkat(group->get(), std::string(name).c_str(), AT_REMOVEDIR);
            return true;
        }).has_value();
    }
}

// One of the same number may have left processes behind that live on.
std::string free_name(const CgroupPath& container) {
    const std::vector<std::string> directories = directories_of(container);
    std::string name = concat(kGroupPrefix, ::getpid());
    const auto is_taken = [&](const std::string& directory) {
        return ::access(concat(directory, '/', name).c_str(), F_OK) == 0;
    };
    for (int number = 2; std::ranges::any_of(directories, is_taken); ++number)
        name = concat(kGroupPrefix, ::getpid(), '-', number);
    return name;
}

// A group below the container's for this program and all that it starts, so that they can be ended together, and
// counted apart.
class OwnGroup {
public:
    static Result<OwnGroup> create(const CgroupPath& container) {
        OwnGroup group;
        if (!container.exists()) return group;
        remove_left_groups(container);
        group.name_ = free_name(container);
        const std::string path = concat(container.path, '/', group.name_);
        if (container.mount.empty()) {
            const CgroupPlan plan{.place = {.path = path, .v1 = container.v1}};
            NewGroup made;
            const Result<void> done = V1Groups(plan.place).make(plan, made);
            group.place_ = std::move(made.made);
            TRY(done);
            return group;
        }
        group.place_ = {.mount = container.mount, .path = path};
        const std::string directory = group.place_.mount + group.place_.path;
        if (::mkdir(directory.c_str(), 0755) == 0) return group;
        Error error = errno_error(concat("make ", directory));
        group.place_ = {};  // not ours to remove
        return error;
    }
    OwnGroup(OwnGroup&& other) noexcept
        : name_(std::move(other.name_)), place_(std::exchange(other.place_, CgroupPath{})) {}
    OwnGroup& operator=(OwnGroup&&) = delete;
    ~OwnGroup() {
        if (!place_.exists()) return;
        if (const Result<void> removed = remove_cgroup(place_); !removed) log_warning(removed.error().message);
    }

    const std::string& name() const { return name_; }
    const CgroupPath& place() const { return place_; }

private:
    OwnGroup() = default;
    std::string name_;
    CgroupPath place_;
};

// A profile that notifies somebody else already is left to them. And a process that joins a container lets nobody but
// root take a descriptor out of it.
bool can_report(const std::optional<Seccomp>& profile) {
    return profile && ::geteuid() == 0 && !is_reporting(*profile) && profile->listener_path.empty();
}

enum class Hierarchy { hidden, read_only, writable };

// What the container sees of cgroups: "36 35 0:30 / /sys/fs/cgroup ro,nosuid shared:1 - cgroup2 cgroup rw".
Result<Hierarchy> shown_hierarchy(pid_t init) {
    Hierarchy shown = Hierarchy::hidden;
    TRY(require_first_thread(init));
    const std::string mounts = TRY(read_file(concat("/proc/", init, "/mountinfo")));
    for (const std::string_view line : split(mounts, '\n')) {
        const size_t middle = line.find(" - ");
        if (middle == line.npos || !line.substr(middle + 3).starts_with("cgroup")) continue;
        const std::vector<std::string_view> fields = split(line.substr(0, middle), ' ');
        if (fields.size() < 6 || !fields[5].starts_with("ro")) return Hierarchy::writable;
        shown = Hierarchy::read_only;
    }
    return shown;
}

// All that the program starts has to be found at its deadline: by its group or, where it has none or could leave it, by
// its cgroup namespace. That it could leave as well by CAP_SYS_ADMIN, which it has in any user namespace that it makes.
// clone3(2) puts a process into a group that is mounted read-only.
Result<void> hold_together(const ContainerState& state, const std::string& seccomp_cache, ExecPlan& plan) {
    const bool has_group = state.record.cgroup.exists();
    const Hierarchy shown = has_group ? TRY(shown_hierarchy(state.pid)) : Hierarchy::hidden;
    if ((plan.process.capabilities.bounding & capability_bit("CAP_SYS_ADMIN").value_or(0)) != 0) {
        return plain_error(
                   "--timeout: the program may have CAP_SYS_ADMIN, and could leave its cgroup and its namespaces: what "
                   "it starts could not be ended")
            .with_hint("leave the capability out");
    }
    if (has_group && shown == Hierarchy::hidden) return {};
    if (!plan.seccomp) plan.seccomp = profile_without_user_namespaces();
    const SeccompFilter filter = TRY_IN("seccomp", compile_seccomp_cached(*plan.seccomp, seccomp_cache));
    if (has_group && shown == Hierarchy::read_only && denies_clone3(filter.program)) return {};
    if (!denies_user_namespaces(filter.program)) {
        return plain_error(concat("--timeout: the container ", has_group ? "may write to its cgroup" : "has no cgroup",
                                  ", and its seccomp profile allows new user namespaces: what the program starts could "
                                  "not be ended"))
            .with_hint(
                "use a profile that denies unshare and clone with CLONE_NEWUSER and clone3, or none, or use a sandbox");
    }
    plan.marked = true;
    plan.namespaces &= ~uint64_t{CLONE_NEWCGROUP};
    return {};
}

// It counts from before the start, which others in the container can hold up.
class Deadline {
public:
    static Result<Deadline> start(const std::optional<std::chrono::nanoseconds>& timeout) {
        Deadline deadline(timeout);
        if (!timeout) return deadline;
        deadline.timer_ = TRY(make_timer(CLOCK_MONOTONIC));
        TRY(set_timer(deadline.timer_, *timeout));
        return deadline;
    }

    int fd() const { return timer_.get(); }
    std::chrono::nanoseconds passed() const { return std::chrono::nanoseconds(monotonic_ns() - began_); }
    bool is_over() const { return timeout_ && passed() >= *timeout_; }
    std::optional<std::chrono::nanoseconds> left() const {
        if (!timeout_) return std::nullopt;
        return std::max<std::chrono::nanoseconds>(*timeout_ - passed(), std::chrono::milliseconds(1));
    }

private:
    explicit Deadline(const std::optional<std::chrono::nanoseconds>& timeout) : timeout_(timeout) {}

    std::optional<std::chrono::nanoseconds> timeout_;
    int64_t began_ = monotonic_ns();
    UniqueFd timer_;
};

// Of its own group, where that is counted; else of the container, in which others run out of memory as well: those are
// its own where its process, or as a shell tells of it a child, was killed.
uint64_t own_oom_kills(const CgroupPath& own, uint64_t in_container, const JobEnd& end) {
    if (const uint64_t kills = count_oom(own).kills; kills != 0) return kills;
    const bool was_killed = !end.payload || end.payload->status == (end.payload->signaled ? SIGKILL : 128 + SIGKILL);
    return was_killed ? in_container : 0;
}

Result<SandboxResult> run(ExecPlan plan, const ContainerState& state, const ChildOptions& options,
                          const ExecWatch& watch) {
    const CgroupPath& container = state.record.cgroup;
    if (watch.timeout && state.status == Status::paused) {
        return plain_error("--timeout: the container is paused, and nothing in it can be ended")
            .with_hint("resume it first");
    }
    const bool reports = can_report(plan.seccomp);
    if (watch.timeout) TRY(hold_together(state, options.seccomp_cache, plan));
    std::optional<SeccompFilter> filter;
    if (reports) {
        filter = TRY_IN("seccomp", compile_seccomp_cached(*plan.seccomp, options.seccomp_cache));
        plan.seccomp = with_reporting(*plan.seccomp);
    }
    StreamWishes wishes = watch.streams;
    wishes.owner = plan.stream_owner;
    JobStreams streams = TRY(make_streams(wishes));
    TRY(streams.connect());
    const OwnGroup group = TRY(OwnGroup::create(container));
    const uint64_t kills_before = count_oom(container).kills;

    std::optional<Watchdog> watchdog;
    if (watch.timeout) watchdog.emplace(TRY(Watchdog::start(group.place(), plan.marked, *watch.timeout)));
    const SignalForwarder signals = TRY(SignalForwarder::create());
    const Deadline deadline = TRY(Deadline::start(watch.timeout));
    SandboxResult result;
    if (watch.timeout) result.limits = {time_limit("timeout_seconds", *watch.timeout)};
    int64_t let_go = monotonic_ns();  // or a little later, where it waits to be looked at
    const auto on_receipt = [&](const Receipt& receipt) {
        result.receipt = receipt;
        let_go = monotonic_ns();
        return watch.on_receipt ? watch.on_receipt(receipt) : require(receipt);
    };
    const auto on_born = [&](const Child& child, int mark) -> Result<void> {
        if (watchdog) TRY(watchdog->watch(child.pid(), child.pidfd.get(), mark));
        return {};
    };
    const Ending ending = TRY(decide_exec_ending(plan, options));
    Result<StartedExec> begun = start_exec({plan, state, group.name(), options, ending, &streams.streams,
                                            filter.has_value(), on_receipt, deadline.fd(), signals.fd(), on_born});
    // Whoever lives in the container may have stopped it on its way, or speak in its place.
    if (!begun && begun.error().code == ETIME && deadline.is_over()) {
        classify({.payload = {}, .timed_out = true, .wall = deadline.passed()}, {}, result);
        return result;
    }
    StartedExec started = TRY(std::move(begun));
    if (plan.process.landlock) result.landlock_abi = plan.process.landlock->abi;
    std::optional<Denials> denials;
    if (filter) denials = TRY(Denials::create(std::move(started.listener), filter->program));
    const JobEnd end = TRY(supervise_job({started.child.pidfd.get(), nullptr, group.place(), signals, streams,
                                          denials ? &*denials : nullptr, deadline.left(), std::nullopt, -1, nullptr,
                                          started.mark.get(), let_go}));
    started.child.guard.release();  // it was reaped
    take_output(streams.output, result);
    if (denials) result.denied = denials->take();
    else result.denied.reset();
    std::optional<uint64_t> kills;  // unknown without a group
    if (container.exists()) kills = own_oom_kills(group.place(), count_oom(container).kills - kills_before, end);
    if (wishes.output_limit != 0) result.limits.push_back(printed_limit(wishes.output_limit));
    classify(end, {measure_usage(group.place()), kills, std::nullopt}, result);
    if (denials && result.exit_code != 0) result.hint = denials->hint(end.ended_at, end.wall);
    return result;
}

}  // namespace

SandboxResult run_exec_job(ExecPlan plan, const ContainerState& state, const ChildOptions& options,
                           const ExecWatch& watch) {
    Result<SandboxResult> result = run(std::move(plan), state, options, watch);
    if (result) keep_receipt(watch.receipt, *result);
    return result ? std::move(result).value() : failed_result(result.error());
}

Result<int> run_exec_relayed(ExecRequest request) {
    JobStreams streams = TRY(make_streams({.input = input_without_terminal(), .owner = request.plan.stream_owner}));
    if (request.options.detach) streams.streams = TRY(null_streams());
    request.streams = &streams.streams;
    if (request.options.detach) return exec_in_container(request);
    TRY(streams.connect());
    const SignalForwarder signals = TRY(SignalForwarder::create());
    request.signals = signals.fd();
    StartedExec started = TRY(start_exec(request));
    const JobEnd end = TRY(supervise_job(
        {started.child.pidfd.get(), nullptr, CgroupPath{}, signals, streams, nullptr, std::nullopt, std::nullopt}));
    started.child.guard.release();  // it was reaped
    SandboxResult result;
    classify(end, {}, result);
    if (!result.error.empty())
        log_error(plain_error(result.error).within(concat("exec ", quoted(request.state.record.id))));
    return exit_code_of(result);
}

}  // namespace pinfold
