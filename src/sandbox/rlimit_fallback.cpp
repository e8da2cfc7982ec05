// Who holds a job to its limits.
#include "sandbox/rlimit_fallback.hpp"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/statfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <set>

#include "base/fs.hpp"
#include "base/strings.hpp"
#include "cgroup/control_files.hpp"
#include "kernel/safe_path.hpp"
#include "pinfold/generate.hpp"

namespace pinfold {

namespace {

constexpr uint64_t kMegabyte = 1 << 20;
// Programs reserve far more addresses than they use. What they share with each other RLIMIT_DATA does not count: this
// bounds it for each of them, and the supervisor adds up what they use.
constexpr uint64_t kReserved = uint64_t{4} << 30;

// The controllers that a normal user was given.
std::string delegated_controllers(const CgroupHost& host) {
    if (!host.writable || host.mount.empty()) return {};
    const Result<std::string> list = read_control(AT_FDCWD, concat(host.mount, host.home, "/cgroup.controllers"));
    return list ? *list : std::string();
}

void hold_memory_by_rlimits(uint64_t memory, Process& process) {
    process.rlimits.push_back({"RLIMIT_DATA", memory, memory});
    process.rlimits.push_back({"RLIMIT_AS", memory + kReserved, memory + kReserved});
}

// Memory that lasts without being mapped by anyone is seen by nobody who adds up what is mapped. Programs find another
// way where a kernel has no such call; what the profile denies anyway it denies in its own words.
void forbid_hidden_memory(Seccomp& profile) {
    static const std::set<std::string> kCalls = {"memfd_create", "memfd_secret", "shmget", "ipc"};
    const auto denies = [](std::string_view action) {
        return action == "SCMP_ACT_ERRNO" || action == "SCMP_ACT_TRAP" || action.starts_with("SCMP_ACT_KILL");
    };
    std::set<std::string> left = kCalls;
    for (SyscallRule& rule : profile.syscalls) {
        if (denies(rule.action) && rule.args.empty())
            for (const std::string& name : rule.names) left.erase(name);
        else std::erase_if(rule.names, [&](const std::string& name) { return kCalls.contains(name); });
    }
    std::erase_if(profile.syscalls, [](const SyscallRule& rule) { return rule.names.empty(); });
    if (left.empty()) return;
    profile.syscalls.push_back(
        {.names = {left.begin(), left.end()}, .action = "SCMP_ACT_ERRNO", .errno_ret = ENOSYS, .args = {}});
}

// Of each process, in whole seconds; the group that would count them all does not exist.
void hold_cpu_time_by_rlimit(std::chrono::nanoseconds time, Process& process) {
    const auto seconds = static_cast<uint64_t>(std::chrono::ceil<std::chrono::seconds>(time).count());
    process.rlimits.push_back({"RLIMIT_CPU", seconds, seconds + 1});
}

std::string decimal(double number) {
    char text[32];
    return {text, std::to_chars(std::begin(text), std::end(text), number).ptr};
}

std::string rlimit_of(pid_t pid, __rlimit_resource resource) {
    rlimit limit{};
    if (::prlimit(pid, resource, nullptr, &limit) != 0) return {};
    return limit.rlim_max == RLIM_INFINITY ? "unlimited" : std::to_string(limit.rlim_max);
}

EnforcedLimit by_group(std::string name, std::string asked, const std::optional<GroupLimit>& limit) {
    if (!limit) return {std::move(name), std::move(asked), "", ""};
    return {std::move(name), std::move(asked), limit->v1 ? "cgroup1" : "cgroup2", limit->value};
}

EnforcedLimit by_group_or_rlimit(std::string name, uint64_t asked, const std::optional<GroupLimit>& limit, pid_t pid,
                                 __rlimit_resource resource) {
    if (limit) return by_group(std::move(name), std::to_string(asked), limit);
    return {std::move(name), std::to_string(asked), "rlimit", rlimit_of(pid, resource)};
}

// An rlimit holds a part of it, for each process: nothing to be called a limit of memory.
EnforcedLimit memory_limit(uint64_t asked, const std::optional<GroupLimit>& limit, bool watched) {
    if (limit || !watched) return by_group("memory_mb", std::to_string(asked), limit);
    return {"memory_mb", std::to_string(asked), "sampling", std::to_string(asked * kMegabyte)};
}

// What cannot be read was at least asked for.
EnforcedLimit by_group_or_runtime(std::string name, std::string asked, const std::optional<GroupLimit>& limit) {
    if (limit) return by_group(std::move(name), std::move(asked), limit);
    return {std::move(name), std::move(asked), "runtime", ""};
}

// The sizes of the file systems that a job writes to, as the kernel has them.
std::string disk_size(pid_t pid, bool writable_root) {
    Result<UniqueFd> fd = open_at(AT_FDCWD, concat("/proc/", pid, "/root"), O_PATH | O_DIRECTORY);
    if (!fd) return {};
    const RootFd root(std::move(fd).value());
    uint64_t sum = 0;
    for (const char* path : {"/tmp", kWorkspace, "/"}) {
        if (!writable_root && std::string_view(path) == "/") continue;
        const auto directory = root.open(path, O_PATH | O_DIRECTORY);
        struct statfs info {};
        if (!directory || ::fstatfs(directory->get(), &info) != 0) return {};
        sum += uint64_t(info.f_blocks) * uint64_t(info.f_bsize);
    }
    return std::to_string(sum);
}

template <class Process>
std::string network_namespace(const Process& process) {
    return link_target(concat("/proc/", process, "/ns/net"));
}

}  // namespace

Result<void> fall_back_to_rlimits(const SandboxJob& job, const HostFacts& host, Spec& spec) {
    Resources& resources = spec.linux_.resources;
    *resources.pids_limit += 1;  // the sandbox init
    for (Rlimit& limit : spec.process->rlimits) {
        if (limit.type == "RLIMIT_NPROC") limit.soft = limit.hard += 1;
    }
    if (!host.is_rootless()) return {};
    const std::string controllers = delegated_controllers(host.cgroup);
    std::vector<std::string> missing;
    for (const char* name : {"memory", "pids", "cpu"}) {
        if (!has_word(controllers, name)) missing.emplace_back(name);
    }
    if (missing.empty()) return {};
    if (job.require_cgroup) {
        return plain_error(concat("limits: no cgroup with the controllers ", join(missing, ", "),
                                  " can be written to by this user"))
            .with_hint("run as root, or in a unit with Delegate=yes: systemd-run --user --scope -p Delegate=yes ...");
    }
    const auto lacks = [&](const char* name) { return !has_word(controllers, name); };
    if (lacks("memory")) {
        resources.memory = {};
        hold_memory_by_rlimits(job.limits.memory_mb * kMegabyte, *spec.process);
        if (spec.linux_.seccomp) forbid_hidden_memory(*spec.linux_.seccomp);
    }
    if (!host.cgroup.writable && job.cpu_timeout) hold_cpu_time_by_rlimit(*job.cpu_timeout, *spec.process);
    if (lacks("pids")) resources.pids_limit.reset();  // RLIMIT_NPROC is there in any case
    if (lacks("cpu")) resources.cpu = {};
    return {};
}

std::vector<EnforcedLimit> read_back_limits(const SandboxJob& job, const Plan& plan, pid_t pid, bool watched) {
    const ResourceLimits& limits = job.limits;
    const CgroupPath& place = plan.cgroup.place;
    const auto memory = read_limit(place, "memory.max", "memory.limit_in_bytes");
    const auto processes = read_limit(place, "pids.max", "pids.max");
    const bool own_network = plan.namespaces.creates(CLONE_NEWNET);
    return {
        by_group("cpu_cores", decimal(limits.cpu_cores), read_limit(place, "cpu.max", "cpu.cfs_quota_us")),
        memory_limit(limits.memory_mb, memory, watched),
        {"disk_mb", std::to_string(limits.disk_mb), "tmpfs", disk_size(pid, job.writable_root)},
        {"network_enabled", limits.network_enabled ? "true" : "false", own_network ? "namespace" : "",
         network_namespace(pid)},
        by_group_or_rlimit("max_processes", limits.max_processes, processes, pid, RLIMIT_NPROC),
        {"timeout_seconds", decimal(limits.timeout_seconds), "timer", decimal(limits.timeout_seconds)},
    };
}

std::vector<EnforcedLimit> read_back_external(const SandboxJob& job, const CgroupPath& place, pid_t pid) {
    const ResourceLimits& limits = job.limits;
    const std::string disk = disk_size(pid, job.writable_root);
    const std::string network = network_namespace(pid);
    const bool own_network = !network.empty() && network != network_namespace("self");
    return {
        by_group_or_runtime("cpu_cores", decimal(limits.cpu_cores), read_limit(place, "cpu.max", "cpu.cfs_quota_us")),
        by_group_or_runtime("memory_mb", std::to_string(limits.memory_mb),
                            read_limit(place, "memory.max", "memory.limit_in_bytes")),
        {"disk_mb", std::to_string(limits.disk_mb), disk.empty() ? "runtime" : "tmpfs", disk},
        {"network_enabled", limits.network_enabled ? "true" : "false", own_network ? "namespace" : "", network},
        by_group_or_runtime("max_processes", std::to_string(limits.max_processes),
                            read_limit(place, "pids.max", "pids.max")),
        {"timeout_seconds", decimal(limits.timeout_seconds), "timer", decimal(limits.timeout_seconds)},
    };
}

}  // namespace pinfold
