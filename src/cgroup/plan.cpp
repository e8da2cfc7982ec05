// What a container asks of cgroups, decided before anything is touched.
#include "cgroup/plan.hpp"

#include <optional>

#include "base/strings.hpp"
#include "cgroup/control_files.hpp"
#include "cgroup/device_program.hpp"
#include "cgroup/systemd.hpp"
#include "cgroup/v1_limits.hpp"

namespace pinfold {

namespace {

// Why no group can be made here, and what would help.
struct Obstacle {
    std::string why;
    std::string hint;
};

std::optional<Obstacle> find_systemd_obstacle(const CgroupHost& host) {
    std::string why;
    if (!has_scope_program())
        why = "the systemd cgroup manager is not supported by this build, which has no libsystemd";
    else if (!host.systemd.running)
        why = host.systemd.user ? "no systemd runs for this user" : "systemd does not run here";
    else if (host.mount.empty()) why = "cgroup v2 is not mounted, and the systemd cgroup manager needs it";
    else return std::nullopt;
    return Obstacle{std::move(why),
                    "use --cgroup-manager cgroupfs: for Docker, --exec-opt native.cgroupdriver=cgroupfs"};
}

std::optional<Obstacle> find_obstacle(const CgroupHost& host, CgroupManager manager, const std::string& path) {
    if (manager == CgroupManager::disabled) {
        return Obstacle{"--cgroup-manager disabled was asked for", "drop these limits, or use another cgroup manager"};
    }
    if (manager == CgroupManager::systemd) return find_systemd_obstacle(host);
    if (!host.mounts_any()) {
        return Obstacle{"neither cgroup v2 nor any controller of v1 is mounted at /sys/fs/cgroup",
                        "boot with systemd.unified_cgroup_hierarchy=1, or mount cgroup2 there; --cgroup-manager "
                        "disabled does without, and without limits"};
    }
    if (!host.writable) {
        return Obstacle{concat(host.mount.empty() ? "/sys/fs/cgroup" : host.mount, " is not writable by this user"),
                        "run as root; --cgroup-manager disabled does without cgroups, and without limits"};
    }
    if (!path.starts_with(host.home + "/")) {
        return Obstacle{concat("linux.cgroupsPath ", quoted(path), " is not below ", host.home,
                               ", which is all that this user may write to"),
                        "leave it out, or use a relative one"};
    }
    return std::nullopt;
}

// A plan without a group, where that leaves nothing unenforced.
Result<CgroupPlan> plan_without_group(const std::vector<CgroupWrite>& writes, const Obstacle& obstacle, bool harmless) {
    if (!writes.empty()) {
        return plain_error(concat(properties_of(writes), ": needs cgroups, but ", obstacle.why))
            .with_hint(obstacle.hint);
    }
    if (harmless) return CgroupPlan{};
    return plain_error(concat("linux.resources.devices: access to devices needs a cgroup, but ", obstacle.why))
        .with_hint(obstacle.hint);
}

// What cgroup v1 is to enforce.
Result<void> plan_v1_writes(const Resources& resources, const StringMap& mounts, CgroupPlan& plan) {
    plan.v1_writes = TRY(v1_writes(resources));
    std::erase_if(plan.v1_writes, is_v1_default);
    TRY(check_v1_controllers(plan.v1_writes, mounts));
    return {};
}

// Devices are filtered by a program on the group in cgroup v2, and only without one by cgroup v1.
Result<void> plan_device_access(const std::vector<DeviceRule>& rules, const CgroupHost& host, CgroupPlan& plan) {
    plan.device_rules = rules;
    if (allows_every_device(rules)) return {};
    plan.filter_devices = !host.mount.empty();
    if (plan.filter_devices) return {};
    plan.device_writes = TRY(v1_device_writes(rules));
    return check_v1_controllers(plan.device_writes, host.v1);
}

// Where groups in cgroup v1 are made: to enter them costs more than the rest of a start, so only for those who use
// them.
StringMap plan_v1_mounts(const Linux& config, const CgroupHost& host, const CgroupPlan& plan) {
    const bool limited = !plan.v1_writes.empty();
    const bool measured = !config.cgroups_path.empty();  // engines look for their statistics there
    return host.mount.empty() || limited || measured ? host.v1 : StringMap();
}

// A systemd triple (slice:prefix:name) without the systemd manager is a relative path like any other.
Result<std::string> group_path(const std::string& configured, const std::string& id, const std::string& home) {
    if (configured.starts_with('/')) return clean_cgroup_path(configured);
    return clean_cgroup_path(concat(home, kCgroupHome, '/', configured.empty() ? id : configured));
}

Result<void> plan_scope(const std::string& configured, const std::string& id, const SystemdHost& host,
                        CgroupPlan& plan) {
    const ScopeName name = TRY(parse_scope_name(configured, id, host.user ? "user.slice" : "system.slice"));
    plan.place.scope = name.unit;
    plan.place.path = host.top + scope_path(name);
    plan.scope_properties = scope_properties(name, id, plan.writes);
    return {};
}

}  // namespace

Result<CgroupPlan> plan_cgroup(const Linux& config, const std::string& id, const CgroupHost& host,
                               CgroupManager manager, bool new_user_namespace_or_rootless) {
    if (manager == CgroupManager::systemd && !host.v1.empty()) {
        CgroupHost v2_only = host;  // a scope limits by cgroup v2 alone
        v2_only.v1.clear();
        return plan_cgroup(config, id, v2_only, manager, new_user_namespace_or_rootless);
    }
    CgroupPlan plan;
    const DividedResources divided = divide_resources(config.resources, host);
    plan.writes = TRY(v2_writes(divided.v2));
    std::erase_if(plan.writes, is_v2_default);
    TRY(plan_v1_writes(divided.v1, host.v1, plan));
    const bool by_systemd = manager == CgroupManager::systemd;
    const std::string path =
        by_systemd ? "" : TRY_IN("linux.cgroupsPath", group_path(config.cgroups_path, id, host.home));
    if (const auto obstacle = find_obstacle(host, manager, path)) {
        const bool harmless = manager == CgroupManager::disabled || new_user_namespace_or_rootless;
        plan.writes.insert(plan.writes.end(), plan.v1_writes.begin(), plan.v1_writes.end());
        return plan_without_group(plan.writes, *obstacle, harmless);
    }
    plan.place.mount = host.mount;
    plan.hybrid = host.hybrid;
    if (by_systemd) {
        TRY_IN("linux.cgroupsPath", plan_scope(config.cgroups_path, id, host.systemd, plan));
    } else {
        plan.place.path = path;
        plan.place.v1 = plan_v1_mounts(config, host, plan);
    }
    plan.controllers = controllers_of(plan.writes);
    TRY(plan_device_access(config.resources.devices, host, plan));
    plan.filter_may_fail = new_user_namespace_or_rootless;
    return plan;
}

}  // namespace pinfold
