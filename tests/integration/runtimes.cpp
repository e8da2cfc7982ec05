// Other runtimes, for tests.
#include "runtimes.hpp"

namespace pinfold::integration {

namespace {

bool is_installed(const std::string& name) {
    return run_program({"sh", "-c", "PATH=$PATH:/usr/sbin:/sbin; command -v " + name}).status == 0;
}

// Where it sees nothing but cgroup v2, it runs, though without a group.
std::vector<std::string> crun_beside_legacy() {
    const std::string hide = "mount --bind '" + cgroup2_mount().string() + "' /sys/fs/cgroup && exec \"$@\"";
    return {"unshare", "--mount", "sh", "-c", hide, "sh", "crun", "--cgroup-manager=disabled"};
}

}  // namespace

bool has_mixed_cgroups() { return !cgroup1_mount("memory").empty() && !cgroup2_mount().empty(); }

std::vector<Peer> peers() {
    std::vector<Peer> all = {
        {"runc", {"runc"}}, {"runsc", {"runsc", "--network=none", "--oci-seccomp"}}, {"crun", {"crun"}}};
    if (has_mixed_cgroups()) all.back() = {"crun", crun_beside_legacy(), false};
    for (Peer& peer : all) {
        if (!is_installed(peer.name)) peer.command.clear();
    }
    return all;
}

}  // namespace pinfold::integration
