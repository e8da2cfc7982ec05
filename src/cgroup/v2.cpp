// A group in cgroup v2, made by files: its controllers, limits and devices, its freezer, its end.
#include "cgroup/v2.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/fs.hpp"
#include "base/log.hpp"
#include "base/strings.hpp"
#include "cgroup/control_files.hpp"
#include "cgroup/device_program.hpp"
#include "cgroup/v1.hpp"

namespace pinfold {

namespace {

constexpr const char* kPassedOn = "/cgroup.subtree_control";
constexpr std::chrono::seconds kKillPatience{5};
constexpr int64_t kKillAgainMs = 50;
constexpr int64_t kDyingMs = 1000;

std::vector<std::string> missing_words(std::string_view list, const std::vector<std::string>& wanted) {
    std::vector<std::string> missing;
    std::ranges::copy_if(wanted, std::back_inserter(missing), [&](const auto& word) { return !has_word(list, word); });
    return missing;
}

// "linux.resources.memory.limit": what a controller is asked for.
std::string properties_under(const std::vector<std::string>& controllers, const CgroupPlan& plan) {
    std::vector<CgroupWrite> asking;
    std::ranges::copy_if(plan.writes, std::back_inserter(asking), [&](const CgroupWrite& write) {
        return std::ranges::find(controllers, controller_of(write.file)) != controllers.end();
    });
    return properties_of(asking);
}

std::vector<std::string> words_of(std::string_view list) {
    while (list.ends_with('\n')) list.remove_suffix(1);
    std::vector<std::string> words;
    for (const std::string_view word : split(list, ' ')) {
        if (!word.empty()) words.emplace_back(word);
    }
    return words;
}

// Passes on what limits need, or fails.
Result<void> enable_needed(int mount, const std::string& group, std::string_view enabled, const CgroupPlan& plan) {
    const std::vector<std::string> missing = missing_words(enabled, plan.controllers);
    if (missing.empty()) return {};
    const auto written = write_file_at(mount, group + kPassedOn, concat("+", join(missing, " +")));
    if (written) return {};
    const std::string name = group == "." ? plan.place.mount : concat(plan.place.mount, "/", group);
    if (written.error().code != EBUSY) return Error(written.error()).within(properties_under(missing, plan));
    return plain_error(concat(properties_under(missing, plan), ": cgroup ", name,
                              " holds processes, so it cannot pass '", join(missing, "', '"),
                              "' on to groups below it"))
        .with_hint("move them into a group of their own, or set linux.cgroupsPath below another group");
}

// Passes all that the host has on to the groups below: a container without limits is to be counted, too. Written only
// where missing: a group that belongs to somebody else may well be readable only.
Result<void> enable_controllers(int mount, const std::string& group, const std::vector<std::string>& available,
                                const CgroupPlan& plan) {
    if (available.empty()) return {};
    const std::string enabled = TRY(read_control(mount, group + kPassedOn));
    const std::vector<std::string> missing = missing_words(enabled, available);
    if (missing.empty()) return {};
    if (write_file_at(mount, group + kPassedOn, concat("+", join(missing, " +")))) return {};
    TRY(enable_needed(mount, group, enabled, plan));
    for (const std::string& controller : missing) {
        if (!write_file_at(mount, group + kPassedOn, "+" + controller)) {
            log_debug(concat("cgroup ", group, " does not pass ", controller, " on"));
        }
    }
    return {};
}

// Makes every group above the container's own that is missing, and lets each pass the controllers on: those that limits
// need, or it is an error, and as many others as it can.
Result<void> make_ancestors(int mount, const CgroupPlan& plan) {
    const std::string& path = plan.place.path;
    const std::vector<std::string> available =
        words_of(TRY_IN(plan.place.mount, read_control(mount, "cgroup.controllers")));
    TRY(enable_controllers(mount, ".", available, plan));
    for (size_t end = path.find('/', 1); end != std::string::npos; end = path.find('/', end + 1)) {
        const std::string group = path.substr(1, end - 1);
        if (::mkdirat(mount, group.c_str(), kCgroupMode) != 0 && errno != EEXIST) {
            return errno_error(concat("make cgroup ", plan.place.mount, '/', group));
        }
        TRY(enable_controllers(mount, group, available, plan));
    }
    return {};
}

// True: the group is a new one.
Result<bool> make_group_once(int mount, const CgroupPlan& plan) {
    TRY(make_ancestors(mount, plan));
    if (::mkdirat(mount, plan.place.path.c_str() + 1, kCgroupMode) == 0) return true;
    if (errno == EEXIST) return false;
    return errno_error(concat("make cgroup ", plan.place.mount, plan.place.path));
}

// "max" and no such file both mean that nothing is limited.
int64_t current(int group, const std::string& file) {
    const Result<std::string> text = read_control(group, file);
    return text ? parse_number<int64_t>(split(*text, '\n')[0]).value_or(kNoMaximum) : kNoMaximum;
}

MemoryNow memory_now(int group) {
    const int64_t limit = current(group, "memory.max");
    const int64_t swap = current(group, "memory.swap.max");
    const int64_t used = std::max<int64_t>(0, current(group, "memory.current"));
    const int64_t swapped = std::max<int64_t>(0, current(group, "memory.swap.current"));
    const bool limited = limit != kNoMaximum && swap != kNoMaximum;
    return {limit, limited ? limit + swap : kNoMaximum, used, used + swapped};
}

// The kernel has both in one file, "QUOTA PERIOD".
void complete_cpu(int group, CpuLimits& cpu) {
    const bool has_quota = cpu.quota.value_or(0) != 0;
    const bool has_period = cpu.period.value_or(0) != 0;
    const Result<std::string> text = read_control(group, "cpu.max");
    if (has_quota == has_period || !text) return;
    const std::vector<std::string_view> words = split(split(*text, '\n')[0], ' ');
    if (words.size() != 2) return;
    if (!has_quota) cpu.quota = parse_number<int64_t>(words[0]).value_or(kNoMaximum);
    else cpu.period = parse_number<uint64_t>(words[1]);
}

// Adds the zeros that take something back. An idle group has no weight, so it stops to be one before it gets one.
void add_zeros(const CpuLimits& cpu, std::vector<CgroupWrite>& writes) {
    if (cpu.burst == 0U) writes.push_back({"cpu.max.burst", "0", "linux.resources.cpu.burst"});
    if (cpu.idle == 0) writes.insert(writes.begin(), {"cpu.idle", "0", "linux.resources.cpu.idle"});
}

Result<std::vector<CgroupWrite>> plan_update(int group, Resources resources) {
    TRY(complete_memory(memory_now(group), resources.memory));
    complete_cpu(group, resources.cpu);
    if (resources.pids_limit == 0) resources.pids_limit.reset();
    std::vector<CgroupWrite> writes = TRY(v2_writes(resources));
    add_zeros(resources.cpu, writes);
    // Without the file, the group is as the kernel made it already.
    std::erase_if(writes, [&](const CgroupWrite& write) {
        return is_v2_default(write) && ::faccessat(group, write.file.c_str(), F_OK, 0) != 0;
    });
    return writes;
}

std::optional<uint64_t> amount_of(std::string_view value) {
    const std::string_view word = value.substr(0, value.find_first_of(" \n"));
    return word == "max" ? UINT64_MAX : parse_number<uint64_t>(word);
}

bool lowers_a_limit(int group, const CgroupWrite& write) {
    if (write.file.find(".max") == std::string::npos) return false;
    const Result<std::string> old = read_control(group, write.file);
    const auto before = old ? amount_of(*old) : std::nullopt;
    const auto after = amount_of(write.value);
    return before && after && *after < *before;
}

// Gives before it takes: a process must not be killed for memory that may soon be swapped out. What is lowered comes
// in the reverse order, since the kernel keeps cpu.max.burst within cpu.max at every moment.
void sort_writes(int group, std::vector<CgroupWrite>& writes) {
    const auto lowering = std::stable_partition(
        writes.begin(), writes.end(), [&](const CgroupWrite& write) { return !lowers_a_limit(group, write); });
    std::reverse(lowering, writes.end());
}

// Reads an open cgroup.events: whether it has the line "key 1". ENODEV: the group is gone.
Result<bool> read_event(int events, std::string_view key) {
    char text[256];
    const ssize_t got = ::pread(events, text, sizeof text, 0);
    if (got < 0) return errno_error("read cgroup.events");
    return has_event(std::string_view(text, size_t(got)), key);
}

void await_change(int events, int64_t patience_ms) {
    pollfd change{events, POLLPRI, 0};
    ::poll(&change, 1, static_cast<int>(patience_ms));
}

// The write returns at once; cgroup.events tells when the last process has followed. False: not in time.
Result<bool> await_frozen(int group, bool wanted, std::chrono::milliseconds patience) {
    const Deadline deadline(patience);
    const UniqueFd events = TRY(open_at(group, "cgroup.events", O_RDONLY));
    for (;;) {
        if (TRY(read_event(events.get(), "frozen")) == wanted) return true;
        if (deadline.left_ms() == 0) return false;
        await_change(events.get(), deadline.left_ms());
    }
}

// Ends what is in this very group, one by one.
Result<void> kill_members(int group, const Deadline& deadline) {
    const UniqueFd events = TRY(open_at(group, "cgroup.events", O_RDONLY));
    for (;;) {
        if (!TRY(read_event(events.get(), "populated"))) return {};
        if (deadline.left_ms() == 0) {
            return plain_error(concat("processes are still there ", kKillPatience.count(), " s after SIGKILL"))
                .with_hint("one that waits for a device or a file server cannot be killed; try again later");
        }
        const std::string list = TRY(read_control(group, "cgroup.procs"));
        for (const pid_t pid : pids_in(list)) ::kill(pid, SIGKILL);
        await_change(events.get(), std::min(deadline.left_ms(), kKillAgainMs));
    }
}

// Somebody else may remove it meanwhile: an exec its own group, or another delete.
Result<void> empty_group(int group, const Deadline& deadline) {
    Result<void> emptied = kill_members(group, deadline);
    return !emptied && has_vanished(emptied.error()) ? Result<void>() : emptied;
}

Result<void> remove_busy(const std::string& directory) {
    const Deadline deadline(kKillPatience);
    const size_t slash = directory.rfind('/');
    UniqueFd parent(::open(directory.substr(0, slash).c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    if (!parent) return errno == ENOENT ? Result<void>() : errno_error(concat("open ", directory.substr(0, slash)));
    const std::string name = directory.substr(slash + 1);
    const UniqueFd group(::openat(parent.get(), name.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    if (!group) return errno == ENOENT ? Result<void>() : errno_error(concat("open ", name));
    // The whole tree at once, against which no fork can race. Absent before Linux 5.14.
    if (const auto killed = write_file_at(group.get(), "cgroup.kill", "1"); !killed && !has_vanished(killed.error())) {
        return killed;
    }
    return remove_tree(std::move(parent), name, deadline, [&](int leaf) { return empty_group(leaf, deadline); });
}

}  // namespace

Result<void> V2Group::check_controllers(int mount, const CgroupPlan& plan) {
    if (plan.controllers.empty()) return {};
    const std::string available = TRY_IN(plan.place.mount, read_control(mount, "cgroup.controllers"));
    const std::vector<std::string> missing = missing_words(available, plan.controllers);
    if (missing.empty()) return {};
    return plain_error(concat(properties_under(missing, plan), ": this host's cgroup v2 at ", plan.place.mount,
                              " has no '", join(missing, "', '"),
                              missing.size() == 1 ? "' controller" : "' controllers"))
        .with_hint(plan.hybrid ? "nor is it mounted as cgroup v1 at /sys/fs/cgroup: mount it there, boot with "
                                 "systemd.unified_cgroup_hierarchy=1, or drop the limit"
                               : "enable it in the kernel or in the group above this mount, or drop the limit");
}

Result<void> V2Group::filter_devices(int group, const CgroupPlan& plan) {
    if (!plan.filter_devices) return {};
    const auto attached = attach_device_program(group, device_program(plan.device_rules));
    if (attached) return {};
    if (!plan.filter_may_fail || attached.error().code != EPERM) return attached;
    log_debug("devices are not filtered: this user may not load the program");
    return {};
}

Result<void> V2Group::refuse_frozen(std::string_view events) {
    if (!has_event(events, "frozen")) return {};
    return plain_error("is frozen, or a group above it is")
        .with_hint("thaw it (write 0 to its cgroup.freeze), or choose another linux.cgroupsPath");
}

Result<void> V2Group::delegate(int group, const std::optional<uid_t>& owner) {
    if (!owner) return {};
    if (::fchownat(group, "", *owner, gid_t(-1), AT_EMPTY_PATH) != 0) return errno_error("give it to its user");
    const Result<std::string> list = read_file("/sys/kernel/cgroup/delegate");
    const std::string files = list ? *list : "cgroup.procs\ncgroup.subtree_control\ncgroup.threads\n";
    for (const std::string_view file : split(files, '\n')) {
        if (file.empty() || ::fchownat(group, std::string(file).c_str(), *owner, gid_t(-1), 0) == 0) continue;
        if (errno != ENOENT) return errno_error(concat("give ", file, " to its user"));
    }
    return {};
}

Result<void> V2Group::make(const CgroupPlan& plan, NewGroup& group) {
    const UniqueFd mount = TRY(open_at(AT_FDCWD, place_.mount, O_PATH | O_DIRECTORY));
    TRY(check_controllers(mount.get(), plan));
    if (TRY(make_group([&] { return make_group_once(mount.get(), plan); }))) {
        group.made.mount = place_.mount;
        group.made.path = place_.path;
    }
    // A path of several names is safe here: the hierarchy has no symbolic links and no renaming.
    group.fd = TRY_IN(name(), open_at(mount.get(), place_.path.substr(1), O_PATH | O_DIRECTORY));
    const int fd = group.fd.get();
    const std::string events = TRY_IN(name(), read_control(fd, "cgroup.events"));
    if (has_event(events, "populated")) {
        return plain_error(concat(name(), ": already holds processes"))
            .with_hint("choose another linux.cgroupsPath or container id");
    }
    TRY_IN(name(), refuse_frozen(events));
    for (const CgroupWrite& write : plan.writes) TRY_IN(name(), write_limit(fd, write));
    TRY_IN(name(), filter_devices(fd, plan));
    TRY_IN(name(), delegate(fd, plan.owner));
    return {};
}

Result<void> V2Group::open() {
    fd_ = TRY(open_group(place_));
    return {};
}

Result<void> V2Group::provide_controllers(const std::vector<CgroupWrite>& writes) {
    CgroupPlan plan;
    plan.place = place_;
    plan.hybrid = TRY(find_cgroup_host()).hybrid;
    plan.writes = writes;
    plan.controllers = controllers_of(writes);
    if (plan.controllers.empty()) return {};
    const UniqueFd top = TRY(open_at(AT_FDCWD, place_.mount, O_PATH | O_DIRECTORY));
    const Result<void> checked = check_controllers(top.get(), plan);
    if (!checked && plan.hybrid && place_.v1.empty()) {
        return Error(checked.error())
            .with_hint(
                "what cgroup v1 has here is of use only to a container that was created with a limit, or with "
                "linux.cgroupsPath");
    }
    TRY(checked);
    return make_ancestors(top.get(), plan);
}

Result<void> V2Group::update_limits(const DividedResources& resources, Undo& undo, GroupLimits& written) {
    std::vector<CgroupWrite> writes = TRY(plan_update(fd_.get(), resources.v2));
    TRY(provide_controllers(writes));
    sort_writes(fd_.get(), writes);
    for (const CgroupWrite& write : writes) TRY_IN(name(), undo.set(fd_.get(), write));
    written.v2 = std::move(writes);
    return {};
}

Result<void> V2Group::update_devices(const DividedResources& resources) {
    const std::vector<DeviceRule>& rules = resources.v2.devices;
    if (!rules.empty()) TRY_IN(name(), replace_device_program(fd_.get(), device_program(rules)));
    return {};
}

bool V2Group::is_frozen() {
    if (!open()) return false;
    const Result<std::string> text = read_control(fd_.get(), "cgroup.freeze");
    return text && text->starts_with('1');
}

Result<void> V2Group::freeze(std::chrono::milliseconds patience) {
    TRY(open());
    const std::string step = "freeze " + name();
    TRY_IN(step, write_file_at(fd_.get(), "cgroup.freeze", "1"));
    const Result<bool> frozen = await_frozen(fd_.get(), true, patience);
    if (frozen && *frozen) return {};
    TRY_IN(step, write_file_at(fd_.get(), "cgroup.freeze", "0"));
    if (!frozen) return Error(frozen.error()).within(step);
    return plain_error(concat(step, ": not all processes had stopped after ", patience.count(), " ms"))
        .with_hint("one that waits for a device or a file server cannot be stopped; try again later");
}

Result<void> V2Group::thaw(std::chrono::milliseconds patience) {
    TRY(open());
    const std::string step = "thaw " + name();
    TRY_IN(step, write_file_at(fd_.get(), "cgroup.freeze", "0"));
    if (TRY_IN(step, await_frozen(fd_.get(), false, patience))) return {};
    return plain_error(concat(step, ": it was still frozen after ", patience.count(), " ms"))
        .with_hint("a group above it is frozen: write 0 to that one's cgroup.freeze");
}

bool V2Group::kill() { return write_file_at(AT_FDCWD, directory() + "/cgroup.kill", "1").has_value(); }

Result<void> V2Group::remove() {
    const std::string step = "remove " + name();
    if (::rmdir(directory().c_str()) == 0 || errno == ENOENT) return {};
    if (errno != EBUSY && errno != ENOTEMPTY) return errno_error(step);
    thaw_v1_tree(place_);  // what the freezer of cgroup v1 holds would not die
    TRY_IN(step, remove_busy(directory()));
    return {};
}

Result<void> V2Group::remove_empty() {
    if (const UniqueFd events(::open(concat(directory(), "/cgroup.events").c_str(), O_RDONLY | O_CLOEXEC)); events) {
        const Result<bool> populated = read_event(events.get(), "populated");
        if (!populated && !has_vanished(populated.error())) return populated.error();
        if (populated && *populated) await_change(events.get(), kDyingMs);
    }
    if (::rmdir(directory().c_str()) == 0 || errno == ENOENT) return {};
    return errno_error("remove " + name());
}

namespace {

bool is_delegated(const std::string& directory) {
    const auto is_others = [&](std::string_view name) {
        struct stat info {};
        if (::stat(concat(directory, name.empty() ? "" : "/", name).c_str(), &info) != 0) return errno != ENOENT;
        return info.st_uid != 0 || ((info.st_mode & S_IWGRP) != 0 && info.st_gid != 0) || (info.st_mode & S_IWOTH) != 0;
    };
    if (is_others("")) return true;
    const Result<UniqueFd> group = open_at(AT_FDCWD, directory, O_RDONLY | O_DIRECTORY);
    bool found = !group;
    const auto visit = [&](std::string_view name) { return !(found = is_others(name)); };
    return !group || !visit_files(group->get(), visit) || found;
}

}  // namespace

Result<void> leave_delegated_group() {
    const CgroupHost host = TRY(find_cgroup_host());
    const Result<std::string> own = group_of(::getpid());
    if (host.mount.empty() || !own || own->size() < 2) return {};
    for (size_t end = own->find('/', 1);; end = own->find('/', end + 1)) {
        const std::string group = own->substr(0, end);
        if (is_delegated(host.mount + group)) break;
        if (end == std::string::npos) return {};
    }
    const std::string top = concat(host.mount, "/cgroup.procs");
    const UniqueFd file = TRY(open_at(AT_FDCWD, top, O_WRONLY));
    Result<void> moved = write_all(file.get(), "0", top);
    if (moved) return moved;
    return std::move(moved).error().within(concat("leave the cgroup ", *own, ", which is another user's"));
}

}  // namespace pinfold
