// A container's groups in the hierarchies of cgroup v1. There is no way to kill such a group, its freezer tells nobody
// when it is done, and nobody is told that a group is empty: what is awaited is looked at again and again.
#include "cgroup/v1.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/fs.hpp"
#include "base/log.hpp"
#include "base/strings.hpp"
#include "cgroup/cgroup.hpp"
#include "cgroup/v1_limits.hpp"

namespace pinfold {

namespace {

constexpr std::chrono::seconds kKillPatience{5};
constexpr std::chrono::seconds kDying{1};
constexpr std::chrono::milliseconds kFreezing{200};
constexpr int64_t kKillAgainMs = 50;
constexpr int kFreezePauseMs = 1;
constexpr int kRemovePauseMs = 2;

bool is_blank(std::string_view text) { return text.find_first_not_of(" \n") == std::string_view::npos; }

// A new group of this controller has neither processors nor memory, and no process can enter it.
Result<void> inherit_cpuset(const std::string& group) {
    const std::string above = group.substr(0, group.rfind('/'));
    for (const char* file : {"/cpuset.cpus", "/cpuset.mems"}) {
        const std::string own = TRY(read_control(AT_FDCWD, group + file));
        if (!is_blank(own)) continue;
        const std::string inherited = TRY(read_control(AT_FDCWD, above + file));
        TRY(write_file_at(AT_FDCWD, group + file, inherited));
    }
    return {};
}

// Makes the group, with those above it. True: the group itself is a new one.
Result<bool> make_group_once(const std::string& mount, const std::string& path, bool has_cpuset) {
    for (size_t end = path.find('/', 1);; end = path.find('/', end + 1)) {
        const std::string group = mount + path.substr(0, end);
        const bool made = ::mkdir(group.c_str(), kCgroupMode) == 0;
        if (!made && errno != EEXIST) return errno_error(concat("make cgroup ", group));
        Result<void> usable = has_cpuset ? inherit_cpuset(group) : Result<void>();
        if (!usable) {
            if (made) ::rmdir(group.c_str());  // nobody else knows of it yet
            return std::move(usable).error().within(concat("cgroup ", group));
        }
        if (end == std::string::npos) return made;
    }
}

// The payload would share the group with them.
Result<void> refuse_other_processes(const CgroupPath& group) {
    const std::vector<pid_t> others = TRY(group_processes(group));
    if (others.empty()) return {};
    return plain_error("already holds processes").with_hint("choose another linux.cgroupsPath or container id");
}

// Some kernels take this limit and forget it.
Result<void> check_kernel_memory(int group, const CgroupWrite& write) {
    if (write.file != "memory.kmem.limit_in_bytes" || write.value == "-1") return {};
    const std::string kept = TRY_IN(write.property, read_control(group, write.file));
    if (!is_v1_unlimited(kept)) return {};
    return plain_error(concat(write.property, ": this kernel does not limit its own memory apart from the rest"))
        .with_hint("leave it out: linux.resources.memory.limit counts the kernel's memory as well");
}

// The kernel keeps some pairs in step at every moment: memory within memory and swap, a burst within its quota, a quota
// and its period within those of the group above. Which of two can go first depends on what is there; so what is
// refused is tried again as long as anything else gets through.
Result<void> write_limits(const V1GroupFds& groups, std::vector<CgroupWrite> writes, Undo& undo) {
    for (;;) {
        std::vector<CgroupWrite> refused;
        Result<void> why;
        for (CgroupWrite& write : writes) {
            const int group = groups.of(write.file);
            Result<void> written = undo.set(group, write);
            if (written) TRY(check_kernel_memory(group, write));
            if (written) continue;
            if (written.error().code != EINVAL) return written;
            if (why) why = std::move(written);
            refused.push_back(std::move(write));
        }
        if (refused.empty()) return {};
        if (refused.size() == writes.size()) return why;
        writes = std::move(refused);
    }
}

// No such file means that nothing is limited.
int64_t current(int group, const std::string& file) {
    const Result<std::string> text = read_control(group, file);
    if (!text || is_v1_unlimited(*text)) return kNoMaximum;
    return parse_number<int64_t>(split(*text, '\n')[0]).value_or(kNoMaximum);
}

MemoryNow memory_now(int group) {
    return {current(group, "memory.limit_in_bytes"), current(group, "memory.memsw.limit_in_bytes"),
            std::max<int64_t>(0, current(group, "memory.usage_in_bytes")),
            std::max<int64_t>(0, current(group, "memory.memsw.usage_in_bytes"))};
}

// Adds the zeros that take something back.
void add_zeros(const CpuLimits& cpu, std::vector<CgroupWrite>& writes) {
    if (cpu.burst == 0U) writes.push_back({"cpu.cfs_burst_us", "0", "linux.resources.cpu.burst"});
    if (cpu.idle == 0) writes.push_back({"cpu.idle", "0", "linux.resources.cpu.idle"});
}

Result<std::string> freezer_of(const CgroupPath& place) {
    const auto freezer = place.v1.find("freezer");
    if (freezer != place.v1.end()) return directory_of({freezer->second, place.path, {}, {}});
    return plain_error("no freezer is mounted: neither cgroup v2 nor v1's freezer")
        .with_hint("mount -t cgroup -o freezer cgroup /sys/fs/cgroup/freezer, before containers are created");
}

// Written again each time: a process that was born in between is only then frozen, too. False: not in time.
Result<bool> reach(const std::string& group, const char* state, std::chrono::milliseconds patience) {
    const Deadline deadline(patience);
    const std::string file = group + "/freezer.state";
    for (;;) {
        TRY(write_file_at(AT_FDCWD, file, state));
        const std::string reached = TRY(read_control(AT_FDCWD, file));
        if (reached.starts_with(state)) return true;
        if (deadline.left_ms() == 0) return false;
        ::poll(nullptr, 0, kFreezePauseMs);
    }
}

void await_end(pid_t pid, int64_t patience_ms) {
    const UniqueFd process(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
    pollfd end{process.get(), POLLIN, 0};
    if (process) ::poll(&end, 1, static_cast<int>(patience_ms));
}

// Pauses also in a group that is empty already: the last process may have left the list and not yet the group.
Result<void> kill_members(int group, const Deadline& deadline) {
    const Result<std::string> list = read_control(group, "cgroup.procs");
    if (!list && has_vanished(list.error())) return {};  // removed by somebody else
    if (!list) return list.error();
    pid_t last = 0;
    for (const pid_t pid : pids_in(*list)) {
        if (::kill(pid, SIGKILL) == 0) last = pid;
    }
    if (last > 0) await_end(last, std::min(deadline.left_ms(), kKillAgainMs));
    else ::poll(nullptr, 0, kRemovePauseMs);
    return {};
}

Result<void> remove_group(const std::string& directory, const Deadline& deadline) {
    if (::rmdir(directory.c_str()) == 0 || errno == ENOENT) return {};
    const size_t slash = directory.rfind('/');
    UniqueFd parent(::open(directory.substr(0, slash).c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    if (!parent) return errno == ENOENT ? Result<void>() : errno_error(concat("open ", directory.substr(0, slash)));
    return remove_tree(std::move(parent), directory.substr(slash + 1), deadline,
                       [&](int group) { return kill_members(group, deadline); });
}

Result<void> remove_empty_group(const std::string& directory, const Deadline& deadline) {
    while (::rmdir(directory.c_str()) != 0 && errno != ENOENT) {
        if (errno != EBUSY || deadline.left_ms() == 0) return errno_error(concat("remove cgroup ", directory));
        ::poll(nullptr, 0, kRemovePauseMs);
    }
    return {};
}

}  // namespace

Result<V1GroupFds> V1GroupFds::open(const CgroupPath& place) {
    V1GroupFds groups;
    for (const auto& [controller, mount] : place.v1) {
        groups.by_controller_[controller] = TRY(open_group({mount, place.path, {}, {}}));
    }
    return groups;
}

int V1GroupFds::of(std::string_view file) const {
    const auto found = by_controller_.find(controller_of(file));
    return found == by_controller_.end() ? -1 : found->second.get();
}

Result<void> V1Groups::make_groups(CgroupPath& made) const {
    const auto cpuset = place_.v1.find("cpuset");
    for (const std::string& mount : v1_mounts(place_)) {
        const bool has_cpuset = cpuset != place_.v1.end() && cpuset->second == mount;
        if (!TRY(make_group([&] { return make_group_once(mount, place_.path, has_cpuset); }))) {
            TRY_IN(concat("cgroup ", mount, place_.path), refuse_other_processes({mount, place_.path, {}, {}}));
            continue;
        }
        made.path = place_.path;
        for (const auto& [controller, its_mount] : place_.v1) {
            if (its_mount == mount) made.v1[controller] = mount;
        }
    }
    return {};
}

// A payload would never run.
Result<void> V1Groups::refuse_frozen() const {
    const auto freezer = place_.v1.find("freezer");
    if (freezer == place_.v1.end()) return {};
    const std::string group = freezer->second + place_.path;
    const std::string state = TRY(read_control(AT_FDCWD, group + "/freezer.state"));
    if (state.starts_with("THAWED")) return {};
    return plain_error(concat("cgroup ", group, ": is frozen, or a group above it is"))
        .with_hint("thaw it (write THAWED to its freezer.state), or choose another linux.cgroupsPath");
}

Result<void> V1Groups::make(const CgroupPlan& plan, NewGroup& group) {
    TRY(make_groups(group.made));
    TRY(refuse_frozen());
    TRY(open());
    Undo undo;
    TRY_IN(name(), write_limits(groups_, plan.v1_writes, undo));
    for (const CgroupWrite& write : plan.device_writes) TRY_IN(name(), write_limit(groups_.of(write.file), write));
    undo.commit();
    return {};
}

Result<void> V1Groups::add_process(pid_t pid) {
    for (const std::string& mount : v1_mounts(place_)) {
        const std::string group = mount + place_.path;
        TRY_IN(concat("cgroup ", group), write_file_at(AT_FDCWD, group + "/cgroup.procs", std::to_string(pid)));
    }
    return {};
}

Result<void> V1Groups::open() {
    groups_ = TRY(V1GroupFds::open(place_));
    return {};
}

Result<void> V1Groups::update_limits(const DividedResources& resources, Undo& undo, GroupLimits& written) {
    Resources wanted = resources.v1;
    TRY(complete_memory(memory_now(groups_.of("memory")), wanted.memory));
    if (wanted.pids_limit == 0) wanted.pids_limit.reset();
    std::vector<CgroupWrite> writes = TRY(v1_writes(wanted));
    add_zeros(wanted.cpu, writes);
    // Without the file, the group is as the kernel made it already.
    std::erase_if(writes, [&](const CgroupWrite& write) {
        return is_v1_default(write) && ::faccessat(groups_.of(write.file), write.file.c_str(), F_OK, 0) != 0;
    });
    TRY(check_v1_controllers(writes, place_.v1));
    TRY_IN(name(), write_limits(groups_, writes, undo));
    written.v1 = std::move(writes);
    return {};
}

// Thaws what it has frozen.
class V1Groups::FreezeGuard {
public:
    explicit FreezeGuard(V1Groups& groups) : groups_(groups) {}
    FreezeGuard(const FreezeGuard&) = delete;
    FreezeGuard& operator=(const FreezeGuard&) = delete;
    ~FreezeGuard() {
        if (!ours_) return;
        if (const auto thawed = groups_.thaw(kFreezePatience); !thawed) log_warning(thawed.error().message);
    }

    Result<void> begin() {
        if (groups_.is_frozen()) return {};
        TRY(groups_.freeze(kFreezePatience));
        ours_ = true;
        return {};
    }

private:
    V1Groups& groups_;
    bool ours_ = false;
};

Result<void> V1Groups::update_devices(const DividedResources& resources) {
    if (resources.v1.devices.empty()) return {};
    const std::vector<CgroupWrite> writes = TRY(v1_device_writes(resources.v1.devices));
    FreezeGuard frozen(*this);
    TRY(frozen.begin());
    for (const CgroupWrite& write : writes) TRY_IN(name(), write_limit(groups_.of(write.file), write));
    return {};
}

bool V1Groups::is_frozen() {
    const Result<std::string> group = freezer_of(place_);
    if (!group) return false;
    const Result<std::string> told = read_control(AT_FDCWD, *group + "/freezer.self_freezing");
    return told && told->starts_with('1');
}

Result<void> V1Groups::freeze(std::chrono::milliseconds patience) {
    const std::string group = TRY(freezer_of(place_));
    const std::string step = concat("freeze cgroup ", group);
    const Result<bool> frozen = reach(group, "FROZEN", patience);
    if (frozen && *frozen) return {};
    TRY_IN(step, write_file_at(AT_FDCWD, group + "/freezer.state", "THAWED"));
    if (!frozen) return Error(frozen.error()).within(step);
    return plain_error(concat(step, ": not all processes had stopped after ", patience.count(), " ms"))
        .with_hint("one that waits for a device or a file server cannot be stopped; try again later");
}

Result<void> V1Groups::thaw(std::chrono::milliseconds patience) {
    const std::string group = TRY(freezer_of(place_));
    const std::string step = concat("thaw cgroup ", group);
    if (TRY_IN(step, reach(group, "THAWED", patience))) return {};
    return plain_error(concat(step, ": it was still frozen after ", patience.count(), " ms"))
        .with_hint("a group above it is frozen: write THAWED to that one's freezer.state");
}

void V1Groups::thaw_for_kill() { thaw_v1_tree(place_); }

// Ends all that runs in the groups, of which every hierarchy has the same. It is frozen first, so that no fork outruns
// the killing. What this does not reach is left to those who empty one group after the other.
void V1Groups::kill_all(const Deadline& deadline) {
    const auto running = [&] {
        Result<std::vector<pid_t>> pids = group_processes(place_);
        return pids ? std::move(pids).value() : std::vector<pid_t>();
    };
    while (deadline.left_ms() > 0 && !running().empty()) {
        (void)freeze(kFreezing).has_value();
        const std::vector<pid_t> pids = running();
        for (const pid_t pid : pids) ::kill(pid, SIGKILL);
        thaw_for_kill();
        for (const pid_t pid : pids) await_end(pid, std::min(deadline.left_ms(), kKillAgainMs));
    }
}

Result<void> V1Groups::remove() {
    const Deadline deadline(kKillPatience);
    // Where there is a group in cgroup v2, it has had the same processes, and they have been killed there.
    if (place_.mount.empty()) kill_all(deadline);
    for (const std::string& mount : v1_mounts(place_)) {
        const std::string group = mount + place_.path;
        TRY_IN(concat("remove cgroup ", group), remove_group(group, deadline));
    }
    return {};
}

Result<void> V1Groups::remove_empty() {
    const Deadline deadline(kDying);
    for (const std::string& mount : v1_mounts(place_)) TRY(remove_empty_group(mount + place_.path, deadline));
    return {};
}

void thaw_v1_tree(const CgroupPath& place) {
    const Result<std::string> top = freezer_of(place);
    if (!top) return;
    std::vector<std::string> left = {*top};
    while (!left.empty()) {
        const std::string path = std::move(left.back());
        left.pop_back();
        const Result<UniqueFd> group = open_at(AT_FDCWD, path, O_PATH | O_DIRECTORY);
        if (!group) continue;
        (void)write_file_at(group->get(), "freezer.state", "THAWED").has_value();
        (void)visit_children(group->get(), [&](std::string_view name) {
            left.push_back(concat(path, '/', name));
            return true;
        }).has_value();
    }
}

// The group is told of an eventfd, which it signals.
Result<V1Oom> watch_v1_oom(const CgroupPath& place) {
    const UniqueFd group = TRY(open_group({place.v1.at("memory"), place.path, {}, {}}));
    V1Oom oom;
    oom.control = TRY(open_at(group.get(), "memory.oom_control", O_RDONLY));
    oom.signal = UniqueFd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (!oom.signal) return errno_error("make an eventfd");
    const std::string request = concat(oom.signal.get(), ' ', oom.control.get());
    TRY(write_file_at(group.get(), "cgroup.event_control", request));
    return oom;
}

}  // namespace pinfold
