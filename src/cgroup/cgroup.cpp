// Making a container's group: find the controllers, make the groups, set the limits, filter the devices.
#include "cgroup/cgroup.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "base/fs.hpp"
#include "base/log.hpp"
#include "base/strings.hpp"
#include "cgroup/control_files.hpp"
#include "cgroup/controllers.hpp"
#include "cgroup/device_program.hpp"
#include "cgroup/legacy_groups.hpp"
#include "cgroup/processes.hpp"
#include "cgroup/scope.hpp"
#include "cgroup/write_limit.hpp"

namespace pinfold {

namespace {

// Other containers come and go meanwhile, and the last one to leave removes the parent that all share.
constexpr int kAttempts = 100;

// Whether the group is a new one.
Result<bool> make_group_once(int mount, const CgroupPlan& plan) {
    TRY(make_ancestors(mount, plan));
    if (::mkdirat(mount, plan.place.path.c_str() + 1, kCgroupMode) == 0) return true;
    if (errno == EEXIST) return false;
    return errno_error(concat("make cgroup ", plan.place.mount, plan.place.path));
}

Result<bool> make_group(int mount, const CgroupPlan& plan) {
    for (int attempt = 1;; ++attempt) {
        Result<bool> made = make_group_once(mount, plan);
        const bool parent_vanished = !made && (made.error().code == ENOENT || made.error().code == ENODEV);
        if (!parent_vanished || attempt == kAttempts) return made;
    }
}

// A payload would never run.
Result<void> refuse_frozen(std::string_view events) {
    if (!has_event(events, "frozen")) return {};
    return plain_error("is frozen, or a group above it is")
        .with_hint("thaw it (write 0 to its cgroup.freeze), or choose another linux.cgroupsPath");
}

// Or it would share the group with strangers.
Result<void> refuse_busy(int group) {
    const std::string events = TRY(read_control(group, "cgroup.events"));
    if (has_event(events, "populated")) {
        return plain_error("already holds processes").with_hint("choose another linux.cgroupsPath or container id");
    }
    return refuse_frozen(events);
}

Result<void> apply_limits(int group, const std::vector<CgroupWrite>& writes) {
    for (const CgroupWrite& write : writes) TRY(write_limit(group, write));
    return {};
}

// The group itself and the files that the kernel names as safe to delegate. Never the limits.
Result<void> delegate(int group, const std::optional<uid_t>& owner) {
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

Result<void> apply_device_filter(int group, const CgroupPlan& plan) {
    if (!plan.filter_devices) return {};
    const auto attached = attach_device_program(group, device_program(plan.device_rules));
    if (attached) return {};
    if (!plan.filter_may_fail || attached.error().code != EPERM) return attached;
    log_debug("devices are not filtered: this user may not load the program");
    return {};
}

// Looked at before the start: with a process that is about to freeze in it, a slice does not count as frozen.
Result<void> refuse_frozen_slice(const CgroupPlace& place) {
    for (size_t end = place.path.rfind('/'); end != std::string::npos && end > 0;
         end = place.path.rfind('/', end - 1)) {
        const std::string slice = place.mount + place.path.substr(0, end);
        const Result<std::string> events = read_control(AT_FDCWD, slice + "/cgroup.events");
        if (!events) continue;  // systemd has yet to make it
        TRY_IN(concat("cgroup ", slice), refuse_frozen(*events));
        return {};
    }
    return {};
}

// systemd decides on the place, from what it knows better; all that follows goes by the place that was planned.
Result<void> check_place(const CgroupPlace& place, pid_t pid) {
    const std::string actual = TRY(group_of(pid));
    if (actual == place.path) return {};
    return plain_error(
        concat(place.scope, ": systemd put the container into the cgroup ", actual, ", not into ", place.path));
}

Result<void> apply_limits_to_scope(int group, const CgroupPlan& plan) {
    const std::string controllers = TRY(read_control(group, "cgroup.controllers"));
    for (const CgroupWrite& write : plan.writes) {
        Result<void> written = write_limit(group, write);
        if (written) continue;
        const std::string_view controller = controller_of(write.file);
        if (controller.empty() || has_word(controllers, controller)) return written;
        return std::move(written).error().with_hint(
            concat("systemd has not given the controller '", controller,
                   "' to the scope; a normal user has those that Delegate= of user@.service names"));
    }
    return {};
}

}  // namespace

Result<Cgroup> Cgroup::create(const CgroupPlan& plan) {
    Cgroup group;
    if (!plan.place.exists()) return group;
    group.place_ = plan.place;
    group.owner_ = ::getpid();
    Result<void> made = plan.place.mount.empty() ? Result<void>() : group.make_unified(plan);
    if (made && !plan.place.legacy.empty()) made = make_legacy_groups(plan, group.made_);
    if (made) return group;
    group.remove();
    remove_empty_home(plan.place);
    return std::move(made).error();
}

Result<void> Cgroup::make_unified(const CgroupPlan& plan) {
    const UniqueFd mount = TRY(open_at(AT_FDCWD, plan.place.mount, O_PATH | O_DIRECTORY));
    TRY(check_controllers(mount.get(), plan));
    if (!plan.place.scope.empty()) return refuse_frozen_slice(plan.place);
    if (TRY(make_group(mount.get(), plan))) {
        made_.mount = plan.place.mount;
        made_.path = plan.place.path;
    }
    // A path of several names is safe here: the hierarchy has no symbolic links and no renaming.
    const std::string name = concat("cgroup ", plan.place.mount, plan.place.path);
    fd_ = TRY_IN(name, open_at(mount.get(), plan.place.path.substr(1), O_PATH | O_DIRECTORY));
    TRY_IN(name, refuse_busy(fd()));
    TRY_IN(name, apply_limits(fd(), plan.writes));
    TRY_IN(name, apply_device_filter(fd(), plan));
    TRY_IN(name, delegate(fd(), plan.owner));
    return {};
}

Result<void> Cgroup::admit(const CgroupPlan& plan, pid_t pid) {
    return place_.scope.empty() ? admit_process(place_, pid) : start_around(plan, pid);
}

Result<void> Cgroup::start_around(const CgroupPlan& plan, pid_t pid) {
    TRY(start_scope(place_, pid, plan.scope_properties));
    made_ = place_;  // not before: a unit of that name may have been somebody else's
    TRY(check_place(place_, pid));
    const std::string name = concat("cgroup ", place_.mount, place_.path);
    fd_ = TRY(open_group(place_));
    TRY_IN(name, apply_limits_to_scope(fd(), plan));
    TRY_IN(name, apply_device_filter(fd(), plan));
    TRY_IN(name, delegate(fd(), plan.owner));
    return {};
}

Cgroup::Cgroup(Cgroup&& other) noexcept
    : fd_(std::move(other.fd_)),
      place_(std::move(other.place_)),
      made_(std::move(other.made_)),
      owner_(std::exchange(other.owner_, 0)) {}

Cgroup& Cgroup::operator=(Cgroup&& other) noexcept {
    Cgroup taken(std::move(other));  // in between, so that assigning to itself keeps the group
    remove();
    fd_ = std::move(taken.fd_);
    place_ = std::move(taken.place_);
    made_ = std::move(taken.made_);
    owner_ = std::exchange(taken.owner_, 0);
    return *this;
}

Cgroup::~Cgroup() { remove(); }

void Cgroup::remove() noexcept {
    if (owner_ == 0 || owner_ != ::getpid()) return;
    owner_ = 0;
    fd_.reset();
    // Tried again: the state goes as well, and then nobody else knows of the group.
    if (remove_cgroup(made_)) return;
    if (const auto removed = remove_cgroup(made_); !removed) log_warning(removed.error().message);
}

}  // namespace pinfold
