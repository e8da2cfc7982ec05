// Who holds a job to its limits.
#include "sandbox/rlimit_fallback.hpp"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/resource.h>
#include <sys/statfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <set>

#include "base/fs.hpp"
#include "base/strings.hpp"
#include "base/units.hpp"
#include "cgroup/control_files.hpp"
#include "kernel/safe_path.hpp"
#include "pinfold/generate.hpp"
#include "policy/host_path.hpp"

namespace pinfold {

namespace {

constexpr uint64_t kMegabyte = 1 << 20;
// Programs reserve far more addresses than they use: each memory of WebAssembly takes 10 GiB. What they share with each
// other RLIMIT_DATA does not count: this bounds it for each of them, and the supervisor adds up what they use, with the
// tables of pages that addresses cost.
constexpr uint64_t kReserved = uint64_t{1} << 40;
// Of a sandbox that stays without a command nobody adds up anything.
constexpr uint64_t kReservedUnwatched = uint64_t{4} << 30;

// The controllers that this caller can use: those that a normal user was given, all that root finds.
std::string usable_controllers(const CgroupHost& host) {
    std::string found;
    if (!host.writable) return found;
    for (const auto& [controller, mount] : host.v1) found += concat(controller, ' ');
    if (!host.v1.empty()) return found + host.controllers;
    if (host.mount.empty()) return found;
    const Result<std::string> list = read_control(AT_FDCWD, concat(host.mount, host.home, "/cgroup.controllers"));
    return list ? *list : found;
}

void hold_memory_by_rlimits(uint64_t memory, bool is_watched, Process& process) {
    const uint64_t addresses = memory + (is_watched ? kReserved : kReservedUnwatched);
    process.rlimits.push_back({"RLIMIT_DATA", memory, memory});
    process.rlimits.push_back({"RLIMIT_AS", addresses, addresses});
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
std::string size_of(const std::vector<UniqueFd>& disks) {
    uint64_t sum = 0;
    for (const UniqueFd& disk : disks) {
        struct statfs info {};
        if (::fstatfs(disk.get(), &info) != 0) return {};
        sum += uint64_t(info.f_blocks) * uint64_t(info.f_bsize);
    }
    return disks.empty() ? std::string() : std::to_string(sum);
}

EnforcedLimit disk_limit(const SandboxJob& job, const std::vector<UniqueFd>& disks) {
    const std::string size = size_of(disks);
    const char* holder = size.empty() ? "" : job.scratch.empty() ? "tmpfs" : "ext4";
    return {"disk_mb", std::to_string(job.limits.disk_mb), holder, size};
}

template <class Process>
std::string network_namespace(const Process& process) {
    return link_target(concat("/proc/", process, "/ns/net"));
}

}  // namespace

EnforcedLimit time_limit(std::string name, Seconds time) {
    return {std::move(name), decimal(time.count()), "timer", decimal(time.count())};
}

EnforcedLimit printed_limit(uint64_t bytes) {
    return {"output_bytes", std::to_string(bytes), "pipe", std::to_string(bytes)};
}

// What is bound there is a disk of the host's, of which the job has no share.
static bool is_bound(std::string_view path, const std::vector<HostBind>& binds) {
    return std::ranges::any_of(binds,
                               [&](const HostBind& bind) { return is_within(path, plain_path(bind.destination)); });
}

std::vector<UniqueFd> open_disks(pid_t pid, const SandboxJob& job) {
    Result<UniqueFd> fd = open_at(AT_FDCWD, concat("/proc/", pid, "/root"), O_PATH | O_DIRECTORY);
    if (!fd) return {};
    const RootFd root(std::move(fd).value());
    std::vector<UniqueFd> disks;
    for (const char* path : {"/tmp", "/dev/shm", kWorkspace, "/"}) {
        if (is_bound(path, job.binds) || (!job.writable_root && std::string_view(path) == "/")) continue;
        Result<UniqueFd> directory = root.open(path, O_PATH | O_DIRECTORY);
        if (!directory) return {};
        disks.push_back(std::move(directory).value());
    }
    return disks;
}

namespace {

// Of a tmpfs the last page can be had. ext4 refuses a write as a whole that has no room, up to 2 MiB with small blocks.
uint64_t too_few_blocks(const struct statfs& info) {
    constexpr uint64_t kLargestWrite = 2 << 20;
    if (info.f_type != EXT4_SUPER_MAGIC) return 0;
    return std::max(uint64_t(info.f_blocks) / 32, kLargestWrite / uint64_t(info.f_bsize));
}

bool is_full(const struct statfs& info) {
    return info.f_blocks != 0 && (uint64_t(info.f_bfree) <= too_few_blocks(info) || info.f_ffree == 0);
}

}  // namespace

bool is_any_full(const std::vector<UniqueFd>& disks) {
    return std::ranges::any_of(disks, [](const UniqueFd& disk) {
        struct statfs info {};
        return ::fstatfs(disk.get(), &info) == 0 && is_full(info);
    });
}

namespace {

constexpr const char* kProcessors = "cpu_cores";  // the one limit that nothing but a cgroup can hold
constexpr const char* kDisk = "disk_mb";          // and the one that only a file system of the job's own can

Result<void> check_allowed(const SandboxJob& job) {
    for (const std::string& name : job.allow_unenforced) {
        if (name != kProcessors && name != kDisk)
            return plain_error(concat("--allow-unenforced ", quoted(name),
                                      ": expected a limit that may not be held: ", kProcessors, " or ", kDisk));
    }
    return {};
}

// What was asked for is held, or it is an error; a default that cannot be held is told in the result.
bool must_be_held(const char* name, bool differs, const SandboxJob& job) {
    const auto names_it = [&](const std::vector<std::string>& names) {
        return std::ranges::find(names, name) != names.end();
    };
    return (differs || names_it(job.must_hold)) && !names_it(job.allow_unenforced);
}

Result<void> check_processors(const SandboxJob& job) {
    if (!must_be_held(kProcessors, job.limits.cpu_cores != ResourceLimits().cpu_cores, job)) return {};
    return plain_error(concat("limits: cpu_cores ", decimal(job.limits.cpu_cores),
                              " cannot be held: this user has no cgroup with the controller cpu"))
        .with_hint(
            "--allow-unenforced cpu_cores, or run as root, or in a unit with Delegate=yes: systemd-run --user "
            "--scope -p Delegate=yes ...");
}

}  // namespace

Result<void> check_disk(const SandboxJob& job) {
    if (!must_be_held(kDisk, job.limits.disk_mb != ResourceLimits().disk_mb, job)) return {};
    return plain_error(concat("limits: disk_mb ", job.limits.disk_mb,
                              " cannot be held: what --keep-files keeps has all the room that its directory has"))
        .with_hint("--allow-unenforced disk_mb, or keep the files on a file system of that size");
}

Result<void> fall_back_to_rlimits(const SandboxJob& job, const HostFacts& host, Spec& spec) {
    TRY(check_allowed(job));
    Resources& resources = spec.linux_.resources;
    *resources.pids_limit += 1;  // the sandbox init
    const std::string controllers = usable_controllers(host.cgroup);
    // Where a group holds it as well, it is the group that is to refuse: only that counts how often.
    const uint64_t more = has_word(controllers, "pids") ? 2 : 1;
    for (Rlimit& limit : spec.process->rlimits) {
        if (limit.type == "RLIMIT_NPROC") limit.soft = limit.hard += more;
    }
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
    if (lacks("cpu")) TRY(check_processors(job));
    if (lacks("memory")) {
        resources.memory = {};
        hold_memory_by_rlimits(job.limits.memory_mb * kMegabyte, !spec.process->args.empty(), *spec.process);
        if (spec.linux_.seccomp) forbid_hidden_memory(*spec.linux_.seccomp);
    }
    if (!host.cgroup.writable && job.cpu_timeout) hold_cpu_time_by_rlimit(*job.cpu_timeout, *spec.process);
    if (lacks("pids")) resources.pids_limit.reset();  // RLIMIT_NPROC is there in any case
    if (lacks("cpu")) resources.cpu = {};
    return {};
}

void read_group_again(const CgroupPath& place, std::vector<EnforcedLimit>& limits) {
    constexpr struct {
        const char* name;
        const char* v2;
        const char* v1;
    } kFiles[] = {{"memory_mb", "memory.max", "memory.limit_in_bytes"},
                  {"max_processes", "pids.max", "pids.max"},
                  {"cpu_cores", "cpu.max", "cpu.cfs_quota_us"}};
    for (EnforcedLimit& limit : limits) {
        const auto file = std::ranges::find_if(kFiles, [&](const auto& one) { return limit.name == one.name; });
        if (file == std::end(kFiles) || !limit.enforced_by.starts_with("cgroup")) continue;
        if (std::optional<GroupLimit> now = read_limit(place, file->v2, file->v1)) limit.value = std::move(now->value);
    }
}

std::vector<EnforcedLimit> read_back_limits(const SandboxJob& job, const Plan& plan, pid_t pid, bool watched,
                                            const std::vector<UniqueFd>& disks) {
    const ResourceLimits& limits = job.limits;
    const CgroupPath& place = plan.cgroup.place;
    const auto memory = read_limit(place, "memory.max", "memory.limit_in_bytes");
    const auto processes = read_limit(place, "pids.max", "pids.max");
    const bool own_network = plan.namespaces.creates(CLONE_NEWNET);
    std::vector<EnforcedLimit> all = {
        by_group("cpu_cores", decimal(limits.cpu_cores), read_limit(place, "cpu.max", "cpu.cfs_quota_us")),
        memory_limit(limits.memory_mb, memory, watched),
        disk_limit(job, disks),
        {"network_enabled", limits.network_enabled ? "true" : "false", own_network ? "namespace" : "",
         network_namespace(pid)},
        by_group_or_rlimit("max_processes", limits.max_processes, processes, pid, RLIMIT_NPROC),
        time_limit("timeout_seconds", Seconds(limits.timeout_seconds)),
    };
    if (job.cpu_timeout) all.push_back(time_limit("cpu_timeout_seconds", *job.cpu_timeout));
    if (job.output_limit != 0) all.push_back(printed_limit(job.output_limit));
    return all;
}

std::vector<EnforcedLimit> read_back_external(const SandboxJob& job, const CgroupPath& place, pid_t pid) {
    const ResourceLimits& limits = job.limits;
    const std::string disk = size_of(open_disks(pid, job));
    const std::string network = network_namespace(pid);
    const bool own_network = !network.empty() && network != network_namespace("self");
    std::vector<EnforcedLimit> all = {
        by_group_or_runtime("cpu_cores", decimal(limits.cpu_cores), read_limit(place, "cpu.max", "cpu.cfs_quota_us")),
        by_group_or_runtime("memory_mb", std::to_string(limits.memory_mb),
                            read_limit(place, "memory.max", "memory.limit_in_bytes")),
        {"disk_mb", std::to_string(limits.disk_mb), disk.empty() ? "runtime" : "tmpfs", disk},
        {"network_enabled", limits.network_enabled ? "true" : "false", own_network ? "namespace" : "", network},
        by_group_or_runtime("max_processes", std::to_string(limits.max_processes),
                            read_limit(place, "pids.max", "pids.max")),
        time_limit("timeout_seconds", Seconds(limits.timeout_seconds)),
    };
    if (job.cpu_timeout) all.push_back(time_limit("cpu_timeout_seconds", *job.cpu_timeout));
    if (job.output_limit != 0) all.push_back(printed_limit(job.output_limit));
    return all;
}

}  // namespace pinfold
