// A root that is made for one container and is gone with it.
#include "kernel/made_root.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fs.hpp"
#include "base/strings.hpp"
#include "kernel/mounts.hpp"

namespace pinfold {

namespace {

Result<UniqueFd> make_memory(uint64_t size, const std::optional<MadeRoot::Owner>& owner = {}) {
    std::vector<FilesystemOption> options = {{"mode", "755"}, {"size", std::to_string(size)}};
    if (owner) options.push_back({"uid", std::to_string(owner->uid)});
    if (owner) options.push_back({"gid", std::to_string(owner->gid)});
    return make_filesystem({.type = "tmpfs",
                            .source = "tmpfs",
                            .options = std::move(options),
                            .attributes = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV});
}

Result<UniqueFd> make_directory_in(int directory, const char* name) {
    if (::mkdirat(directory, name, 0755) != 0) return errno_error(name);
    return open_at(directory, name, O_PATH | O_DIRECTORY | O_NOFOLLOW);
}

// The layers have to be mounts of this namespace. The one in memory is placed over "/", where nothing needs to be
// looked for and from where nobody reaches it: paths still begin at the old root.
Result<UniqueFd> lay_over(UniqueFd below, const MadeRoot& root) {
    const UniqueFd memory = TRY(make_memory(root.size));
    const UniqueFd host_root = TRY(open_at(AT_FDCWD, "/", O_PATH | O_DIRECTORY));
    TRY(place_mount(memory.get(), host_root.get()));
    const UniqueFd lower = TRY(make_directory_in(memory.get(), "lower"));
    const UniqueFd upper = TRY(make_directory_in(memory.get(), "upper"));
    const UniqueFd work = TRY(make_directory_in(memory.get(), "work"));
    // The root directory itself is that of the layer on top.
    if (root.owner && ::fchownat(upper.get(), "", root.owner->uid, root.owner->gid, AT_EMPTY_PATH) != 0)
        return errno_error("give the root to its user");
    TRY(place_mount(below.get(), lower.get()));
    const auto layer = [](const UniqueFd& fd) { return concat("/proc/self/fd/", fd.get()); };
    return make_filesystem(
        {.type = "overlay",
         .source = "overlay",
         .options = {{"lowerdir", layer(below)}, {"upperdir", layer(upper)}, {"workdir", layer(work)}},
         .attributes = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV});
}

Result<void> write_new_file(int directory, const Skeleton::File& file) {
    const UniqueFd fd = TRY(open_at(directory, file.path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0644));
    return write_all(fd.get(), file.text, file.path);
}

// Of a root that its user may change.
Result<void> give_skeleton(int directory, const Skeleton& skeleton, const MadeRoot::Owner& owner) {
    const auto give = [&](const std::string& path) -> Result<void> {
        if (::fchownat(directory, path.c_str(), owner.uid, owner.gid, AT_SYMLINK_NOFOLLOW) != 0)
            return errno_error(concat("give ", path, " to its user"));
        return {};
    };
    for (const std::string& path : skeleton.directories) TRY(give(path));
    for (const Link& link : skeleton.links) TRY(give(link.path));
    for (const Skeleton::File& file : skeleton.files) TRY(give(file.path));
    return {};
}

}  // namespace

Result<void> write_skeleton(int directory, const Skeleton& skeleton) {
    for (const std::string& path : skeleton.directories) {
        if (::mkdirat(directory, path.c_str(), 0755) != 0) return errno_error(concat("make ", path));
    }
    for (const Link& link : skeleton.links) {
        if (::symlinkat(link.target.c_str(), directory, link.path.c_str()) != 0)
            return errno_error(concat("make ", link.path));
    }
    for (const Skeleton::File& file : skeleton.files) TRY_IN("make", write_new_file(directory, file));
    return {};
}

Result<UniqueFd> make_root(const MadeRoot& root, UniqueFd below) {
    if (root.over_directory) return lay_over(std::move(below), root);
    UniqueFd memory = TRY(make_memory(root.size, root.owner));
    TRY(write_skeleton(memory.get(), root.skeleton));
    if (root.owner) TRY(give_skeleton(memory.get(), root.skeleton, *root.owner));
    return memory;
}

}  // namespace pinfold
