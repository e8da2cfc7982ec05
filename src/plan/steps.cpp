// The names of the steps.
#include "plan/steps.hpp"

#include <algorithm>

namespace pinfold {

const char* step_name(Step step) {
    switch (step) {
        case Step::own_binary: return "own binary";
        case Step::state:
        case Step::record_init: return "state";
        case Step::cgroup:
        case Step::admit: return "cgroup";
        case Step::sources: return "mounts";
        case Step::clone: return "clone";
        case Step::id_maps: return "id maps";
        case Step::net_devices: return "network devices";
        case Step::oom_score_adj: return "oom_score_adj";
        case Step::streams: return "standard streams";
        case Step::pid_file: return "pid file";
        case Step::session: return "session";
        case Step::enter_user_namespace: return "user namespace";
        case Step::late_namespaces: return "namespaces";
        case Step::loopback: return "loopback";
        case Step::keyring: return "keyring";
        case Step::hostname: return "hostname";
        case Step::domainname: return "domainname";
        case Step::mount_namespace: return "mount namespace";
        case Step::root:
        case Step::attach_root: return "root";
        case Step::prepare_mounts: return "mounts";
        case Step::mounts: return "mounts";
        case Step::devices: return "devices";
        case Step::links: return "links";
        case Step::create_hooks: return "hooks";
        case Step::sysctl: return "sysctl";
        case Step::apparmor: return "AppArmor";
        case Step::selinux: return "SELinux";
        case Step::terminal: return "terminal";
        case Step::masked_paths: return "masked paths";
        case Step::readonly_paths: return "read-only paths";
        case Step::pivot_root: return "pivot_root";
        case Step::cwd: return "cwd";
        case Step::personality: return "personality";
        case Step::scheduler: return "scheduler";
        case Step::io_priority: return "I/O priority";
        case Step::memory_policy: return "memory policy";
        case Step::rlimits: return "rlimits";
        case Step::bounding_set: return "bounding set";
        case Step::user: return "user";
        case Step::executable: return "executable";
        case Step::let_go: return "descriptors";
        case Step::await_start: return "start";
        case Step::start_hooks: return "hooks";
        case Step::keeper: return "keeper";
        case Step::capabilities: return "capabilities";
        case Step::no_new_privileges: return "no new privileges";
        case Step::landlock: return "Landlock";
        case Step::filter:
        case Step::seccomp: return "seccomp";
        case Step::exec: return "exec";
    }
    return "unknown step";
}

std::vector<Step> all_steps(bool no_new_privileges) {
    std::vector<Step> steps;
    for (auto number = static_cast<uint8_t>(kFirstStep); number <= static_cast<uint8_t>(kLastStep); ++number)
        steps.push_back(Step{number});
    const std::array<Step, 4> last = restrictions(no_new_privileges);
    std::ranges::copy(last, std::ranges::find(steps, Step::no_new_privileges));
    return steps;
}

}  // namespace pinfold
