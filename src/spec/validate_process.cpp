// The rules for a process: what execve, setrlimit, sched_setattr and their like would refuse or misread.
#include <array>
#include <bitset>
#include <cstdint>

#include "spec/rules.hpp"
#include "spec/validate.hpp"

namespace pinfold {

namespace {

constexpr auto kRlimits = std::to_array<std::string_view>(
    {"RLIMIT_AS", "RLIMIT_CORE", "RLIMIT_CPU", "RLIMIT_DATA", "RLIMIT_FSIZE", "RLIMIT_LOCKS", "RLIMIT_MEMLOCK",
     "RLIMIT_MSGQUEUE", "RLIMIT_NICE", "RLIMIT_NOFILE", "RLIMIT_NPROC", "RLIMIT_RSS", "RLIMIT_RTPRIO", "RLIMIT_RTTIME",
     "RLIMIT_SIGPENDING", "RLIMIT_STACK"});

constexpr auto kIoClasses =
    std::to_array<std::string_view>({"IOPRIO_CLASS_RT", "IOPRIO_CLASS_BE", "IOPRIO_CLASS_IDLE"});

constexpr auto kSchedulerPolicies = std::to_array<std::string_view>(
    {"SCHED_OTHER", "SCHED_FIFO", "SCHED_RR", "SCHED_BATCH", "SCHED_ISO", "SCHED_IDLE", "SCHED_DEADLINE"});

constexpr auto kSchedulerFlags = std::to_array<std::string_view>(
    {"SCHED_FLAG_RESET_ON_FORK", "SCHED_FLAG_RECLAIM", "SCHED_FLAG_DL_OVERRUN", "SCHED_FLAG_KEEP_POLICY",
     "SCHED_FLAG_KEEP_PARAMS", "SCHED_FLAG_UTIL_CLAMP_MIN", "SCHED_FLAG_UTIL_CLAMP_MAX"});

void validate_args(const std::vector<std::string>& args, std::string path, Problems& problems) {
    if (args.empty()) problems.add(std::move(path), "missing, required: the program to run and its arguments");
    else if (args[0].empty()) problems.add(element_path(path, 0), expected_but_found("", "the program to run"));
}

// Names are taken as they come: engines pass on what images hold, and the kernel does not mind.
void validate_env(const std::vector<std::string>& env, std::string_view path, Problems& problems) {
    for (size_t i = 0; i < env.size(); ++i) {
        const size_t name_length = env[i].find('=');
        if (name_length == 0 || name_length == std::string::npos) {
            problems.add(element_path(path, i), expected_but_found(env[i], "NAME=VALUE"));
        }
    }
}

void validate_rlimits(const std::vector<Rlimit>& rlimits, std::string_view path, Problems& problems) {
    std::bitset<kRlimits.size()> seen;
    for (size_t i = 0; i < rlimits.size(); ++i) {
        const Rlimit& rlimit = rlimits[i];
        const size_t type = position_of(rlimit.type, kRlimits);
        const std::string at = element_path(path, i);
        if (type == kRlimits.size()) problems.add(member_path(at, "type"), expected_but_found(rlimit.type, kRlimits));
        else if (seen[type]) problems.add(member_path(at, "type"), concat(rlimit.type, " is given twice"));
        else seen.set(type);
        if (rlimit.soft > rlimit.hard && !problems.has(member_path(at, "hard"))) {
            problems.add(member_path(at, "soft"),
                         expected_but_found(rlimit.soft, concat("at most the hard limit, ", rlimit.hard)));
        }
    }
}

// The last number is no id: to the kernel it means "as before", which would be root.
void validate_user(const User& user, const std::string& at, Problems& problems) {
    constexpr uint32_t kHighestId = UINT32_MAX - 1;
    require_range(member_path(at, "uid"), user.uid, 0, kHighestId, problems);
    require_range(member_path(at, "gid"), user.gid, 0, kHighestId, problems);
    const std::string gids = member_path(at, "additionalGids");
    for (size_t i = 0; i < user.additional_gids.size(); ++i) {
        require_range(element_path(gids, i), user.additional_gids[i], 0, kHighestId, problems);
    }
    if (user.umask) require_range(member_path(at, "umask"), *user.umask, 0, 0777, problems);
}

void validate_io_priority(const IoPriority& io_priority, std::string_view at, Problems& problems) {
    require_known(member_path(at, "class"), io_priority.io_class, kIoClasses, problems);
    require_range(member_path(at, "priority"), io_priority.priority, 0, 7, problems);
}

// The kernel takes a priority for the real-time policies alone, and times for SCHED_DEADLINE alone.
void validate_scheduler(const Scheduler& scheduler, std::string_view at, Problems& problems) {
    require_known(member_path(at, "policy"), scheduler.policy, kSchedulerPolicies, problems);
    require_all_known(member_path(at, "flags"), scheduler.flags, kSchedulerFlags, problems);
    require_range(member_path(at, "nice"), scheduler.nice, -20, 19, problems);
    const bool real_time = scheduler.policy == "SCHED_FIFO" || scheduler.policy == "SCHED_RR";
    if (real_time) {
        require_range(member_path(at, "priority"), scheduler.priority, 1, 99, problems);
    } else if (scheduler.priority != 0) {
        problems.add(member_path(at, "priority"),
                     expected_but_found(scheduler.priority, "0, except for SCHED_FIFO and SCHED_RR"));
    }
    const bool has_times = scheduler.runtime != 0 || scheduler.deadline != 0 || scheduler.period != 0;
    if (has_times && scheduler.policy != "SCHED_DEADLINE") {
        problems.add(std::string(at), "runtime, deadline and period are for SCHED_DEADLINE only");
    }
}

}  // namespace

void validate_process(const Process& process, std::string_view at, Problems& problems) {
    validate_args(process.args, member_path(at, "args"), problems);
    validate_env(process.env, member_path(at, "env"), problems);
    require_absolute(member_path(at, "cwd"), process.cwd, problems);
    validate_rlimits(process.rlimits, member_path(at, "rlimits"), problems);
    if (process.terminal && process.console_size) {  // without a terminal the size is to be ignored
        const std::string size = member_path(at, "consoleSize");
        require_range(member_path(size, "height"), process.console_size->height, 0, 65535, problems);
        require_range(member_path(size, "width"), process.console_size->width, 0, 65535, problems);
    }
    validate_user(process.user, member_path(at, "user"), problems);
    if (process.oom_score_adj) {
        require_range(member_path(at, "oomScoreAdj"), *process.oom_score_adj, -1000, 1000, problems);
    }
    if (process.io_priority) validate_io_priority(*process.io_priority, member_path(at, "ioPriority"), problems);
    if (process.scheduler) validate_scheduler(*process.scheduler, member_path(at, "scheduler"), problems);
    if (process.exec_cpu_affinity) {
        const std::string affinity = member_path(at, "execCPUAffinity");
        require_index_list(member_path(affinity, "initial"), process.exec_cpu_affinity->initial, problems);
        require_index_list(member_path(affinity, "final"), process.exec_cpu_affinity->final, problems);
    }
}

}  // namespace pinfold
