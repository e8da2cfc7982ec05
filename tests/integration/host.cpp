// Facts about the machine, and the private mount namespace that tests run in.
#include "host.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <linux/mount.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "pinfold/unique_fd.hpp"
#include "process.hpp"
#include "support/testing.hpp"

namespace pinfold::integration {

namespace {

// Lives until the program ends: the mounts vanish with the namespace, the empty directory must be removed.
class Playground {
public:
    Playground() {
        if (::geteuid() != 0) return;
        std::string pattern = "/tmp/pinfold-test.XXXXXX";
        REQUIRE(::mkdtemp(pattern.data()) != nullptr);
        path_ = pattern;
        REQUIRE(::unshare(CLONE_NEWNS) == 0);
        REQUIRE(::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0);
        REQUIRE(::mount("playground", path_.c_str(), "tmpfs", 0, "mode=755") == 0);
        REQUIRE(::prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0);
        owner_ = ::getpid();
    }
    ~Playground() {
        if (::getpid() != owner_) return;
        ::umount2(path_.c_str(), MNT_DETACH);
        ::rmdir(path_.c_str());
    }
    Playground(const Playground&) = delete;
    Playground& operator=(const Playground&) = delete;

    const fs::path& path() const { return path_; }

private:
    fs::path path_;
    pid_t owner_ = -1;
};

// Whether mount_setattr(MOUNT_ATTR_IDMAP) works on a clone of this directory's mount.
bool can_idmap(const fs::path& directory) {
    const UniqueFd tree(
        static_cast<int>(::syscall(SYS_open_tree, AT_FDCWD, directory.c_str(), OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC)));
    if (!tree) return false;
    // A child that only sits in a user namespace with a one-id map serves as the mapping.
    const NamespaceHolder holder({"--user", "--map-root-user"});
    const UniqueFd user(::open(holder.path("user").c_str(), O_RDONLY | O_CLOEXEC));
    mount_attr attributes{};
    attributes.attr_set = MOUNT_ATTR_IDMAP;
    attributes.userns_fd = static_cast<uint64_t>(user.get());
    return ::syscall(SYS_mount_setattr, tree.get(), "", AT_EMPTY_PATH, &attributes, sizeof attributes) == 0;
}

fs::path loop_mounted_ext4() {
    const fs::path image = playground() / "ext4.image";
    const fs::path point = playground() / "ext4";
    fs::create_directory(point);
    run_program({"modprobe", "loop"});  // no matter if it fails: it may be built in
    run_program({"truncate", "-s", "8M", image});
    if (run_program({"mkfs.ext4", "-q", "-F", image}).status != 0) return {};
    return run_program({"mount", "-o", "loop", image, point}).status == 0 ? point : fs::path();
}

// Others make and remove groups at the same time: one that is gone before it was looked into ends nothing but itself.
void find_directories(const fs::path& directory, const std::string& name, std::vector<std::string>& found) {
    std::error_code error;
    for (fs::directory_iterator entry(directory, error), end; !error && entry != end; entry.increment(error)) {
        std::error_code ignored;
        if (!entry->is_directory(ignored) || entry->is_symlink(ignored)) continue;
        if (entry->path().filename() == name) found.push_back(entry->path());
        find_directories(entry->path(), name, found);
    }
}

pid_t parent_of(const std::string& pid) {
    const std::string stat = read_text("/proc/" + pid + "/stat");
    // "PID (NAME) STATE PPID ...": the name may hold anything, its last parenthesis ends it.
    std::istringstream rest(stat.substr(std::min(stat.rfind(')'), stat.size() - 1) + 1));
    char state = 'Z';
    pid_t parent = 0;
    rest >> state >> parent;
    return state == 'Z' ? 0 : parent;
}

}  // namespace

MountGuard::MountGuard(const fs::path& source, const fs::path& target, const char* type, unsigned long flags)
    : target_(target) {
    REQUIRE(::mount(source.c_str(), target.c_str(), type, flags, nullptr) == 0);
}

MountGuard::~MountGuard() { CHECK(::umount2(target_.c_str(), MNT_DETACH) == 0); }

void MountGuard::set_propagation(unsigned long flags) const {
    REQUIRE(::mount(nullptr, target_.c_str(), nullptr, flags, nullptr) == 0);
}

NamespaceHolder::NamespaceHolder(const std::vector<std::string>& options)
    : process_(
          [&] {
              std::vector<std::string> argv = {"unshare", "--kill-child"};
              argv.insert(argv.end(), options.begin(), options.end());
              argv.insert(argv.end(), {"sh", "-c", "echo ready; exec sleep infinity"});
              return argv;
          }(),
          SpawnOptions()) {
    CHECK(process_.read_line() == "ready");
}

std::string NamespaceHolder::path(const std::string& name) const {
    return "/proc/" + std::to_string(process_.pid()) + "/ns/" + name;
}

const fs::path& playground() {
    static const Playground only;
    return only.path();
}

std::string read_text(const fs::path& path) {
    std::ifstream file(path, std::ios::binary);
    std::ostringstream text;
    text << file.rdbuf();
    return text.str();
}

void write_text(const fs::path& path, const std::string& text) {
    std::ofstream file(path, std::ios::binary);
    file << text;
    REQUIRE(file.flush().good());
}

std::vector<HostMount> host_mounts() {
    std::vector<HostMount> out;
    std::istringstream table(read_text("/proc/self/mountinfo"));
    for (std::string line; std::getline(table, line);) {
        std::istringstream fields(line);
        HostMount mount;
        std::string word;
        for (int i = 0; i < 5; ++i) fields >> mount.point;
        while (fields >> word && word != "-") continue;
        fields >> mount.type >> word >> mount.options;
        out.push_back(mount);
    }
    return out;
}

std::string mount_table() { return read_text("/proc/self/mountinfo"); }

fs::path cgroup2_mount() {
    for (const HostMount& mount : host_mounts()) {
        if (mount.type == "cgroup2") return mount.point;
    }
    return {};
}

bool has_controller(const std::string& name) {
    if (cgroup2_mount().empty()) return false;
    std::istringstream names(read_text(cgroup2_mount() / "cgroup.controllers"));
    for (std::string word; names >> word;) {
        if (word == name) return true;
    }
    return false;
}

fs::path cgroup1_mount(const std::string& controller) {
    for (const HostMount& mount : host_mounts()) {
        if (mount.type == "cgroup" && ("," + mount.options + ",").find("," + controller + ",") != std::string::npos) {
            return mount.point;
        }
    }
    return {};
}

std::vector<std::string> cgroups_named(const std::string& name) {
    std::vector<std::string> found;
    for (const HostMount& mount : host_mounts()) {
        if (mount.type == "cgroup2" || mount.type == "cgroup") find_directories(mount.point, name, found);
    }
    return found;
}

std::vector<pid_t> children() {
    std::vector<pid_t> out;
    for (const auto& entry : fs::directory_iterator("/proc")) {
        const std::string name = entry.path().filename();
        if (name.find_first_not_of("0123456789") != std::string::npos) continue;
        if (parent_of(name) == ::getpid()) out.push_back(static_cast<pid_t>(std::stol(name)));
    }
    return out;
}

fs::path idmappable_directory() {
    static const fs::path found = [] {
        for (const fs::path& candidate : {playground(), fs::path("/tmp")}) {
            if (can_idmap(candidate)) return candidate;
        }
        const fs::path loop = loop_mounted_ext4();
        return !loop.empty() && can_idmap(loop) ? loop : fs::path();
    }();
    return found;
}

std::string own_namespace(const std::string& name) { return fs::read_symlink("/proc/self/ns/" + name); }

bool has_capability(int number) {
    std::istringstream status(read_text("/proc/self/status"));
    for (std::string word; status >> word;) {
        if (word != "CapEff:") continue;
        status >> word;
        return (std::stoull(word, nullptr, 16) >> number & 1) != 0;
    }
    return false;
}

}  // namespace pinfold::integration
