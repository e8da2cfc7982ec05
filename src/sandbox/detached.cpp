// Sandboxes that stay.
#include "sandbox/detached.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <climits>
#include <memory>

#include "base/log.hpp"
#include "base/strings.hpp"
#include "json/json.hpp"
#include "kernel/own_binary.hpp"
#include "policy/check_request.hpp"
#include "process/lifetime.hpp"
#include "process/supervise.hpp"
#include "sandbox/job_file.hpp"
#include "sandbox/kept_files.hpp"
#include "sandbox/monitor.hpp"
#include "sandbox/prepare_job.hpp"

namespace pinfold {

namespace {

constexpr uint64_t kLongestLife = 31536000;  // seconds, as for any job

std::string pid_namespace(std::string_view pid) {
    char name[64];
    const ssize_t size = ::readlink(concat("/proc/", pid, "/ns/pid").c_str(), name, sizeof name);
    return size <= 0 ? "" : std::string(name, size_t(size));
}

// Whether somebody else is in the sandbox init's namespace of processes.
bool is_busy(pid_t sandbox_init) {
    const std::string own = std::to_string(sandbox_init);
    const std::string wanted = pid_namespace(own);
    const std::unique_ptr<DIR, int (*)(DIR*)> processes(::opendir("/proc"), ::closedir);
    while (const dirent* entry = processes ? ::readdir(processes.get()) : nullptr) {
        const std::string_view pid = entry->d_name;
        if (pid.find_first_not_of("0123456789") != pid.npos || pid == own) continue;
        if (pid_namespace(pid) == wanted) return true;
    }
    return false;
}

bool is_idle(const std::string& root, const ContainerState& state) {
    const auto limit = state.record.annotations.find(kIdleAnnotation);
    if (limit == state.record.annotations.end() || is_busy(state.pid)) return false;
    const auto seconds = parse_number<int64_t>(limit->second);
    return seconds && seconds_since_use(root, state.record.id) >= *seconds;
}

// Its init ends at the deadline by itself, unless it is paused, and frozen with the rest, or somebody has stopped it.
bool is_overdue(const ContainerState& state) {
    constexpr int64_t kGrace = 1;  // second
    const auto limit = state.record.annotations.find(kLifetimeAnnotation);
    if (limit == state.record.annotations.end()) return false;
    timespec now{};
    ::clock_gettime(CLOCK_BOOTTIME, &now);
    const auto seconds = parse_number<int64_t>(limit->second);
    const int64_t lived = now.tv_sec - int64_t(state.started / uint64_t(::sysconf(_SC_CLK_TCK)));
    return seconds && lived > *seconds + kGrace;
}

// A directory without a record is no container's: who made it died at that, or who removed it. Only, one who has made
// it just now has not locked it yet.
bool is_left_over(const std::string& root, const ContainerState& state) {
    constexpr int64_t kLongSince = 60;  // seconds
    return state.status == Status::creating && seconds_since_change(root, state.record.id) >= kLongSince;
}

// Since it was written down how it ended; else, at least since it was last used.
int64_t seconds_since_end(const std::string& root, const std::string& id) {
    const Result<UniqueFd> file = open_state_file(root, id, "result", O_RDONLY);
    struct stat info {};
    if (!file || ::fstat(file->get(), &info) != 0) return seconds_since_use(root, id);
    return std::max<int64_t>(::time(nullptr) - info.st_mtim.tv_sec, 0);
}

bool is_to_go(const std::string& root, const ContainerState& state, bool abandoned, const WhatToPrune& what) {
    if (what.bound && !state.record.annotations.contains(kBoundAnnotation)) return false;
    if (!state.has_record) return abandoned && is_left_over(root, state);
    if (!state.record.annotations.contains(kSandboxAnnotation)) return false;
    switch (state.status) {
        case Status::creating: return abandoned;
        case Status::created: return false;
        case Status::running: return is_idle(root, state) || is_overdue(state);
        case Status::paused: return is_overdue(state);
        case Status::stopped: break;
    }
    // One that can be started again is not done with.
    if (state.record.annotations.contains(kKeptAnnotation)) return false;
    return std::chrono::seconds(seconds_since_end(root, state.record.id)) >= what.age;
}

// Under its lock, and only if it is still so: another may have removed it, or used it again. Whose creator lives cannot
// be locked.
Result<bool> prune_one(const std::string& root, const std::string& id, const AuditTrail& trail, const WhatToPrune& what,
                       Result<void>& logged) {
    const StateLock lock = TRY(StateLock::take(root, id));
    const ContainerState state = TRY(load_for_delete(root, id, false));
    if (!is_to_go(root, state, true, what)) return false;
    hold_signals_until_exit();
    const AuditEvent event{"prune", id, "", {{"status", json_quoted(status_name(state.status))}}};
    logged = trail.append(event);
    if (!logged) return false;
    Result<void> destroyed = destroy_container(root, state);
    if (destroyed) return true;
    append_failure(trail, event, destroyed.error());
    return std::move(destroyed).error();
}

// Who would hold these is the monitor of a command.
Result<void> check_alone(const SandboxJob& job) {
    std::vector<std::string> options;
    if (job.cpu_timeout) options.emplace_back("--cpu-timeout");
    if (job.output_limit != 0) options.emplace_back("--output-limit");
    if (job.merge_output) options.emplace_back("--merge-output");
    if (job.receipt) options.emplace_back("--receipt");
    if (options.empty()) return {};
    return plain_error(concat(join(options, ", "), ": nobody stays with a sandbox that has no command"))
        .with_hint("give it a command, or exec a limit of its own");
}

Result<std::string> start(const SandboxJob& job, const SandboxSetting& setting) {
    PreparedJob prepared = TRY(prepare_job(job, setting, true));
    // Its first process is pinfold, which has no trampoline; and so far there is no second process of us.
    if (prepared.plan.process.protect_binary) return run_from_readonly_binary(setting.argv);
    if (!prepared.plan.sandbox_init->alone) return start_monitored(job, prepared, setting);
    TRY(check_alone(job));
    prepared.streams.streams = TRY(null_streams());
    const SignalForwarder signals = TRY(SignalForwarder::create());
    NetworkHelpers network;
    RunningContainer running = TRY(launch_job(job, prepared, launch_options(job, prepared, setting, network), signals));
    TRY(keep_job(job, *running.state));
    TRY(running.state->forget_last_end());
    running.state->unlock();
    running.commit();
    network.release();
    return prepared.plan.id;
}

}  // namespace

// Where a policy caps the time, a sandbox that stays has no more of it than another.
Result<std::string> start_sandbox(const SandboxJob& wanted, const SandboxSetting& setting) {
    if (wanted.input >= 0)
        return plain_error("--stdin: nobody stays with the sandbox to pass it on")
            .with_hint("use exec, or give it a file: --copy-in");
    SandboxJob job = TRY(with_name(wanted));
    const std::optional<uint64_t> longest = longest_life(setting.policies);
    if (!job.lifetime && longest) job.lifetime = std::chrono::seconds(std::min(*longest, kLongestLife));
    if (job.lifetime) job.limits.timeout_seconds = std::chrono::duration<double>(*job.lifetime).count();
    job.capture = true;  // by its monitor
    Result<std::string> started = start(job, setting);
    if (!started) log_refusal(started.error(), job.name, setting.policies, setting.audit, setting.words);
    return started;
}

Result<void> restart_sandbox(const SandboxSetting& setting, const std::string& id) {
    const ContainerState state = TRY(load_state(setting.state_root, id));
    if (state.status != Status::stopped || !state.record.annotations.contains(kSandboxAnnotation))
        return plain_error(concat("only a sandbox that has stopped can be started again: ", quoted(id), " is ",
                                  status_name(state.status)));
    if (!state.record.annotations.contains(kKeptAnnotation))
        return plain_error(concat(quoted(id), " has stopped, and its files, which were in memory, are gone"))
            .with_hint("one that is to be started again takes a place for them: pinfold sandbox -d --keep-files DIR");
    SandboxSetting again = setting;
    again.again = true;
    again.bound = again.bound || state.record.annotations.contains(kBoundAnnotation);
    const SandboxJob job = TRY(load_job(setting.state_root, id));
    const Policies policies = for_sandboxes(setting.policies, setting.state_root, setting.audit);
    const KeptOwner owner = TRY(kept_owner());
    TRY(KeptFiles::find(job.keep_files, policies, owner));  // or it would begin with none
    TRY(await_stopper(setting.state_root, id));
    TRY(start_sandbox(job, again));
    return {};
}

Result<void> remove_sandbox(const std::string& state_root, const std::string& id) {
    const StateLock lock = TRY(StateLock::take(state_root, id));
    return destroy_container(state_root, TRY(load_state(state_root, id)));
}

Result<std::vector<std::string>> sandboxes_to_prune(const std::string& state_root, const WhatToPrune& what) {
    std::vector<std::string> names;
    for (const ContainerState& state : TRY(load_all_states(state_root))) {
        if (is_to_go(state_root, state, is_abandoned(state_root, state), what)) names.push_back(state.record.id);
    }
    return names;
}

Result<std::vector<std::string>> prune_sandboxes(const std::string& state_root, const AuditTrail& trail,
                                                 const WhatToPrune& what) {
    std::vector<std::string> gone;
    Result<void> logged;
    for (const std::string& id : TRY(sandboxes_to_prune(state_root, what))) {
        if (is_asked_to_end()) {
            log_warning("interrupted by a signal, before all were removed");
            break;
        }
        const Result<bool> pruned = prune_one(state_root, id, trail, what, logged);
        TRY(logged);
        if (pruned && *pruned) gone.push_back(id);
        else if (!pruned && pruned.error().code != kNoSuchContainer) log_warning(pruned.error().message);
    }
    return gone;
}

}  // namespace pinfold
