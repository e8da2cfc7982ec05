// Reading a receipt. The reader is the parent, which sees the child from outside: what the child believes of itself
// does not matter.
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>
#include <utility>

#include "pinfold/receipt.hpp"
#include "pinfold/result.hpp"
#include "plan/plan.hpp"

namespace pinfold {

Receipt read_receipt(const Plan& plan, pid_t pid);

// Of one more process in a container.
struct JoinedContainer {
    pid_t init;
    const CgroupPath& place;
};
Receipt read_receipt(const ExecPlan& plan, const JoinedContainer& container, pid_t pid);

// An error that names all that does not hold.
Result<void> require(const Receipt& receipt);

// What is to become of a receipt; an error ends the start. Nothing: require() alone.
using ReceiptHandler = std::function<Result<void>(const Receipt&)>;

// Its parts, each of which adds its lines: user, rights, resource limits. Without maps, ids mean the same inside and
// outside; `ids_known` is false where the container is in a user namespace that somebody else has made.
void add_process_lines(const ProcessPlan& plan, bool filtered, const IdMaps* maps, bool ids_known, pid_t pid,
                       Receipt& receipt);
void add_id_map_lines(const IdMaps& maps, pid_t pid, Receipt& receipt);
void add_namespace_line(const NamespacePlan& plan, pid_t pid, Receipt& receipt);
// In all of these namespaces (CLONE_NEW*) it is where that other process is.
void add_joined_line(uint64_t namespaces, pid_t init, pid_t pid, Receipt& receipt);

// Flags of mounts, masked and read-only paths.
void add_file_lines(const Plan& plan, pid_t pid, Receipt& receipt);

// The process is in the container's group, and the group has its limits.
void add_membership_line(const CgroupPath& place, pid_t pid, Receipt& receipt);
void add_limit_lines(const CgroupPlan& plan, Receipt& receipt);

inline ReceiptLine equal_line(std::string name, std::string planned, std::string found) {
    const bool holds = planned == found;
    return {std::move(name), std::move(planned), std::move(found), holds};
}

}  // namespace pinfold
