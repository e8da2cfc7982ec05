// The steps of a start, in the order in which they are taken. The same names label errors, --debug lines,
// the plan that --dry-run prints, and the benchmark's breakdown.
#pragma once

#include <cstdint>

namespace pinfold {

enum class Step : uint8_t {
    // The parent, on the host.
    own_binary,
    state,
    cgroup,
    sources,
    clone,
    id_maps,
    net_devices,
    oom_score_adj,
    streams,
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
    await_start,
    start_hooks,
    keeper,
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

}  // namespace pinfold
