// A job as a bundle for another runtime.
#include "sandbox/external_bundle.hpp"

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "base/fs.hpp"
#include "base/strings.hpp"
#include "kernel/mounts.hpp"
#include "kernel/safe_path.hpp"
#include "pinfold/generate.hpp"

namespace pinfold {

namespace {

constexpr std::string_view kByNumber = "/proc/self/fd/";
constexpr const char* kRoot = "bundle/rootfs";
// Options for whole trees, which are carried out here, since not all runtimes know them.
constexpr struct {
    std::string_view name;
    uint64_t attribute;
} kTreeOptions[] = {{"rro", MOUNT_ATTR_RDONLY}, {"rnosuid", MOUNT_ATTR_NOSUID}, {"rnodev", MOUNT_ATTR_NODEV}};

std::string bind_path(const ExternalBundle& bundle, size_t index) { return concat(bundle.home, "/binds/", index); }
std::string script_path(const ExternalBundle& bundle) { return concat(bundle.home, "/script"); }

// The limits leave room for a sandbox init, which is not there, and not for what the runtime has.
void place_processes(const ExternalRuntime& runtime, Spec& spec) {
    int64_t& limit = *spec.linux_.resources.pids_limit;
    limit = runtime.own_threads + (limit - 1) * runtime.threads_per_process;
    for (Rlimit& rlimit : spec.process->rlimits) {
        if (rlimit.type == "RLIMIT_NPROC") rlimit.soft = rlimit.hard -= 1;
    }
}

Result<void> make_directories(int home) {
    for (const char* name : {"binds", "bundle", kRoot, "lower", "upper", "work"}) {
        if (::mkdirat(home, name, 0755) != 0) return errno_error(concat("make ", name));
    }
    return {};
}

Result<void> write_file(int home, const char* name, std::string_view text) {
    const UniqueFd file = TRY(open_at(home, name, O_WRONLY | O_CREAT | O_EXCL, 0644));
    return write_all(file.get(), text, name);
}

bool is_directory(int fd) {
    struct stat info {};
    return ::fstat(fd, &info) == 0 && S_ISDIR(info.st_mode);
}

// What the plan has named by number, or by its path.
Result<UniqueFd> copy_tree(const Mount& mount) {
    const bool by_number = mount.source.starts_with(kByNumber);
    const int fd = by_number ? parse_number<int>(mount.source.substr(kByNumber.size())).value_or(-1) : AT_FDCWD;
    UniqueFd tree = TRY(clone_tree(fd, by_number ? "" : mount.source, true));
    MountChange change;
    for (const auto& option : kTreeOptions) {
        if (std::ranges::find(mount.options, option.name) != mount.options.end()) change.set |= option.attribute;
    }
    if (!change.empty()) TRY_IN(mount.source, change_mount(tree.get(), change, true));
    return tree;
}

// While we are still where they were opened: a namespace cannot copy the mounts of another.
Result<std::vector<UniqueFd>> copy_trees(const std::vector<Mount>& mounts) {
    std::vector<UniqueFd> trees;
    for (const Mount& mount : mounts) {
        if (mount.type == "bind") trees.push_back(TRY_IN(mount.destination, copy_tree(mount)));
    }
    return trees;
}

Result<void> leave_namespace() {
    if (::unshare(CLONE_NEWNS) != 0) return errno_error("make a mount namespace");
    if (::mount(nullptr, "/", nullptr, MS_SLAVE | MS_REC, nullptr) != 0)
        return errno_error("keep mounts from the host");
    return {};
}

// Ids of the job's user namespace pass through it, and see nothing but what they know the name of. It has no attribute,
// nor has the root: some runtimes mount the latter anew without any, and are refused if they would drop one.
Result<UniqueFd> make_home(const std::string& path) {
    UniqueFd memory = TRY(make_filesystem({.type = "tmpfs", .source = "tmpfs", .options = {{"mode", "711"}}}));
    const UniqueFd target = TRY(open_at(AT_FDCWD, path, O_PATH | O_DIRECTORY));
    TRY(place_mount(memory.get(), target.get()));
    return memory;
}

// Over the directory, which so gets mount points and is not changed. A layer has to be a mount of this namespace.
Result<void> lay_over(const UniqueFd& lower, int home, int root) {
    const UniqueFd place = TRY(open_at(home, "lower", O_PATH | O_DIRECTORY));
    TRY(place_mount(lower.get(), place.get()));
    const UniqueFd upper = TRY(open_at(home, "upper", O_PATH | O_DIRECTORY));
    const UniqueFd work = TRY(open_at(home, "work", O_PATH | O_DIRECTORY));
    const auto layer = [](const UniqueFd& fd) { return concat(kByNumber, fd.get()); };
    const UniqueFd overlay = TRY(make_filesystem(
        {.type = "overlay",
         .source = "overlay",
         .options = {{"lowerdir", layer(lower)}, {"upperdir", layer(upper)}, {"workdir", layer(work)}}}));
    return place_mount(overlay.get(), root);
}

Result<void> place_trees(const ExternalBundle& bundle, const std::vector<UniqueFd>& trees) {
    for (size_t i = 0; i < trees.size(); ++i) {
        const std::string path = bind_path(bundle, i);
        if (is_directory(trees[i].get())) {
            if (::mkdir(path.c_str(), 0755) != 0) return errno_error(concat("make ", path));
        } else {
            TRY(open_at(AT_FDCWD, path, O_WRONLY | O_CREAT | O_EXCL, 0644));
        }
        const UniqueFd target = TRY(open_at(AT_FDCWD, path, O_PATH));
        TRY(place_mount(trees[i].get(), target.get()));
    }
    return {};
}

// The root of a user namespace could not make them: the root is not its own. Also where a new file system will lie over
// them: gVisor mounts all binds first, and apart.
Result<void> make_mount_points(const RootFd& root, const std::vector<Mount>& mounts) {
    for (const Mount& mount : mounts) {
        bool directory = true;
        if (mount.type == "bind") {
            const UniqueFd source = TRY(open_at(AT_FDCWD, mount.source, O_PATH));
            directory = is_directory(source.get());
        }
        TRY_IN("mount point", directory ? root.make_directory(mount.destination) : root.make_file(mount.destination));
    }
    return {};
}

}  // namespace

ExternalBundle plan_bundle(const JobConfig& config, const ExternalRuntime& runtime, const CgroupPath& group,
                           const std::string& state_root) {
    ExternalBundle bundle{config.spec, config.sandbox_init.script, config, state_root};
    Spec& spec = bundle.spec;
    spec.root.path = "rootfs";
    spec.linux_.cgroups_path = group.path;
    place_processes(runtime, spec);
    size_t index = 0;
    for (Mount& mount : spec.mounts) {
        if (mount.type != "bind") continue;
        mount.source = bind_path(bundle, index++);
        for (const auto& option : kTreeOptions) {
            if (std::erase(mount.options, option.name) != 0) mount.options.emplace_back(option.name.substr(1));
        }
    }
    if (!config.sandbox_init.script_path.empty()) {
        spec.mounts.push_back(
            {config.sandbox_init.script_path, "bind", script_path(bundle), {"bind", "ro", "nosuid", "nodev"}, {}, {}});
    }
    return bundle;
}

std::string bundle_path(const ExternalBundle& bundle) { return concat(bundle.home, "/bundle"); }

Result<void> lay_out(const ExternalBundle& bundle) {
    const JobConfig& config = bundle.config;
    const std::vector<UniqueFd> trees = TRY(copy_trees(config.spec.mounts));
    UniqueFd below;
    if (config.root.over_directory) below = TRY_IN("root", clone_tree(config.root_source.get(), "", true));
    TRY(leave_namespace());
    const UniqueFd home = TRY(make_home(bundle.home));
    TRY(make_directories(home.get()));
    TRY(write_file(home.get(), "bundle/config.json", config_json(bundle.spec)));
    TRY(write_file(home.get(), "script", bundle.script));
    TRY(place_trees(bundle, trees));
    UniqueFd root = TRY(open_at(home.get(), kRoot, O_PATH | O_DIRECTORY));
    if (config.root.over_directory) TRY_IN("root", lay_over(below, home.get(), root.get()));
    root = TRY(open_at(home.get(), kRoot, O_PATH | O_DIRECTORY));
    TRY_IN("root", write_skeleton(root.get(), config.root.skeleton));
    return make_mount_points(RootFd(std::move(root)), bundle.spec.mounts);
}

}  // namespace pinfold
