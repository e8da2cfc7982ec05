// From its parts to the whole receipt.
#include "verify/receipt.hpp"

#include "base/strings.hpp"

namespace pinfold {

Receipt read_receipt(const Plan& plan, pid_t pid) {
    Receipt receipt;
    const IdMaps* maps = plan.id_maps ? &*plan.id_maps : nullptr;
    add_process_lines(plan.process, plan.seccomp.has_value(), maps, !plan.namespaces.joins(CLONE_NEWUSER), pid,
                      receipt);
    if (maps) add_id_map_lines(*maps, pid, receipt);
    add_namespace_line(plan.namespaces, pid, receipt);
    if (plan.new_mount_namespace()) add_file_lines(plan, pid, receipt);
    add_membership_line(plan.cgroup.place, pid, receipt);
    add_limit_lines(plan.cgroup, receipt);
    return receipt;
}

Receipt read_receipt(const ExecPlan& plan, const JoinedContainer& container, pid_t pid) {
    Receipt receipt;
    const IdMaps* maps = plan.id_maps ? &*plan.id_maps : nullptr;
    // Users that are looked up inside are the container's to say.
    const bool ids_known = plan.user.empty() && (maps || (plan.namespaces & CLONE_NEWUSER) == 0);
    add_process_lines(plan.process, plan.seccomp.has_value(), maps, ids_known, pid, receipt);
    add_joined_line(plan.namespaces, container.init, pid, receipt);
    add_membership_line(container.place, pid, receipt);
    return receipt;
}

Result<void> require(const Receipt& receipt) {
    std::vector<std::string> differences;
    for (const ReceiptLine& line : receipt) {
        if (!line.holds)
            differences.push_back(concat(line.name, ": planned ", line.planned, ", the kernel says ", line.found));
    }
    if (differences.empty()) return {};
    return plain_error(concat("receipt: not as planned: ", join(differences, "; ")))
        .with_hint("the program was not started; without --strict it would be");
}

}  // namespace pinfold
