// Opens a path of the host if the rules allow it. What is judged is the opened file, so a link that changes meanwhile,
// a bind mount or another name is no way around.
#include "pinfold/mount_policy.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <memory>

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

constexpr const char* kHomeOfRoot = "/root";
constexpr const char* kWhoIsGivenIt =
    "only root itself, bound by no policy, may name what is in there, by its own path without a link: "
    "pinfold-policy(5)";

// By name: what was asked for is the path that it has. A link could have been put there by others.
bool is_given(const MountPolicy& policy, const std::string& rule, const HostPath& candidate, const std::string& asked) {
    if (std::ranges::find(policy.given_by_name, rule) == policy.given_by_name.end()) return false;
    return is_within(candidate.path, rule) && places_on_the_way(asked) == std::vector{candidate.path};
}

Result<void> check_forbidden(const MountPolicy& policy, const HostPath& candidate, const MountTable& mounts,
                             const std::string& asked) {
    for (const std::string& rule : policy.forbidden_paths) {
        if (is_given(policy, rule, candidate, asked)) continue;
        for (const std::string& pattern : without_tilde(rule)) {
            const auto refuse = [&](std::string_view relation) {
                return refusal(concat("forbidden_paths: ", candidate.path, relation, rule, " (", policy.origin, ")"))
                    .with_hint(rule == kHomeOfRoot ? kWhoIsGivenIt : "");
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

// Whoever can write there can make a new one of the same name, and begin the chain anew.
Result<void> check_audit_logs(const MountPolicy& policy, const HostPath& candidate, const MountTable& mounts) {
    for (const std::string& log : policy.audit_logs) {
        for (const std::string& place : places_on_the_way(log)) {
            const HostPath thing = locate_or_foresee(place, mounts);
            if (!lies_in(candidate, thing) && !contains(candidate, thing, mounts)) continue;
            return refusal(concat(candidate.path, candidate.path == thing.path ? " is" : " contains", " the audit log ",
                                  log))
                .with_hint("keep the log where no job can write");
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
                   Access access, const std::string& asked) {
    // First the rules: they are the better reason.
    for (const MountPolicy& policy : policies) {
        TRY(check_state_roots(policy, candidate, mounts));
        if (access == Access::write) TRY(check_audit_logs(policy, candidate, mounts));
        TRY(check_forbidden(policy, candidate, mounts, asked));
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

std::string parent_of(const std::string& path) {
    const size_t slash = path.rfind('/');
    return slash == std::string::npos ? "." : path.substr(0, std::max<size_t>(slash, 1));
}

// Whether what is there of the path, and nothing that a link on the way leads to, is in what the lists allow.
bool is_listed(const MountPolicy& policy, std::string path, const MountTable& mounts) {
    for (;; path = parent_of(path)) {
        const Result<UniqueFd> there = open_at(AT_FDCWD, path, O_PATH);
        if (there) {
            const Result<HostPath> place = locate_with_parents(there->get(), mounts);
            return place && check_allowed(policy, *place, Access::read);
        }
        const Result<UniqueFd> itself = open_at(AT_FDCWD, path, O_PATH | O_NOFOLLOW);
        if ((itself && is_of_kind(itself->get(), S_IFLNK)) || path == "/" || path == ".") return false;
    }
}

// Who may name only what is listed is told nothing of the rest: neither whether it is there, nor where a link leads.
Error hide_unlisted(std::span<const MountPolicy> policies, const std::string& path, const std::string& place,
                    Access access, Error error) {
    const Result<MountTable> mounts = read_mount_table();
    for (const MountPolicy& policy : policies) {
        const bool reads = policy.allowed_read_paths.has_value();
        if ((!reads && !policy.allowed_write_paths) || (mounts && is_listed(policy, place, *mounts))) continue;
        const bool by_read = reads && (access == Access::read || !policy.allowed_write_paths);
        return not_listed(by_read ? "allowed_read_paths" : "allowed_write_paths", policy,
                          by_read ? *policy.allowed_read_paths : *policy.allowed_write_paths, HostPath{.path = path});
    }
    return error;
}

Result<UniqueFd> open_and_check(std::span<const MountPolicy> policies, const std::string& path, Access access) {
    UniqueFd fd = TRY(open_at(AT_FDCWD, path, O_PATH));
    const MountTable mounts = TRY(read_mount_table());
    const HostPath candidate = TRY_IN(path, locate_with_parents(fd.get(), mounts));
    TRY_IN(path, check(policies, candidate, mounts, access, path));
    return fd;
}

Result<UniqueFd> open_parent_and_check(std::span<const MountPolicy> policies, const std::string& path, Access access) {
    const std::string name = path.substr(path.rfind('/') + 1);
    if (name.empty() || name == "." || name == "..")
        return plain_error(concat(quoted(path), " does not name an entry"));
    UniqueFd directory = TRY(open_at(AT_FDCWD, parent_of(path), O_PATH | O_DIRECTORY));
    const MountTable mounts = TRY(read_mount_table());
    HostPath candidate = TRY_IN(path, locate_with_parents(directory.get(), mounts));
    const Result<UniqueFd> entry = open_at(directory.get(), name, O_PATH | O_NOFOLLOW);
    const bool exists = entry && !is_of_kind(entry->get(), S_IFLNK);
    candidate =
        exists ? TRY_IN(path, locate_with_parents(entry->get(), mounts)) : mere_entry(std::move(candidate), name);
    TRY_IN(path, check(policies, candidate, mounts, access, path));
    return directory;
}

}  // namespace

Result<UniqueFd> open_allowed(std::span<const MountPolicy> policies, const std::string& path, Access access) {
    Result<UniqueFd> opened = open_and_check(policies, path, access);
    if (!opened) return hide_unlisted(policies, path, path, access, std::move(opened).error());
    return opened;
}

Result<UniqueFd> open_allowed(const MountPolicy& policy, const std::string& path, Access access) {
    return open_allowed(std::span(&policy, 1), path, access);
}

Result<UniqueFd> open_parent_allowed(std::span<const MountPolicy> policies, const std::string& path, Access access) {
    Result<UniqueFd> opened = open_parent_and_check(policies, path, access);
    if (!opened) return hide_unlisted(policies, path, parent_of(path), access, std::move(opened).error());
    return opened;
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

namespace {

// Of a file that its owner, or somebody else, can write to. Who changes the mode of another loses the bit by that.
bool has_set_id(const struct stat& info) {
    const bool is_set = (info.st_mode & S_ISUID) != 0 || (info.st_mode & (S_ISGID | S_IXGRP)) == (S_ISGID | S_IXGRP);
    return is_set && (info.st_mode & 0222) != 0;
}

// Whatever its mode is: capabilities stay when that is changed.
bool has_capabilities(int file) {
    const std::string path = concat("/proc/self/fd/", file);
    if (::getxattr(path.c_str(), "security.capability", nullptr, 0) >= 0) return true;
    return errno != ENODATA && errno != EOPNOTSUPP;  // they are there, and not to be told in this user namespace
}

// Of a regular file, by an O_PATH descriptor. Mounted nosuid it gives nobody any rights.
Result<bool> lends_rights(int file, const struct stat& info) {
    if (!S_ISREG(info.st_mode) || (!has_set_id(info) && !has_capabilities(file))) return false;
    struct statvfs filesystem {};
    if (::fstatvfs(file, &filesystem) != 0) return errno_error("stat");
    return (filesystem.f_flag & ST_NOSUID) == 0;
}

Error set_id_refusal(std::string_view path) {
    return plain_error(concat(quoted(path),
                              " is a program with a set-user-ID or set-group-ID bit, or with capabilities: the job "
                              "could rewrite it"))
        .with_hint("take that away (chmod ug-s, setcap -r), or show the directory by --ro-bind");
}

using Directory = std::unique_ptr<DIR, int (*)(DIR*)>;

// What is between the top and a place below it, by its names and as held directories: no path is too long for that. Of
// very many only the deepest are held. The others are found again from below.
struct Level {
    Directory stream;  // none: not held
    std::string name;
    dev_t device = 0;  // of one that is not held, which directory it is, and how far it was read
    ino_t inode = 0;
    long place = 0;
};

std::string path_of(const std::vector<Level>& levels, const char* name) {
    std::string path;
    for (const Level& level : levels) {
        if (!level.name.empty()) path += concat(level.name, '/');
    }
    return path + name;
}

// None where it is gone, or none of the caller's business, nor of the job's.
Result<Directory> open_level(int parent, const char* name, uid_t owner) {
    UniqueFd fd(::openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    const bool is_gone = !fd && (errno == ENOENT || errno == ENOTDIR || errno == ELOOP);
    const bool is_closed = !fd && errno == EACCES && owner != ::geteuid();
    if (is_gone || is_closed) return Directory(nullptr, ::closedir);
    DIR* stream = fd ? ::fdopendir(fd.get()) : nullptr;
    if (stream == nullptr) return errno_error(concat("look for programs with rights in ", quoted(name)));
    fd.release();  // the stream's
    return Directory(stream, ::closedir);
}

Result<void> let_go(Level& level) {
    struct stat info {};
    if (::fstat(::dirfd(level.stream.get()), &info) != 0) return errno_error("stat");
    level.device = info.st_dev;
    level.inode = info.st_ino;
    level.place = ::telldir(level.stream.get());
    level.stream.reset();
    return {};
}

Result<void> enter(std::vector<Level>& levels, Directory stream, const char* name) {
    constexpr size_t kHeld = 64;
    levels.push_back({std::move(stream), name});
    if (levels.size() <= kHeld) return {};
    Level& highest = levels[levels.size() - 1 - kHeld];
    return highest.stream ? let_go(highest) : Result<void>();
}

Result<void> leave(std::vector<Level>& levels) {
    const Level below = std::move(levels.back());
    levels.pop_back();
    if (levels.empty() || levels.back().stream) return {};
    Level& level = levels.back();
    level.stream = TRY(open_level(::dirfd(below.stream.get()), "..", ::geteuid()));
    struct stat info {};
    const bool is_same = level.stream && ::fstat(::dirfd(level.stream.get()), &info) == 0 &&
                         info.st_dev == level.device && info.st_ino == level.inode;
    if (!is_same) return plain_error(concat(quoted(path_of(levels, "")), " was moved while it was looked at"));
    ::seekdir(level.stream.get(), level.place);
    return {};
}

// What one entry is: a directory is gone into next.
Result<void> check_entry(std::vector<Level>& levels, const char* name) {
    const int parent = ::dirfd(levels.back().stream.get());
    const UniqueFd entry(::openat(parent, name, O_PATH | O_NOFOLLOW | O_CLOEXEC));
    struct stat info {};
    if (!entry || ::fstat(entry.get(), &info) != 0) {
        if (errno == ENOENT || errno == EACCES) return {};
        return errno_error(concat("look at ", quoted(path_of(levels, name))));
    }
    if (TRY(lends_rights(entry.get(), info))) return set_id_refusal(path_of(levels, name));
    if (!S_ISDIR(info.st_mode)) return {};
    Directory stream = TRY(open_level(parent, name, info.st_uid));
    return stream ? enter(levels, std::move(stream), name) : Result<void>();
}

}  // namespace

// The kernel takes bits and capabilities away from who writes by write(2), but not from who does by a mapping. Mounts
// below are bound, too.
Result<void> check_no_set_id(int fd) {
    struct stat info {};
    if (::fstat(fd, &info) != 0) return errno_error("stat");
    if (!S_ISDIR(info.st_mode))
        return TRY(lends_rights(fd, info)) ? Result<void>(set_id_refusal("it")) : Result<void>();
    std::vector<Level> levels;
    Directory top = TRY(open_level(fd, ".", info.st_uid));
    if (top) levels.push_back({std::move(top), ""});
    while (!levels.empty()) {
        errno = 0;
        const dirent* entry = ::readdir(levels.back().stream.get());
        if (entry == nullptr && errno != 0) return errno_error("read a directory");
        const std::string_view name = entry == nullptr ? "" : entry->d_name;
        if (entry == nullptr) TRY(leave(levels));
        else if (name != "." && name != ".." && entry->d_type != DT_LNK) TRY(check_entry(levels, entry->d_name));
    }
    return {};
}

}  // namespace pinfold
