// What no sandbox is given, whatever else is allowed.
#include "pinfold/mount_policy.hpp"

namespace pinfold {

std::vector<std::string> default_forbidden_paths() {
    std::vector<std::string> paths = {
        // Whoever reads these becomes somebody else; whoever writes them becomes root.
        "/etc/shadow", "/etc/shadow-", "/etc/gshadow", "/etc/gshadow-", "/etc/sudoers", "/etc/sudoers.d",
        "/etc/ssh/ssh_host_*_key", "/etc/pinfold", "/root",
        // The kernel's interfaces. Each is recognised by its type as well, wherever it is mounted.
        "/proc", "/sys", "/dev",
        // Sockets of those who start programs with the host's rights, and what they and pinfold keep of containers.
        "/run/docker.sock", "/var/run/docker.sock", "/run/docker", "/run/containerd", "/run/podman", "/run/crio",
        "/run/buildkit", "/run/dbus", "/run/systemd", "/run/pinfold", "/run/user/*/podman", "/run/user/*/docker",
        "/run/user/*/docker.sock", "/run/user/*/bus", "/run/user/*/systemd", "/run/user/*/gnupg", "/run/user/*/keyring",
        "/run/user/*/pinfold", "/tmp/.pinfold-*"};
    // Keys and tokens, of the caller and of everybody.
    for (const char* home : {"~", "/home/*"}) {
        for (const char* name : {".ssh", ".gnupg", ".aws", ".azure", ".kube", ".docker", ".netrc", ".config"}) {
            paths.push_back(std::string(home) + "/" + name);
        }
    }
    return paths;
}

}  // namespace pinfold
