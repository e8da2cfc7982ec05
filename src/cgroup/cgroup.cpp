// A container's group: which backends it has, and what each of them does of a task.
#include "cgroup/cgroup.hpp"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <set>

#include "base/log.hpp"
#include "base/strings.hpp"
#include "cgroup/control_files.hpp"
#include "cgroup/systemd.hpp"
#include "cgroup/v1.hpp"
#include "cgroup/v1_limits.hpp"
#include "cgroup/v2.hpp"

namespace pinfold {

namespace {

using Backends = std::vector<std::unique_ptr<CgroupBackend>>;

// At least one. The first sees all processes of the container, so what concerns these alone (to freeze or to kill them)
// is asked of it; the second, on a hybrid host, has the groups of cgroup v1 that hold some of the limits.
Result<Backends> backends_of(CgroupPath place) {
    place.path = TRY(clean_cgroup_path(place.path));
    Backends backends;
    if (!place.scope.empty()) backends.push_back(std::make_unique<SystemdScope>(place));
    else if (!place.mount.empty()) backends.push_back(std::make_unique<V2Group>(place));
    if (!place.v1.empty() || backends.empty()) backends.push_back(std::make_unique<V1Groups>(place));
    return backends;
}

// The host as it was when the container was created: its groups are where they are.
CgroupHost host_of(const CgroupPath& place) {
    CgroupHost host;
    host.mount = place.mount;
    host.v1 = place.v1;
    if (place.mount.empty() || place.v1.empty()) return host;
    const Result<std::string> list = read_control(AT_FDCWD, concat(place.mount, "/cgroup.controllers"));
    if (list) host.controllers = *list;
    return host;
}

}  // namespace

Result<Cgroup> Cgroup::create(const CgroupPlan& plan) {
    Cgroup group;
    if (!plan.place.exists()) return group;
    group.group_ = {new NewGroup, {::getpid()}};
    Result<void> made;
    for (const auto& backend : TRY(backends_of(plan.place))) {
        if (made) made = backend->make(plan, *group.group_);
    }
    if (made) return group;
    group.group_.reset();
    remove_empty_home(plan.place);
    return std::move(made).error();
}

Result<void> Cgroup::attach(const CgroupPlan& plan, pid_t pid) {
    for (const auto& backend : TRY(backends_of(plan.place))) TRY(backend->attach(plan, pid, *group_));
    return {};
}

void Cgroup::Remover::operator()(NewGroup* group) const noexcept {
    const std::unique_ptr<NewGroup> last(group);
    if (owner == 0 || owner != ::getpid()) return;
    last->fd.reset();
    // Tried again: the state goes as well, and then nobody else knows of the group.
    if (remove_cgroup(last->made)) return;
    if (const auto removed = remove_cgroup(last->made); !removed) log_warning(removed.error().message);
}

Result<void> add_process(const CgroupPath& place, pid_t pid) {
    if (!place.exists()) return {};
    for (const auto& backend : TRY(backends_of(place))) TRY(backend->add_process(pid));
    return {};
}

Result<void> update_cgroup(const CgroupPath& place, const Resources& resources, const KeepLimits& keep) {
    const Backends backends = TRY(backends_of(place));
    const DividedResources divided = divide_resources(resources, host_of(place));
    for (const auto& backend : backends) TRY(backend->open());
    Undo undo;
    GroupLimits written;
    for (const auto& backend : backends) TRY(backend->update_limits(divided, undo, written));
    for (const auto& backend : backends) TRY(backend->update_devices(divided));
    if (keep) TRY(keep(written));
    undo.commit();
    return {};
}

bool is_frozen(const CgroupPath& place) {
    const Result<Backends> backends = backends_of(place);
    return backends && backends->front()->is_frozen();
}

Result<void> freeze_group(const CgroupPath& place, std::chrono::milliseconds patience) {
    const Backends backends = TRY(backends_of(place));
    return backends.front()->freeze(patience);
}

Result<void> thaw_group(const CgroupPath& place, std::chrono::milliseconds patience) {
    const Backends backends = TRY(backends_of(place));
    return backends.front()->thaw(patience);
}

void thaw_for_kill(const CgroupPath& place) {
    const Result<Backends> backends = backends_of(place);
    if (!backends) return;
    for (const auto& backend : *backends) backend->thaw_for_kill();
}

bool kill_group(const CgroupPath& place) {
    const Result<Backends> backends = backends_of(place);
    return backends && backends->front()->kill();
}

Result<void> require_cgroup_mounts(const CgroupPath& place) {
    if (!place.scope.empty()) return {};
    std::set<std::string> mounts = v1_mounts(place);
    if (!place.mount.empty()) mounts.insert(place.mount);
    for (const std::string& mount : mounts) {
        struct statfs info {};
        const bool there = ::statfs(mount.c_str(), &info) == 0;
        if (there && (info.f_type == CGROUP2_SUPER_MAGIC || info.f_type == CGROUP_SUPER_MAGIC)) continue;
        return plain_error(concat("remove cgroup ", place.path, ": cgroups are not mounted at ", mount))
            .with_hint("call pinfold where they are mounted as when the container was created");
    }
    return {};
}

Result<void> remove_cgroup(const CgroupPath& place) {
    if (!place.exists()) return {};
    for (const auto& backend : TRY(backends_of(place))) TRY(backend->remove());
    remove_empty_home(place);
    return {};
}

Result<void> remove_empty_cgroup(const CgroupPath& place) {
    if (!place.exists()) return {};
    for (const auto& backend : TRY(backends_of(place))) TRY(backend->remove_empty());
    remove_empty_home(place);
    return {};
}

void remove_empty_home(const CgroupPath& place) {
    const std::string& path = place.path;
    const size_t home = path.find(concat(kCgroupHome, '/'));  // below what was delegated to a normal user, if to one
    if (home == std::string::npos || !place.scope.empty()) return;  // slices are systemd's
    std::set<std::string> mounts = v1_mounts(place);
    if (!place.mount.empty()) mounts.insert(place.mount);
    for (const std::string& mount : mounts) {
        for (size_t end = path.rfind('/'); end >= home + kCgroupHome.size(); end = path.rfind('/', end - 1)) {
            if (::rmdir((mount + path.substr(0, end)).c_str()) != 0) break;
        }
    }
}

}  // namespace pinfold
