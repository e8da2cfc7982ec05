// Groups as directories of either version of cgroups: the control files in them, read in as few system calls as
// possible, the processes in them, and the groups below.
#pragma once

#include <sys/types.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.hpp"
#include "cgroup/path.hpp"
#include "pinfold/result.hpp"
#include "pinfold/spec.hpp"
#include "pinfold/unique_fd.hpp"

namespace pinfold {

inline constexpr unsigned kCgroupMode = 0755;  // of new groups

// A point in time that waiting for the kernel does not pass.
class Deadline {
public:
    explicit Deadline(std::chrono::milliseconds patience) : end_(monotonic_ns() + patience.count() * 1'000'000) {}

    int64_t left_ms() const { return std::max<int64_t>(0, (end_ - monotonic_ns()) / 1'000'000); }

private:
    int64_t end_;
};

// "/a/b" for "a//b/": clean and below the top, or an error. What is removed later goes through here as well.
Result<std::string> clean_cgroup_path(std::string_view path);

// The kernel gives out a control file whole at the first read; longer than 4 KiB are only lists of processes,
// which a caller reads again until the group is empty.
Result<std::string> read_control(int dir, const std::string& path);

// The same for files that may be longer and are read only once.
Result<std::string> read_long_control(int dir, const std::string& path);

// The group's directory in cgroup v2, or in one of v1's hierarchies where there is no v2; and a handle (O_PATH) on it:
// what is below it is reached by openat.
Result<std::string> directory_of(const CgroupPath& place);
Result<UniqueFd> open_group(const CgroupPath& place);

// The error is that of a file or directory whose group has just been removed.
bool has_vanished(const Error& error);

// Makes a group by `make_once`, which makes those above it first. Other containers come and go meanwhile, and the last
// one to leave removes the parent that all share: then it is tried again. True: the group is a new one.
Result<bool> make_group(const std::function<Result<bool>()>& make_once);

// Each calls visit with one name after the other until it returns false: groups directly below, or control files.
using Visitor = std::function<bool(std::string_view name)>;
Result<void> visit_children(int group, const Visitor& visit);
Result<void> visit_files(int group, const Visitor& visit);

// The line "key 1" is in the text of a cgroup.events file.
bool has_event(std::string_view events, std::string_view key);

// What the line "key N" in a file such as memory.events says; 0 where there is none.
uint64_t event_count(std::string_view events, std::string_view key);

// The word is in a list as cgroup.controllers has it.
bool has_word(std::string_view list, std::string_view word);

// The processes in a list as cgroup.procs has it. Those that our PID namespace does not see are listed as 0, which
// kill() would take for our own process group: they are left out.
std::vector<pid_t> pids_in(std::string_view list);

// Every process in the group and in the groups below it, by pid in ascending order, as this PID namespace numbers them:
// those that it does not see are left out. A group that is absent holds nobody.
Result<std::vector<pid_t>> group_processes(const CgroupPath& place);

// The group that a process is in, as cgroup v2 has it.
Result<std::string> group_of(pid_t pid);

// An inotify descriptor that is readable when something directly in the directory, or that itself, was removed.
Result<UniqueFd> watch_removals(const std::string& directory);

// Reads what a descriptor that does not block has. True: there was something.
bool discard(const UniqueFd& source);

// Removes the group `top` directly below `parent`, and all below it, leaves first. Those that hold processes are given
// to `empty`, one descriptor after the other, which puts an end to what runs in that one group.
using EmptyGroup = std::function<Result<void>(int group)>;
Result<void> remove_tree(UniqueFd parent, const std::string& top, const Deadline& deadline, const EmptyGroup& empty);

// What a container has used, in few numbers, and what it may use, whichever version of cgroups has the controller.

// Empty where no controller counts it.
struct GroupUsage {
    std::optional<uint64_t> cpu_usec;
    std::optional<uint64_t> peak_memory;     // bytes
    std::optional<uint64_t> peak_processes;  // threads count too
    std::optional<uint64_t> read_bytes;
    std::optional<uint64_t> written_bytes;
    std::optional<uint64_t> throttled;      // periods in which its share of the processors was used up
    std::optional<uint64_t> refused_forks;  // because of the limit on processes
};
GroupUsage measure_usage(const CgroupPath& place);
std::optional<uint64_t> measure_cpu(const CgroupPath& place);

// A limit as the kernel has it now: memory, pids, or cpu ("max" where there is none).
struct GroupLimit {
    std::string value;
    bool v1 = false;  // of cgroup v1
};
std::optional<GroupLimit> read_limit(const CgroupPath& place, const std::string& v2_file, const std::string& v1_file);

// What the kernel has counted of a group that ran out of memory.
struct OomCount {
    uint64_t kills = 0;      // processes of the group that were killed
    bool at_limit = false;   // it was the group's own limit, not one above it nor the host's memory
    uint64_t limit = 0;      // in bytes; 0: none
    bool with_swap = false;  // that limit is of memory and swap together
};

// Zeros where the container has no group, or that no memory controller.
OomCount count_oom(const CgroupPath& place);

// Where this host keeps its cgroup hierarchies, and systemd its slices in them.

struct SystemdHost {
    bool running = false;
    bool user = false;  // the caller's own manager, not the system's
    std::string top;    // the group that the manager's slices lie in: empty, or ".../user@1000.service"
};

struct CgroupHost {
    std::string mount;          // "/sys/fs/cgroup" or "/sys/fs/cgroup/unified"; empty: cgroup v2 is mounted at neither
    bool hybrid = false;        // v1 hierarchies beside it hold (some of) the controllers
    bool writable = true;       // this process may make groups, at the top or below `home`
    StringMap v1{};             // controllers of cgroup v1, each with the mount of its hierarchy
    std::string controllers{};  // of cgroup v2, as cgroup.controllers lists them; known only where v1 has some as well
    std::string home{};         // in cgroup v2, "/user.slice/...": all that a normal user may write to; empty: the top
    SystemdHost systemd{};      // looked for only where it is asked for

    bool mounts_any() const { return !mount.empty() || !v1.empty(); }
};

Result<CgroupHost> find_cgroup_host();

// `user`: the caller is not root on this host, so its own manager is meant.
SystemdHost find_systemd_host(bool user);

// The pure parts of that, from the texts of /proc/1/cgroup and /proc/self/uid_map.
std::string system_manager_top(std::string_view group_of_init);
std::string user_manager_top(std::string_view system_top, uid_t uid);
uid_t uid_on_host(std::string_view uid_map, uid_t uid);

}  // namespace pinfold
