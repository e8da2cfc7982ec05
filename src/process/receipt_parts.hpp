// The parts of a receipt; each adds its lines.
#pragma once

#include <sys/types.h>

#include <string>
#include <utility>

#include "pinfold/receipt.hpp"
#include "plan/plan.hpp"

namespace pinfold {

inline ReceiptLine equal_line(std::string name, std::string planned, std::string found) {
    const bool holds = planned == found;
    return {std::move(name), std::move(planned), std::move(found), holds};
}

// User, rights, resource limits. Without maps, ids mean the same inside and outside; `ids_known` is false where the
// container is in a user namespace that somebody else has made.
void add_process_lines(const ProcessPlan& plan, bool filtered, const IdMaps* maps, bool ids_known, pid_t pid,
                       Receipt& receipt);
void add_id_map_lines(const IdMaps& maps, pid_t pid, Receipt& receipt);
void add_namespace_line(const NamespacePlan& plan, pid_t pid, Receipt& receipt);
// In all of these namespaces (CLONE_NEW*) it is where that other process is.
void add_joined_line(uint64_t namespaces, pid_t init, pid_t pid, Receipt& receipt);

// Flags of mounts, masked and read-only paths.
void add_file_lines(const Plan& plan, pid_t pid, Receipt& receipt);

// The process is in the container's group, and the group has its limits.
void add_membership_line(const CgroupPlace& place, pid_t pid, Receipt& receipt);
void add_limit_lines(const CgroupPlan& plan, Receipt& receipt);

}  // namespace pinfold
