// Files of a sandbox that stays, on the host's disk.
#include "sandbox/kept_files.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>

#include "base/fs.hpp"
#include "base/process.hpp"
#include "base/strings.hpp"
#include "kernel/namespaces.hpp"
#include "policy/check_request.hpp"
#include "policy/host_path.hpp"
#include "sandbox/job_file.hpp"
#include "spec/parse.hpp"
#include "state/lifecycle.hpp"

namespace pinfold {

namespace {

constexpr const char* kRecord = "sandbox";  // "NAME PID START-TIME BOOT PID-NAMESPACE"
constexpr const char* kFiles = "files";
constexpr size_t kMaxRecord = 4096;
constexpr const char* kOwnDirectory = "name a directory that is not there yet, or is empty and yours";

struct Tree {
    const char* name;
    mode_t mode;
};
constexpr Tree kTrees[] = {{"workspace", 0755}, {"tmp", 01777}};

Result<struct stat> look_at(int fd, const std::string& what) {
    struct stat info {};
    if (::fstat(fd, &info) != 0) return errno_error(concat("stat ", quoted(what)));
    return info;
}

// One that is not there is made, if the policies allow to make it; its parents are not.
Result<UniqueFd> open_or_make(const std::string& asked, const Policies& policies) {
    std::string path = asked;
    while (path.size() > 1 && path.ends_with('/')) path.pop_back();
    Result<UniqueFd> found = open_allowed(policies, path, Access::write);
    if (found || found.error().code != ENOENT) return found;
    const UniqueFd parent = TRY(open_parent_allowed(policies, path, Access::write));
    const std::string name = path.substr(path.rfind('/') + 1);
    if (::mkdirat(parent.get(), name.c_str(), 0700) != 0 && errno != EEXIST)
        return errno_error(concat("make ", quoted(path)));
    return open_allowed(policies, path, Access::write);
}

Result<bool> is_empty(int directory) {
    UniqueFd again = TRY(open_at(directory, ".", O_RDONLY | O_DIRECTORY));
    const std::unique_ptr<DIR, int (*)(DIR*)> entries(::fdopendir(again.get()), ::closedir);
    if (!entries) return errno_error("list it");
    again.release();  // closedir closes it
    while (const dirent* entry = ::readdir(entries.get())) {
        const std::string_view name = entry->d_name;
        if (name != "." && name != "..") return false;
    }
    return true;
}

Result<void> require_own(int directory, const std::string& path) {
    const struct stat info = TRY(look_at(directory, path));
    if (!S_ISDIR(info.st_mode)) return plain_error("it is no directory");
    if (info.st_uid == ::geteuid()) return {};
    return plain_error(concat("it belongs to user ", info.st_uid, ", who could change what is in it"))
        .with_hint(kOwnDirectory);
}

// What others could reach, a sandbox could hand them: it may give its files any mode.
Result<void> require_private(int directory, const std::string& path) {
    const struct stat info = TRY(look_at(directory, path));
    if ((info.st_mode & 077) == 0) return {};
    return plain_error("others than its owner may look into it").with_hint(concat("chmod 700 ", path));
}

Result<UniqueFd> open_record(int directory) {
    UniqueFd record = TRY(open_at(directory, kRecord, O_RDWR | O_NOFOLLOW | O_NONBLOCK));
    const struct stat info = TRY(look_at(record.get(), kRecord));
    if (S_ISREG(info.st_mode) && info.st_nlink == 1 && info.st_uid == ::geteuid()) return record;
    return plain_error(concat(quoted(kRecord), " in it is not pinfold's own file"));
}

// The first time. What is there already is not given to a sandbox.
Result<UniqueFd> begin_record(int directory) {
    if (!TRY(is_empty(directory)))
        return plain_error("it holds other files than those of a sandbox").with_hint(kOwnDirectory);
    const UniqueFd again = TRY(open_at(directory, ".", O_RDONLY | O_DIRECTORY));
    if (::fchmod(again.get(), 0700) != 0) return errno_error("make it its owner's alone");
    const Result<UniqueFd> made = open_at(directory, kRecord, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);
    if (!made && made.error().code != EEXIST) return made.error();
    return open_record(directory);  // by now it is there, whoever was first
}

Result<std::string> boot_id() { return TRY(read_file("/proc/sys/kernel/random/boot_id")).substr(0, 36); }

std::string own_pid_namespace() { return link_target("/proc/self/ns/pid"); }

// One that was not written to its end is of a start that has not come to its end, either.
Result<void> require_free(int record) {
    const std::string text = TRY(read_at_most(record, kRecord, kMaxRecord));
    const std::vector<std::string_view> words = split(text, ' ');
    if (words.size() != 5 || words[3] != TRY(boot_id())) return {};
    // Numbers mean nothing in another namespace of processes.
    if (words[4] != own_pid_namespace())
        return plain_error(concat("sandbox ", quoted(words[0]), " of another pid namespace may have it"))
            .with_hint(concat("once that has ended, remove the file ", quoted(kRecord), " in it"));
    const pid_t pid = parse_number<pid_t>(words[1]).value_or(0);
    const uint64_t started = parse_number<uint64_t>(words[2]).value_or(0);
    if (pid <= 0 || !TRY(open_process(pid, started))) return {};
    return plain_error(concat("sandbox ", quoted(words[0]), " has it")).with_hint(concat("pinfold stop ", words[0]));
}

// A directory of ours in another one of ours, never a link in its place.
Result<UniqueFd> open_directory(int parent, const char* name) {
    return open_at(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
}

// One that a sandbox has, which may have closed it to everybody. Only who may write above it could have put something
// else in its place.
Result<UniqueFd> open_shown(int parent, const char* name) {
    struct stat info {};
    const bool is_closed = ::fstatat(parent, name, &info, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(info.st_mode) &&
                           (info.st_mode & 0700) != 0700;
    if (is_closed && ::fchmodat(parent, name, (info.st_mode & 07777) | 0700, 0) != 0)
        return errno_error(concat("open ", quoted(name), " to its owner"));
    return open_directory(parent, name);
}

// Only who may write above it could have made it: so one that is our own, and should not be, is of a start that has not
// come to its end.
Result<void> make_tree(int parent, const Tree& tree, const KeptOwner& owner) {
    const bool is_new = ::mkdirat(parent, tree.name, 0700) == 0;
    if (!is_new && errno != EEXIST) return errno_error(concat("make ", quoted(tree.name)));
    const UniqueFd made = TRY(open_shown(parent, tree.name));
    const bool is_ours = TRY(look_at(made.get(), tree.name)).st_uid == ::geteuid();
    if (!is_new && (!is_ours || owner.uid == ::geteuid())) return {};
    if (::fchown(made.get(), owner.uid, owner.gid) != 0) return errno_error(concat("give away ", quoted(tree.name)));
    if (::fchmod(made.get(), tree.mode) != 0) return errno_error(concat("set the mode of ", quoted(tree.name)));
    return {};
}

}  // namespace

Result<KeptOwner> kept_owner() {
    constexpr uint32_t kLastOfAll = 0x7fffffff;  // of those that sandboxes have
    if (::geteuid() == 0 && TRY(in_initial_user_namespace())) return KeptOwner{kLastOfAll, kLastOfAll};
    return KeptOwner{::geteuid(), ::getegid()};
}

Result<KeptFiles> KeptFiles::open(const std::string& directory, const Policies& policies, const KeptOwner& owner) {
    UniqueFd opened = TRY(open_or_make(directory, policies));
    TRY(require_own(opened.get(), directory));
    std::string path = link_target(concat("/proc/self/fd/", opened.get()));
    if (path.empty()) return errno_error("read the name of an opened directory");
    return KeptFiles(std::move(opened), std::move(path), owner);
}

Result<void> KeptFiles::claim() {
    Result<UniqueFd> record = open_record(directory_.get());
    if (!record && record.error().code == ENOENT) record = begin_record(directory_.get());
    record_ = TRY(std::move(record));
    TRY(require_private(directory_.get(), path_));
    TRY(lock_file(record_.get(), LOCK_EX, "it"));
    return require_free(record_.get());
}

// Who copies has no right to be in what is its owner's alone.
Result<void> KeptFiles::make_trees() {
    if (::mkdirat(directory_.get(), kFiles, 0700) != 0 && errno != EEXIST) return errno_error("make a directory in it");
    const UniqueFd files = TRY(open_directory(directory_.get(), kFiles));
    if (::fchmod(files.get(), 0755) != 0) return errno_error("set the mode of a directory in it");
    for (const Tree& tree : kTrees) TRY(make_tree(files.get(), tree, owner_));
    return {};
}

// Who can write there could put something else in the place of what is shown.
Result<void> KeptFiles::open_files() {
    files_ = TRY(open_directory(directory_.get(), kFiles));
    const struct stat info = TRY(look_at(files_.get(), kFiles));
    if (info.st_uid == ::geteuid() && (info.st_mode & 022) == 0) return {};
    return plain_error(concat(quoted(kFiles), " in it can be changed by others than its owner"));
}

Result<KeptFiles> KeptFiles::take(const std::string& directory, const Policies& policies, const KeptOwner& owner) {
    const std::string what = concat("--keep-files ", quoted(directory));
    KeptFiles kept = TRY_IN(what, open(directory, policies, owner));
    TRY_IN(what, kept.claim());
    TRY_IN(what, kept.make_trees());
    TRY_IN(what, kept.open_files());
    return kept;
}

Result<KeptFiles> KeptFiles::find(const std::string& directory, const Policies& policies, const KeptOwner& owner) {
    const std::string what = concat("its files in ", quoted(directory));
    UniqueFd opened = TRY_IN(what, open_allowed(policies, directory, Access::write));
    TRY_IN(what, require_own(opened.get(), directory));
    TRY_IN(what, require_private(opened.get(), directory));
    KeptFiles kept(std::move(opened), directory, owner);
    kept.record_ = TRY_IN(what, open_record(kept.directory_.get()));
    TRY_IN(what, kept.open_files());
    return kept;
}

Result<UniqueFd> KeptFiles::open_tree(const std::string& place) const {
    UniqueFd tree = TRY_IN(path_, open_shown(files_.get(), place.c_str() + 1));
    const struct stat info = TRY(look_at(tree.get(), place));
    if (info.st_uid == owner_.uid) return tree;
    return plain_error(concat(quoted(concat(path_, '/', kFiles, place)), " belongs to user ", info.st_uid, ", not to ",
                              owner_.uid, ", as what was kept by this user does"));
}

// Whatever the job has made of it: an entry of that one directory goes. On a way through others there may be links.
Result<void> KeptFiles::forget_script(const std::string& name) const {
    if (name.empty() || name.find('/') != name.npos) return {};
    const UniqueFd tree = TRY(open_tree(kWorkspace));
    if (::unlinkat(tree.get(), name.c_str(), 0) == 0 || errno == ENOENT) return {};
    return errno_error(concat(path_, ": remove the script of the last start, ", quoted(name)))
        .with_hint(concat("rm -r ", path_, '/', kFiles, kWorkspace, '/', name));
}

Result<void> KeptFiles::record(const std::string& name, pid_t sandbox_init) const {
    const uint64_t started = TRY(process_start_time(sandbox_init));
    const std::string text =
        concat(name, ' ', sandbox_init, ' ', started, ' ', TRY(boot_id()), ' ', own_pid_namespace());
    if (::ftruncate(record_.get(), 0) != 0 || ::lseek(record_.get(), 0, SEEK_SET) != 0)
        return errno_error(concat(path_, ": say whose it is"));
    TRY_IN(path_, write_all(record_.get(), text, kRecord));
    ::flock(record_.get(), LOCK_UN);  // by hand, since others have copies of the descriptor
    return {};
}

Result<void> KeptFiles::require_name(const std::string& name) const {
    const std::string text = TRY(read_at_most(record_.get(), kRecord, kMaxRecord));
    const std::string last = text.substr(0, text.find(' '));
    if (last == name) return {};
    return plain_error(concat("the files in ", quoted(path_), " are those of sandbox ", quoted(last), " by now"));
}

// Where relative paths begin is the payload's business, and the same as when it ran.
Result<InsideOf> KeptFiles::inside(std::string cwd) const {
    for (const char* place : kKeptPlaces) TRY(open_tree(place));
    WayInside way;
    way.root = TRY(open_at(files_.get(), ".", O_PATH | O_DIRECTORY));
    way.set_groups = owner_.uid != ::geteuid();  // who stays the same need not change them, and perhaps cannot
    InsideOf inside{.identity = {owner_.uid, owner_.gid, {}, true}, .cwd = std::move(cwd)};
    inside.way = std::make_shared<WayInside>(std::move(way));
    return inside;
}

Result<InsideOf> files_of(const std::string& state_root, const std::string& id, const std::string& path,
                          const Policies& policies) {
    const ContainerState state = TRY(load_state(state_root, id));
    const bool is_left = state.status == Status::stopped && state.record.annotations.contains(kKeptAnnotation);
    if (!is_left) TRY(check_operation(Operation::copy, state));
    mark_use(state_root, id);
    const std::string config = TRY(load_config_text(state_root, id));
    const Spec spec = TRY(parse_checked_config(config));
    if (!is_left) return inside_of(state, spec);
    const std::string asked = plain_path(path.starts_with('/') ? path : concat(spec.process->cwd, '/', path));
    const auto holds_it = [&](const char* place) { return is_within(asked, place); };
    if (std::ranges::none_of(kKeptPlaces, holds_it))
        return plain_error(concat(quoted(id), " has stopped: of its files, those in /workspace and /tmp are kept"));
    // An annotation may be that of anybody's bundle; this is pinfold's own.
    const SandboxJob job = TRY(load_job(state_root, id));
    const KeptOwner owner = TRY(kept_owner());
    const KeptFiles kept = TRY(KeptFiles::find(job.keep_files, policies, owner));
    TRY(kept.require_name(id));
    return kept.inside(spec.process->cwd);
}

}  // namespace pinfold
