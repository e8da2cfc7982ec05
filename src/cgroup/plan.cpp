// What a container asks of cgroups, decided before anything is touched.
#include "cgroup/plan.hpp"

#include <optional>

#include "base/strings.hpp"
#include "cgroup/device_program.hpp"
#include "cgroup/scope.hpp"
#include "cgroup/scope_name.hpp"
#include "cgroup/scope_properties.hpp"

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

std::optional<Obstacle> find_obstacle(const CgroupHost& host, CgroupManager manager) {
    if (manager == CgroupManager::disabled) {
        return Obstacle{"--cgroup-manager disabled was asked for", "drop these limits, or use another cgroup manager"};
    }
    if (manager == CgroupManager::systemd) return find_systemd_obstacle(host);
    if (host.mount.empty()) {
        return Obstacle{"cgroup v2 is mounted neither at /sys/fs/cgroup nor at /sys/fs/cgroup/unified",
                        "boot with systemd.unified_cgroup_hierarchy=1, or mount cgroup2 there; --cgroup-manager "
                        "disabled does without, and without limits"};
    }
    if (!host.writable) {
        return Obstacle{concat(host.mount, " is not writable by this user"),
                        "run as root; --cgroup-manager disabled does without cgroups, and without limits"};
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

// A systemd triple (slice:prefix:name) without the systemd manager is a relative path like any other.
Result<std::string> group_path(const std::string& configured, const std::string& id) {
    if (configured.starts_with('/')) return clean_cgroup_path(configured);
    return clean_cgroup_path(concat(kCgroupHome, '/', configured.empty() ? id : configured));
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

Result<std::string> clean_cgroup_path(std::string_view path) {
    std::string clean;
    for (const std::string_view part : split(path, '/')) {
        if (part.empty() || part == ".") continue;
        if (part == ".." || part.find('\0') != std::string_view::npos) {
            return plain_error(concat("cgroup path ", quoted(path), ": leads elsewhere by ", quoted(part)));
        }
        (clean += '/') += part;
    }
    if (clean.empty()) return plain_error(concat("cgroup path ", quoted(path), ": is the top, which is the host's"));
    return clean;
}

Result<CgroupPlan> plan_cgroup(const Linux& config, const std::string& id, const CgroupHost& host,
                               CgroupManager manager, bool new_user_namespace_or_rootless) {
    CgroupPlan plan;
    plan.writes = TRY(cgroup_writes(config.resources));
    std::erase_if(plan.writes, is_kernel_default);
    if (const auto obstacle = find_obstacle(host, manager)) {
        const bool harmless = manager == CgroupManager::disabled || new_user_namespace_or_rootless;
        return plan_without_group(plan.writes, *obstacle, harmless);
    }
    plan.place.mount = host.mount;
    plan.hybrid = host.hybrid;
    if (manager == CgroupManager::systemd) {
        TRY_IN("linux.cgroupsPath", plan_scope(config.cgroups_path, id, host.systemd, plan));
    } else {
        plan.place.path = TRY_IN("linux.cgroupsPath", group_path(config.cgroups_path, id));
    }
    plan.controllers = controllers_of(plan.writes);
    plan.device_rules = config.resources.devices;
    plan.filter_devices = !allows_every_device(plan.device_rules);
    plan.filter_may_fail = new_user_namespace_or_rootless;
    return plan;
}

}  // namespace pinfold
