// What this machine offers, asked of the kernel directly; and the private mount namespace that tests run in.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "process.hpp"

namespace pinfold::integration {

namespace fs = std::filesystem;

// A tmpfs in a mount namespace of this program: what a container leaks is seen here and harms nothing,
// and other tests that run at the same time are not seen at all. Made at the first call.
const fs::path& playground();

std::string read_text(const fs::path& path);
void write_text(const fs::path& path, const std::string& text);

struct HostMount {
    std::string point;
    std::string type;
    std::string options;  // of the superblock
};
std::vector<HostMount> host_mounts();

// Mount points of this program's namespace, one line each as the kernel prints them.
std::string mount_table();

// The cgroup v2 hierarchy's mount point; empty where there is none.
fs::path cgroup2_mount();

// True where the v2 hierarchy's controller can be given to a group below this program's root.
bool has_controller(const std::string& name);

// The mount of the v1 hierarchy that has this controller; empty where there is none.
fs::path cgroup1_mount(const std::string& controller);

// Directories with this name in any cgroup hierarchy.
std::vector<std::string> cgroups_named(const std::string& name);

// Live processes whose parent is this program (it adopts whatever its children leave behind).
std::vector<pid_t> children();

// A directory on a file system that the kernel can mount with an id mapping; empty where there is none.
// A loop-mounted ext4 stands in where neither the playground nor /tmp can: ask before the Bundle is made, which
// takes the new mount for a leak otherwise.
fs::path idmappable_directory();

// The id of a namespace, as the kernel prints it: "net:[4026531840]".
std::string own_namespace(const std::string& name);

bool has_capability(int number);

// A mount on the host's side, for as long as the object lives. Declare it after the Bundle, whose leak check follows.
class MountGuard {
public:
    MountGuard(const fs::path& source, const fs::path& target, const char* type, unsigned long flags);
    ~MountGuard();
    MountGuard(const MountGuard&) = delete;
    MountGuard& operator=(const MountGuard&) = delete;

    void set_propagation(unsigned long flags) const;

private:
    fs::path target_;
};

// A process that does nothing in namespaces of its own, made with unshare(1)'s options: something to join.
class NamespaceHolder {
public:
    explicit NamespaceHolder(const std::vector<std::string>& options);
    std::string path(const std::string& name) const;

private:
    Process process_;
};

}  // namespace pinfold::integration
