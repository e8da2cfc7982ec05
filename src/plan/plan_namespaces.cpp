// Namespaces and id maps.
#include <sched.h>

#include "plan/plan.hpp"

#ifndef CLONE_NEWTIME
#define CLONE_NEWTIME 0x00000080
#endif

namespace pinfold {

namespace {

std::vector<IdRange> ranges(const std::vector<IdMapping>& mappings) {
    std::vector<IdRange> result;
    for (const IdMapping& mapping : mappings) result.push_back({mapping.container_id, mapping.host_id, mapping.size});
    return result;
}

bool maps_only(const std::vector<IdRange>& map, uint32_t id) {
    return map.size() == 1 && map[0].count == 1 && map[0].outside == id;
}

}  // namespace

uint64_t namespace_flag(NamespaceType type) {
    switch (type) {
        case NamespaceType::mount: return CLONE_NEWNS;
        case NamespaceType::pid: return CLONE_NEWPID;
        case NamespaceType::network: return CLONE_NEWNET;
        case NamespaceType::uts: return CLONE_NEWUTS;
        case NamespaceType::ipc: return CLONE_NEWIPC;
        case NamespaceType::user: return CLONE_NEWUSER;
        case NamespaceType::cgroup: return CLONE_NEWCGROUP;
        case NamespaceType::time: return CLONE_NEWTIME;
    }
    return 0;
}

NamespacePlan plan_namespaces(const Linux& config, const HostFacts& host) {
    NamespacePlan plan;
    for (const Namespace& one : config.namespaces) {
        const uint64_t flag = namespace_flag(one.type);
        if (!one.path.empty()) plan.join.push_back({flag, one.path});
        else if (one.type == NamespaceType::cgroup) plan.create_in_child |= flag;
        else if (one.type == NamespaceType::time) plan.create_time = true;
        else plan.create |= flag;
    }
    if (plan.creates(CLONE_NEWUSER)) {
        plan.create_in_child |= plan.create & CLONE_NEWIPC;
        plan.create &= ~uint64_t{CLONE_NEWIPC};
    }
    for (const auto& [clock, offset] : config.time_offsets) plan.clock_offsets[clock] = {offset.secs, offset.nanosecs};
    plan.user_before_time = plan.create_time && plan.creates(CLONE_NEWUSER) && !host.is_root();
    return plan;
}

IdMaps plan_id_maps(const std::vector<IdMapping>& uids, const std::vector<IdMapping>& gids, const HostFacts& host) {
    IdMaps maps{ranges(uids), ranges(gids), false, false};
    if (host.is_root()) return maps;
    // Without privileges the kernel accepts one line that maps the caller's own id, and for groups only once
    // setgroups is denied; the setuid helpers accept what /etc/subuid and /etc/subgid grant.
    maps.by_helper = !maps_only(maps.uids, host.uid) || !maps_only(maps.gids, host.gid);
    maps.deny_setgroups = !maps.by_helper;
    return maps;
}

}  // namespace pinfold
