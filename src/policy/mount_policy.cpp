// Opens a path of the host if the rules allow it. What is judged is the opened file, so a link that changes meanwhile,
// a bind mount or another name is no way around.
#include "pinfold/mount_policy.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>

#include "base/fs.hpp"
#include "base/strings.hpp"
#include "policy/host_path.hpp"
#include "policy/path_rules.hpp"

namespace pinfold {

namespace {

// Not files but the kernel's interfaces, wherever they are mounted.
constexpr auto kKernelFilesystems = std::to_array<std::string_view>(
    {"binfmt_misc", "bpf",        "cgroup",     "cgroup2",   "configfs", "debugfs", "devpts",
     "devtmpfs",    "efivarfs",   "fusectl",    "mqueue",    "nfsd",     "nsfs",    "proc",
     "pstore",      "rpc_pipefs", "securityfs", "selinuxfs", "sysfs",    "tracefs"});

bool is_kernel_filesystem(std::string_view type) {
    return std::ranges::find(kKernelFilesystems, type) != kKernelFilesystems.end();
}

Error refusal(const std::string& reason) { return Error{kPolicyRefusal, concat("policy: ", reason), {}}; }

// What one rule forbids, as it is now. A thing that cannot be opened for another reason than its absence keeps its
// name.
std::vector<HostPath> forbidden_things(const std::string& pattern, const MountTable& mounts) {
    std::vector<HostPath> things;
    for (const std::string& path : expand_stars(pattern)) {
        const Result<UniqueFd> fd = open_at(AT_FDCWD, path, O_PATH);
        if (!fd && (fd.error().code == ENOENT || fd.error().code == ENOTDIR)) continue;
        Result<HostPath> thing = fd ? locate(fd->get(), mounts) : Result<HostPath>(HostPath{.path = path});
        things.push_back(thing ? std::move(*thing) : HostPath{.path = path});
    }
    return things;
}

bool lies_in(const HostPath& candidate, const HostPath& thing) {
    return is_within(candidate.path, thing.path) || is_within(candidate.place, thing.place) ||
           (thing.self.number != 0 && std::ranges::find(candidate.around, thing.self) != candidate.around.end());
}

bool contains(const HostPath& candidate, const HostPath& thing, const MountTable& mounts) {
    if (is_within(thing.path, candidate.path) || is_within(thing.place, candidate.place)) return true;
    // Mounts below it would come along.
    return std::ranges::any_of(mounts, [&](const MountEntry& mount) {
        return is_within(mount.point, candidate.path) && mount.point != candidate.path &&
               (is_within(mount.root, thing.place) || is_within(thing.place, mount.root));
    });
}

Result<void> check_forbidden(const MountPolicy& policy, const HostPath& candidate, const MountTable& mounts) {
    for (const std::string& rule : policy.forbidden_paths) {
        for (const std::string& pattern : without_tilde(rule)) {
            const auto refuse = [&](std::string_view relation) {
                return refusal(concat("forbidden_paths: ", candidate.path, relation, rule, " (", policy.origin, ")"));
            };
            if (is_within_pattern(candidate.path, pattern)) return refuse(" is in ");
            for (const HostPath& thing : forbidden_things(pattern, mounts)) {
                if (lies_in(candidate, thing)) return refuse(" is in ");
                if (contains(candidate, thing, mounts)) return refuse(" contains ");
            }
        }
    }
    return {};
}

// An entry that is not there yet, or that is a link: nothing but a name in its directory.
HostPath mere_entry(HostPath directory, const std::string& name) {
    directory.path = entry_path(directory.path, name);
    directory.place.path = entry_path(directory.place.path, name);
    directory.self = {};
    directory.mode = S_IFREG;
    return directory;
}

// Of what is there or may be made, by a path without links.
HostPath locate_or_foresee(const std::string& path, const MountTable& mounts) {
    for (size_t end = path.size();;) {
        const Result<UniqueFd> fd = open_at(AT_FDCWD, path.substr(0, std::max<size_t>(end, 1)), O_PATH | O_NOFOLLOW);
        const Result<HostPath> found = fd ? locate(fd->get(), mounts) : Result<HostPath>(fd.error());
        if (found) return end + 1 >= path.size() ? *found : mere_entry(*found, path.substr(end + 1));
        const bool absent = found.error().code == ENOENT || found.error().code == ENOTDIR;
        if (fd || !absent || end == 0) return HostPath{.path = path};
        end = path.rfind('/', end - 1);
    }
}

Result<void> check_state_roots(const MountPolicy& policy, const HostPath& candidate, const MountTable& mounts) {
    for (const std::string& root : policy.state_roots) {
        for (const std::string& place : places_on_the_way(root)) {
            const HostPath thing = locate_or_foresee(place, mounts);
            if (lies_in(candidate, thing) || contains(candidate, thing, mounts))
                return state_refusal(candidate.path, thing.path, root);
        }
    }
    return {};
}

bool is_below_one_of(const std::vector<std::string>& rules, const HostPath& candidate) {
    for (const std::string& rule : rules) {
        for (const std::string& pattern : without_tilde(rule)) {
            for (const std::string& path : expand_stars(pattern)) {
                struct stat info {};
                if (::stat(path.c_str(), &info) != 0) continue;
                const Inode directory{info.st_dev, info.st_ino};
                if (std::ranges::find(candidate.around, directory) != candidate.around.end()) return true;
            }
        }
    }
    return false;
}

Error not_listed(std::string_view list, const MountPolicy& policy, const std::vector<std::string>& rules,
                 const HostPath& candidate) {
    if (!rules.empty())
        return refusal(concat(list, ": ", candidate.path, " is not in ", join(rules, ", "), " (", policy.origin, ")"));
    return refusal(concat(list, ": ", candidate.path, " is not in an empty list (", policy.origin, ")"))
        .with_hint("who comes by sudo may name what is listed, where there is no list, nothing: pinfold-policy(5)");
}

// What may be written may be read as well.
Result<void> check_allowed(const MountPolicy& policy, const HostPath& candidate, Access access) {
    const auto& read = policy.allowed_read_paths;
    const auto& write = policy.allowed_write_paths;
    const bool writable = write && is_below_one_of(*write, candidate);
    if (access == Access::write && write && !writable)
        return not_listed("allowed_write_paths", policy, *write, candidate);
    if (read && !writable && !is_below_one_of(*read, candidate)) {
        return not_listed("allowed_read_paths", policy, *read, candidate);
    }
    return {};
}

Result<void> check_kind(const HostPath& candidate, const MountTable& mounts) {
    if (!S_ISREG(candidate.mode) && !S_ISDIR(candidate.mode)) {
        return refusal(concat(candidate.path, " is neither a file nor a directory"));
    }
    if (candidate.filesystem.empty()) return refusal(concat(candidate.path, " is in another mount namespace"));
    if (is_kernel_filesystem(candidate.filesystem)) {
        return refusal(concat(candidate.path, " is on ", candidate.filesystem, ", an interface of the kernel"));
    }
    for (const MountEntry& mount : mounts) {
        if (is_within(mount.point, candidate.path) && is_kernel_filesystem(mount.type)) {
            return refusal(concat(candidate.path, " contains ", mount.point, ", an interface of the kernel"));
        }
    }
    return {};
}

Result<void> check(std::span<const MountPolicy> policies, const HostPath& candidate, const MountTable& mounts,
                   Access access) {
    // First the rules: they are the better reason.
    for (const MountPolicy& policy : policies) {
        TRY(check_state_roots(policy, candidate, mounts));
        TRY(check_forbidden(policy, candidate, mounts));
        TRY(check_allowed(policy, candidate, access));
    }
    return check_kind(candidate, mounts);
}

// Of one line of /proc/net/unix: "Num RefCount Protocol Flags Type St Inode Path". Empty: none that could be connected
// to by its path.
std::string answering_socket(std::string_view line) {
    constexpr std::string_view kListening = "00010000", kDatagram = "0002";
    std::vector<std::string_view> words = split(line, ' ');
    std::erase(words, std::string_view());
    if (words.size() < 8 || (words[3] != kListening && words[4] != kDatagram)) return "";
    const size_t path = line.find(" /");
    return path == line.npos ? "" : std::string(line.substr(path + 1));
}

bool is_of_kind(int fd, mode_t kind) {
    struct stat info {};
    return ::fstat(fd, &info) == 0 && (info.st_mode & S_IFMT) == kind;
}

}  // namespace

Result<UniqueFd> open_allowed(std::span<const MountPolicy> policies, const std::string& path, Access access) {
    UniqueFd fd = TRY(open_at(AT_FDCWD, path, O_PATH));
    const MountTable mounts = TRY(read_mount_table());
    const HostPath candidate = TRY_IN(path, locate_with_parents(fd.get(), mounts));
    TRY_IN(path, check(policies, candidate, mounts, access));
    return fd;
}

Result<UniqueFd> open_allowed(const MountPolicy& policy, const std::string& path, Access access) {
    return open_allowed(std::span(&policy, 1), path, access);
}

Result<UniqueFd> open_parent_allowed(std::span<const MountPolicy> policies, const std::string& path, Access access) {
    const size_t slash = path.rfind('/');
    const std::string name = path.substr(slash == std::string::npos ? 0 : slash + 1);
    if (name.empty() || name == "." || name == "..")
        return plain_error(concat(quoted(path), " does not name an entry"));
    const std::string parent = slash == std::string::npos ? "." : path.substr(0, std::max<size_t>(slash, 1));
    UniqueFd directory = TRY(open_at(AT_FDCWD, parent, O_PATH | O_DIRECTORY));
    const MountTable mounts = TRY(read_mount_table());
    HostPath candidate = TRY_IN(path, locate_with_parents(directory.get(), mounts));
    const Result<UniqueFd> entry = open_at(directory.get(), name, O_PATH | O_NOFOLLOW);
    const bool exists = entry && !is_of_kind(entry->get(), S_IFLNK);
    candidate =
        exists ? TRY_IN(path, locate_with_parents(entry->get(), mounts)) : mere_entry(std::move(candidate), name);
    TRY_IN(path, check(policies, candidate, mounts, access));
    return directory;
}

Result<void> check_no_sockets(int directory) {
    if (!is_of_kind(directory, S_IFDIR)) return {};
    const MountTable mounts = TRY(read_mount_table());
    const HostPath bound = TRY(locate(directory, mounts));
    const std::string table = TRY(read_file("/proc/net/unix"));
    for (const std::string_view line : split(table, '\n')) {
        const std::string path = answering_socket(line);
        const Result<UniqueFd> opened = path.empty() ? UniqueFd() : open_at(AT_FDCWD, path, O_PATH);
        if (!opened || !*opened || !is_of_kind(opened->get(), S_IFSOCK)) continue;  // its name is gone, or another's
        const Result<HostPath> socket = locate(opened->get(), mounts);
        if (!socket || !contains(bound, *socket, mounts)) continue;
        return refusal(concat(bound.path, " contains the socket ", socket->path, ", where somebody answers"))
            .with_hint("bind a directory without it");
    }
    return {};
}

}  // namespace pinfold
