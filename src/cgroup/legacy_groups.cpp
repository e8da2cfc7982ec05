// A container's groups in the hierarchies of cgroup v1: made, and given their limits.
#include "cgroup/legacy_groups.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "base/fs.hpp"
#include "base/strings.hpp"
#include "cgroup/control_files.hpp"
#include "cgroup/controllers.hpp"
#include "cgroup/legacy_limits.hpp"
#include "cgroup/processes.hpp"
#include "cgroup/write_limit.hpp"

namespace pinfold {

namespace {

// Other containers come and go meanwhile, and the last one to leave removes the parent that all share.
constexpr int kAttempts = 100;

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

// With those above it. Whether the group itself is a new one.
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

Result<bool> make_group(const std::string& mount, const std::string& path, bool has_cpuset) {
    for (int attempt = 1;; ++attempt) {
        Result<bool> made = make_group_once(mount, path, has_cpuset);
        const bool parent_vanished = !made && (made.error().code == ENOENT || made.error().code == ENODEV);
        if (!parent_vanished || attempt == kAttempts) return made;
    }
}

// A payload would share the group with strangers.
Result<void> refuse_strangers(const CgroupPlace& group) {
    const std::vector<pid_t> strangers = TRY(group_processes(group));
    if (strangers.empty()) return {};
    return plain_error("already holds processes").with_hint("choose another linux.cgroupsPath or container id");
}

// A payload would never run.
Result<void> refuse_frozen(const CgroupPlace& place) {
    const auto freezer = place.legacy.find("freezer");
    if (freezer == place.legacy.end()) return {};
    const std::string group = freezer->second + place.path;
    const std::string state = TRY(read_control(AT_FDCWD, group + "/freezer.state"));
    if (state.starts_with("THAWED")) return {};
    return plain_error(concat("cgroup ", group, ": is frozen, or a group above it is"))
        .with_hint("thaw it (write THAWED to its freezer.state), or choose another linux.cgroupsPath");
}

// One group per hierarchy.
Result<void> make_groups(const CgroupPlace& place, CgroupPlace& made) {
    const auto cpuset = place.legacy.find("cpuset");
    for (const std::string& mount : legacy_mounts(place)) {
        const bool has_cpuset = cpuset != place.legacy.end() && cpuset->second == mount;
        if (!TRY(make_group(mount, place.path, has_cpuset))) {
            TRY_IN(concat("cgroup ", mount, place.path), refuse_strangers({mount, place.path, {}, {}}));
            continue;
        }
        made.path = place.path;
        for (const auto& [controller, its_mount] : place.legacy) {
            if (its_mount == mount) made.legacy[controller] = mount;
        }
    }
    return {};
}

// Some kernels take this limit and forget it.
Result<void> check_kernel_memory(int group, const CgroupWrite& write) {
    if (write.file != "memory.kmem.limit_in_bytes" || write.value == "-1") return {};
    const std::string kept = TRY_IN(write.property, read_control(group, write.file));
    if (!is_legacy_unlimited(kept)) return {};
    return plain_error(concat(write.property, ": this kernel does not limit its own memory apart from the rest"))
        .with_hint("leave it out: linux.resources.memory.limit counts the kernel's memory as well");
}

}  // namespace

std::set<std::string> legacy_mounts(const CgroupPlace& place) {
    std::set<std::string> mounts;
    for (const auto& [controller, mount] : place.legacy) mounts.insert(mount);
    return mounts;
}

Result<LegacyGroups> LegacyGroups::open(const CgroupPlace& place) {
    LegacyGroups groups;
    for (const auto& [controller, mount] : place.legacy) {
        groups.by_controller_[controller] = TRY(open_group({mount, place.path, {}, {}}));
    }
    return groups;
}

int LegacyGroups::of(std::string_view file) const {
    const auto found = by_controller_.find(controller_of(file));
    return found == by_controller_.end() ? -1 : found->second.get();
}

// The kernel keeps some pairs in step at every moment: memory within memory and swap, a burst within its quota, a quota
// and its period within those of the group above. Which of two can go first depends on what is there; so what is
// refused is tried again as long as anything else gets through.
Result<void> write_legacy_limits(const LegacyGroups& groups, std::vector<CgroupWrite> writes, Undo& undo) {
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

Result<void> make_legacy_groups(const CgroupPlan& plan, CgroupPlace& made) {
    const CgroupPlace& place = plan.place;
    TRY(make_groups(place, made));
    TRY(refuse_frozen(place));
    const LegacyGroups groups = TRY(LegacyGroups::open(place));
    Undo undo;
    const std::string name = concat("cgroup v1, group ", place.path);
    TRY_IN(name, write_legacy_limits(groups, plan.legacy_writes, undo));
    for (const CgroupWrite& write : plan.device_writes) TRY_IN(name, write_limit(groups.of(write.file), write));
    undo.commit();
    return {};
}

}  // namespace pinfold
