// Making a container's group: find the controllers, make the groups, set the limits, filter the devices.
#include "cgroup/cgroup.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/fs.hpp"
#include "base/log.hpp"
#include "base/strings.hpp"
#include "cgroup/control_files.hpp"
#include "cgroup/device_program.hpp"

namespace pinfold {

namespace {

// Other containers come and go meanwhile, and the last one to leave removes the parent that all share.
constexpr int kAttempts = 100;
constexpr mode_t kMode = 0755;

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

// Before anything is made: a host without the controller cannot have the limit, however the groups are arranged.
Result<void> check_controllers(int mount, const CgroupPlan& plan) {
    if (plan.controllers.empty()) return {};
    const std::string available = TRY_IN(plan.mount, read_control(mount, "cgroup.controllers"));
    const std::vector<std::string> missing = missing_words(available, plan.controllers);
    if (missing.empty()) return {};
    return plain_error(concat(properties_under(missing, plan), ": this host's cgroup v2 at ", plan.mount, " has no '",
                              join(missing, "', '"), missing.size() == 1 ? "' controller" : "' controllers"))
        .with_hint(plan.hybrid ? "the controllers are in cgroup v1 here: boot with systemd.unified_cgroup_hierarchy=1 "
                                 "or cgroup_no_v1=all, or drop the limit"
                               : "enable it in the kernel or in the group above this mount, or drop the limit");
}

// Passes the planned controllers on to the groups below. Written only where missing: a group that belongs to
// somebody else may well be readable only.
Result<void> enable_controllers(int mount, const std::string& group, const CgroupPlan& plan) {
    if (plan.controllers.empty()) return {};
    const std::string file = group + "/cgroup.subtree_control";
    const std::vector<std::string> missing = missing_words(TRY(read_control(mount, file)), plan.controllers);
    if (missing.empty()) return {};
    const auto written = write_file_at(mount, file, concat("+", join(missing, " +")));
    if (written) return {};
    const std::string name = group == "." ? plan.mount : concat(plan.mount, "/", group);
    if (written.error().code != EBUSY) return Error(written.error()).within(properties_under(missing, plan));
    return plain_error(concat(properties_under(missing, plan), ": cgroup ", name,
                              " holds processes, so it cannot pass '", join(missing, "', '"),
                              "' on to groups below it"))
        .with_hint("move them into a group of their own, or set linux.cgroupsPath below another group");
}

// Every group above the container's own, from the top down.
Result<void> make_ancestors(int mount, const CgroupPlan& plan) {
    TRY(enable_controllers(mount, ".", plan));
    for (size_t end = plan.path.find('/', 1); end != std::string::npos; end = plan.path.find('/', end + 1)) {
        const std::string group = plan.path.substr(1, end - 1);
        if (::mkdirat(mount, group.c_str(), kMode) != 0 && errno != EEXIST) {
            return errno_error(concat("make cgroup ", plan.mount, '/', group));
        }
        TRY(enable_controllers(mount, group, plan));
    }
    return {};
}

// Whether the group is a new one.
Result<bool> make_group_once(int mount, const CgroupPlan& plan) {
    TRY(make_ancestors(mount, plan));
    if (::mkdirat(mount, plan.path.c_str() + 1, kMode) == 0) return true;
    if (errno == EEXIST) return false;
    return errno_error(concat("make cgroup ", plan.mount, plan.path));
}

Result<bool> make_group(int mount, const CgroupPlan& plan) {
    for (int attempt = 1;; ++attempt) {
        Result<bool> made = make_group_once(mount, plan);
        const bool parent_vanished = !made && (made.error().code == ENOENT || made.error().code == ENODEV);
        if (!parent_vanished || attempt == kAttempts) return made;
    }
}

// A payload would share the group with strangers, or would never run.
Result<void> refuse_busy(int group) {
    const std::string events = TRY(read_control(group, "cgroup.events"));
    if (has_event(events, "populated")) {
        return plain_error("already holds processes").with_hint("choose another linux.cgroupsPath or container id");
    }
    if (has_event(events, "frozen")) {
        return plain_error("is frozen, or a group above it is")
            .with_hint("thaw it (write 0 to its cgroup.freeze), or choose another linux.cgroupsPath");
    }
    return {};
}

// A kernel built without swap has no file to keep swap off in.
bool is_met_without_swap(const CgroupWrite& write, const Error& error) {
    return error.code == ENOENT && write.file == "memory.swap.max" && write.value == "0" &&
           ::access("/proc/swaps", F_OK) != 0;
}

Result<void> apply_limits(int group, const std::vector<CgroupWrite>& writes) {
    for (const CgroupWrite& write : writes) {
        const auto written = write_file_at(group, write.file, write.value);
        if (written || is_met_without_swap(write, written.error())) continue;
        return Error(written.error()).within(write.property);
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

}  // namespace

Result<CgroupDir> CgroupDir::create(const CgroupPlan& plan) {
    CgroupDir group;
    if (!plan.enabled) return group;
    const UniqueFd mount = TRY(open_at(AT_FDCWD, plan.mount, O_PATH | O_DIRECTORY));
    TRY(check_controllers(mount.get(), plan));
    group.mount_ = plan.mount;
    group.path_ = plan.path;
    const Result<bool> made = make_group(mount.get(), plan);
    if (!made) {
        remove_empty_home(plan.mount, plan.path);
        return made.error();
    }
    if (*made) group.owner_ = ::getpid();
    // A path of several names is safe here: the hierarchy has no symbolic links and no renaming.
    const std::string name = concat("cgroup ", plan.mount, plan.path);
    group.fd_ = TRY_IN(name, open_at(mount.get(), plan.path.substr(1), O_PATH | O_DIRECTORY));
    TRY_IN(name, refuse_busy(group.fd()));
    TRY_IN(name, apply_limits(group.fd(), plan.writes));
    TRY_IN(name, apply_device_filter(group.fd(), plan));
    return group;
}

CgroupDir::CgroupDir(CgroupDir&& other) noexcept
    : fd_(std::move(other.fd_)),
      mount_(std::move(other.mount_)),
      path_(std::move(other.path_)),
      owner_(std::exchange(other.owner_, 0)) {}

CgroupDir& CgroupDir::operator=(CgroupDir&& other) noexcept {
    CgroupDir taken(std::move(other));  // in between, so that assigning to itself keeps the group
    remove();
    fd_ = std::move(taken.fd_);
    mount_ = std::move(taken.mount_);
    path_ = std::move(taken.path_);
    owner_ = std::exchange(taken.owner_, 0);
    return *this;
}

CgroupDir::~CgroupDir() { remove(); }

void CgroupDir::remove() noexcept {
    if (owner_ == 0 || owner_ != ::getpid()) return;
    owner_ = 0;
    fd_.reset();
    if (const auto removed = remove_cgroup(mount_, path_); !removed) log_warning(removed.error().message);
}

}  // namespace pinfold
