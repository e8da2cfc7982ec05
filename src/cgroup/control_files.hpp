// Groups as directories of either version of cgroups: the control files in them, read in as few system calls as
// possible, the processes in them, and the groups below.
#pragma once

#include <sys/types.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.hpp"
#include "cgroup/path.hpp"
#include "pinfold/result.hpp"
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

}  // namespace pinfold
