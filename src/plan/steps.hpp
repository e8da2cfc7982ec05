// The steps of a start, in the order in which they are taken. The same names label errors, --debug lines,
// the plan that --dry-run prints, and the benchmark's breakdown.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

namespace pinfold {

enum class Step : uint8_t {
    // The parent, on the host.
    own_binary,
    state,
    cgroup,
    filter,
    sources,
    clone,
    admit,
    id_maps,
    oom_score_adj,
    streams,
    record_init,
    net_devices,
    pid_file,
    // The child, inside its new namespaces, until it becomes the payload.
    session,
    enter_user_namespace,
    late_namespaces,
    loopback,
    keyring,
    hostname,
    domainname,
    mount_namespace,
    root,
    prepare_mounts,
    attach_root,
    mounts,
    devices,
    links,
    create_hooks,
    sysctl,
    apparmor,
    selinux,
    terminal,
    masked_paths,
    readonly_paths,
    pivot_root,
    cwd,
    personality,
    scheduler,
    io_priority,
    memory_policy,
    rlimits,
    bounding_set,
    user,
    executable,
    let_go,
    await_start,
    start_hooks,
    keeper,
    // In the order of restrictions().
    no_new_privileges,
    landlock,
    capabilities,
    seccomp,
    exec,
};

constexpr Step kFirstStep = Step::own_binary;
constexpr Step kFirstChildStep = Step::session;
constexpr Step kLastStep = Step::exec;

const char* step_name(Step step);

// The last steps but one. A filter goes on last, so that it need not allow what the set-up does. Without no_new_privs
// it takes CAP_SYS_ADMIN, which the capabilities' step may drop: then it comes before all of them.
inline std::array<Step, 4> restrictions(bool no_new_privileges) {
    if (!no_new_privileges) return {Step::seccomp, Step::no_new_privileges, Step::landlock, Step::capabilities};
    return {Step::no_new_privileges, Step::landlock, Step::capabilities, Step::seccomp};
}

// All steps in their order.
std::vector<Step> all_steps(bool no_new_privileges);

}  // namespace pinfold
