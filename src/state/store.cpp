// What pinfold remembers of a container.
#include "state/store.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <memory>
#include <span>

#include "base/fs.hpp"
#include "base/log.hpp"
#include "base/process.hpp"
#include "base/strings.hpp"
#include "cgroup/cgroup.hpp"
#include "cgroup/control_files.hpp"
#include "json/json.hpp"
#include "kernel/namespaces.hpp"
#include "kernel/syscalls.hpp"

namespace pinfold {

namespace {

constexpr const char* kRecordFile = "state.json";
constexpr const char* kConfigFile = "config.json";
constexpr const char* kInitFile = "init";  // "PID START-TIME"
constexpr size_t kMaxInitFile = 64;
constexpr size_t kMaxRecord = 2 * kMaxDocument;  // annotations and hooks of the config, and what is around them
constexpr const char* kUnfinishedSocket = "start.new";
constexpr const char* kStartSocket = "start";
constexpr std::array kOfLastTime = {"output", "result", "stop"};  // of a sandbox that stays
constexpr const char* kTurnFile = ".turn";                        // of the state root

constexpr const char* kRootsState = "/run/pinfold";
constexpr const char* kOwnRoot = "name a directory of your own with --root";
constexpr const char* kSetRuntimeDirectory = "set XDG_RUNTIME_DIR to one";

// Where most users, root of the host among them, are nobody that one could call pinfold as.
bool in_user_namespace() {
    const Result<bool> initial = in_initial_user_namespace();
    return initial && !*initial;
}

bool is_ours(const struct stat& info) { return info.st_uid == ::geteuid() || info.st_uid == 0; }

// Whoever can write to it says which processes a container has, whose groups are removed with it, and which programs
// are its hooks: pinfold would do that with our rights.
Result<void> require_own(const struct stat& info, const std::string& root) {
    if (!S_ISDIR(info.st_mode) && !S_ISLNK(info.st_mode)) return errno_error(ENOTDIR, concat("open ", root));
    if (!is_ours(info)) {
        return plain_error(
                   concat("the state directory ", root, " belongs to user ", info.st_uid, ", who could change it"))
            .with_hint(
                concat(kOwnRoot, ", or ", in_user_namespace() ? kSetRuntimeDirectory : "call pinfold as that user"));
    }
    const bool by_group = (info.st_mode & 020) != 0 && info.st_gid != ::getegid() && info.st_gid != 0;
    if (S_ISLNK(info.st_mode) || (!by_group && (info.st_mode & 002) == 0)) return {};
    return plain_error(concat("the state directory ", root, " can be changed by others than its owner"))
        .with_hint(concat("chmod go-w ", root, ", or ", kOwnRoot));
}

// A link may be in the way only if it is not somebody else's.
Result<UniqueFd> open_own(const std::string& root) {
    UniqueFd fd = TRY(open_at(AT_FDCWD, root, O_PATH | O_NOFOLLOW));
    struct stat info {};
    if (::fstat(fd.get(), &info) != 0) return errno_error(concat("stat ", root));
    TRY(require_own(info, root));
    if (!S_ISLNK(info.st_mode)) return fd;
    fd = TRY(open_at(AT_FDCWD, root, O_PATH | O_DIRECTORY));
    if (::fstat(fd.get(), &info) != 0) return errno_error(concat("stat ", root));
    TRY(require_own(info, root));
    return fd;
}

Result<UniqueFd> open_state_root(const std::string& root) {
    Result<UniqueFd> fd = open_own(root);
    if (!fd && fd.error().code == EACCES) return std::move(fd).error().with_hint(kOwnRoot);
    if (fd || fd.error().code != ENOENT) return fd;
    for (size_t slash = root.find('/', 1);; slash = root.find('/', slash + 1)) {
        if (::mkdir(root.substr(0, slash).c_str(), 0700) != 0 && errno != EEXIST) {
            return errno_error(concat("make ", root)).with_hint(kOwnRoot);
        }
        if (slash == std::string::npos) break;
    }
    return open_own(root);
}

// Complete from the moment it has its name.
Result<void> write_new_file(int dir, const char* name, std::string_view text) {
    NewFile file = TRY_IN(name, NewFile::create(dir, 0600));
    TRY_IN(name, file.append(text));
    return file.commit(name);
}

// An ordinary one by one call.
Result<void> write_record_file(int dir, const ContainerRecord& record) {
    constexpr size_t kPart = 65536;
    NewFile file = TRY_IN(kRecordFile, NewFile::create(dir, 0600));
    std::string part;
    Result<void> written;
    write_record(record, [&](std::string_view piece) {
        part += piece;
        if (part.size() < kPart || !written) return;
        written = file.append(part);
        part.clear();
    });
    if (written) written = file.append(part);
    TRY_IN(kRecordFile, std::move(written));
    return file.commit(kRecordFile);
}

// The configuration goes before the first process's file, and came before it: who sees neither sees a removal.
constexpr std::array kFiles = {kConfigFile, kStartSocket, kUnfinishedSocket, kInitFile, kRecordFile};

Result<void> remove_entry(int dir, const std::string& name);

// By the system call: a state directory has a handful of entries, for which no stream and its 32 KiB are needed. One
// that another was faster to remove has none, and says so either when it is opened or when it is read.
Result<std::vector<std::string>> names_in(int dir) {
    const UniqueFd again(::openat(dir, ".", O_DIRECTORY | O_RDONLY | O_CLOEXEC));
    std::vector<std::string> names;
    alignas(dirent64) char entries[4096];
    ssize_t length = 0;
    while (again && (length = ::getdents64(again.get(), entries, sizeof entries)) > 0) {
        for (const char* at = entries; at < entries + length;) {
            const auto* entry = reinterpret_cast<const dirent64*>(at);
            const std::string_view name = entry->d_name;
            if (name != "." && name != "..") names.emplace_back(name);
            at += entry->d_reclen;
        }
    }
    if ((!again || length < 0) && errno != ENOENT) return errno_error("list");
    return names;
}

// With all that is in it. A link goes as such, and what is mounted there stays.
Result<void> remove_entry(int dir, const std::string& name) {
    if (::unlinkat(dir, name.c_str(), 0) == 0 || errno == ENOENT) return {};
    if (errno != EISDIR) return errno_error(concat("remove ", quoted(name)));
    const open_how how{O_DIRECTORY | O_PATH | O_CLOEXEC, 0, RESOLVE_NO_XDEV | RESOLVE_NO_SYMLINKS};
    const UniqueFd inside(sys_openat2(dir, name.c_str(), how));
    if (!inside) return errno == ENOENT ? Result<void>() : errno_error(concat("remove ", quoted(name)));
    for (const std::string& one : TRY_IN(name, names_in(inside.get()))) TRY_IN(name, remove_entry(inside.get(), one));
    if (::unlinkat(dir, name.c_str(), AT_REMOVEDIR) == 0 || errno == ENOENT) return {};
    return errno_error(concat("remove ", quoted(name)));
}

// What somebody else has put there goes first: if it cannot be removed, the container is still known.
Result<void> remove_directory(int root, const std::string& id) {
    const UniqueFd dir(::openat(root, id.c_str(), O_DIRECTORY | O_NOFOLLOW | O_PATH | O_CLOEXEC));
    if (!dir) return errno == ENOENT ? Result<void>() : errno_error("open");
    // An update that is just under way may put its record there anew.
    constexpr int kTries = 100;
    for (int tries = 0; tries < kTries; ++tries) {
        const std::vector<std::string> names = TRY(names_in(dir.get()));
        for (const std::string& name : names) {
            if (std::ranges::find(kFiles, name) == kFiles.end()) TRY(remove_entry(dir.get(), name));
        }
        for (const char* name : kFiles) {
            if (std::ranges::find(names, name) != names.end()) TRY(remove_entry(dir.get(), name));
        }
        if (::unlinkat(root, id.c_str(), AT_REMOVEDIR) == 0 || errno == ENOENT) return {};
        if (errno != ENOTEMPTY) break;
    }
    return errno_error("remove");
}

Error unknown_container(const std::string& id) {
    return Error{kNoSuchContainer, concat("container ", quoted(id), " does not exist"), {}};
}

Result<UniqueFd> open_in_root(int root_fd, const std::string& root, const std::string& id) {
    UniqueFd dir(::openat(root_fd, id.c_str(), O_DIRECTORY | O_NOFOLLOW | O_RDONLY | O_CLOEXEC));
    if (dir) return dir;
    return errno == ENOENT ? unknown_container(id) : errno_error(concat("open ", root, "/", id));
}

Result<UniqueFd> open_state_dir(const std::string& root, const std::string& id) {
    TRY(check_container_id(id));
    TRY(require_proc());
    const Result<UniqueFd> own = open_own(root);
    if (!own) return own.error().code == ENOENT ? unknown_container(id) : own.error();
    return open_in_root(own->get(), root, id);
}

// Of a state directory, in which nobody but us can have put something whose opening alone has an effect. What is no
// regular file all the same is told apart with more care.
Result<std::string> read_own(int dir, const char* name, size_t most) {
    constexpr size_t kUsual = 2048;  // more than most hold: a record, or the number of a process
    char text[kUsual];
    UniqueFd file(::openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
    const ssize_t length = file ? ::pread(file.get(), text, std::min(sizeof text, most), 0) : -1;
    if (length > 0 && size_t(length) < std::min(sizeof text, most)) return std::string(text, size_t(length));
    if (!file && errno == ENOENT) return errno_error(concat("open ", name));
    struct stat info {};
    const bool is_regular = file && ::fstat(file.get(), &info) == 0 && S_ISREG(info.st_mode);
    if (!is_regular) file = TRY(open_regular(dir, name, O_NOFOLLOW));
    return read_at_most(file.get(), name, most);
}

bool has_file(int dir, const char* name) { return ::faccessat(dir, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0; }

Status status_of_living(int dir, const ContainerRecord& record) {
    if (has_file(dir, kUnfinishedSocket)) return Status::creating;
    const bool frozen = record.cgroup.exists() && is_frozen(record.cgroup);
    if (frozen) return Status::paused;
    return has_file(dir, kStartSocket) ? Status::created : Status::running;
}

Result<void> add_status(int dir, ContainerState& state) {
    const Result<std::string> text = read_own(dir, kInitFile, kMaxInitFile);
    if (!text && text.error().code == ENOENT) return {};  // still creating, or its creator died
    if (!text) return text.error();
    const std::vector<std::string_view> words = split(*text, ' ');
    const pid_t pid = parse_number<pid_t>(words[0]).value_or(0);
    const uint64_t started = words.size() < 2 ? 0 : parse_number<uint64_t>(words[1]).value_or(0);
    state.had_init = true;
    state.started = started;
    const bool alive = started != 0 && TRY(is_alive(pid, started));
    state.status = alive ? status_of_living(dir, state.record) : Status::stopped;
    state.pid = alive ? pid : 0;
    return {};
}

// Through the directory's descriptor the address is short, however long the path is.
sockaddr_un address_in(int dir, const char* name) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    concat("/proc/self/fd/", dir, "/", name).copy(address.sun_path, sizeof address.sun_path - 1);
    return address;
}

Result<UniqueFd> make_socket() {
    UniqueFd socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
    if (!socket) return errno_error("make a socket");
    return socket;
}

Result<void> lock_directory(int dir, const std::string& id) {
    Result<void> locked = lock_file(dir, LOCK_EX, concat("container ", quoted(id)));
    if (locked || locked.error().code != EWOULDBLOCK) return locked;
    return std::move(locked).error().with_hint("end that process first: it may wait for a hook");
}

Result<bool> has_name(int dir, int root, const std::string& name) {
    struct stat held {};
    struct stat named {};
    if (::fstat(dir, &held) != 0) return errno_error("stat a state directory");
    if (::fstatat(root, name.c_str(), &named, AT_SYMLINK_NOFOLLOW) == 0) return held.st_ino == named.st_ino;
    if (errno == ENOENT) return false;
    return errno_error(concat("stat ", name));
}

// Before it is locked, a forced delete may take the new directory away, and another create may give its name to one of
// its own: that one is in use, and must be neither filled nor removed.
Result<UniqueFd> claim_directory(int root, const std::string& id) {
    const Error lost = plain_error(concat("container ", quoted(id), " was deleted while it was made"));
    UniqueFd dir(::openat(root, id.c_str(), O_DIRECTORY | O_NOFOLLOW | O_RDONLY | O_CLOEXEC));
    if (!dir) return errno == ENOENT ? lost : errno_error(concat("open the state of ", quoted(id)));
    TRY(lock_directory(dir.get(), id));
    if (!TRY(has_name(dir.get(), root, id)) || has_file(dir.get(), kRecordFile)) return lost;
    return dir;
}

}  // namespace

const char* status_name(Status status) {
    switch (status) {
        case Status::creating: return "creating";
        case Status::created: return "created";
        case Status::running: return "running";
        case Status::paused: return "paused";
        case Status::stopped: return "stopped";
    }
    return "unknown";
}

StateDir::StateDir(UniqueFd root, UniqueFd fd, std::string id)
    : root_(std::move(root)), fd_(std::move(fd)), id_(std::move(id)), owner_(::getpid()) {}

StateDir::StateDir(StateDir&& other) noexcept
    : root_(std::move(other.root_)),
      fd_(std::move(other.fd_)),
      id_(std::move(other.id_)),
      owner_(std::exchange(other.owner_, 0)) {}

StateDir::~StateDir() {
    if (owner_ != ::getpid()) return;
    if (const Result<void> removed = remove_directory(root_.get(), id_); !removed)
        log_warning(concat("the state of ", quoted(id_), ": ", removed.error().message));
}

// What others leave alone, and let nobody in.
static bool is_private(const std::string& directory) {
    struct stat info {};
    return ::lstat(directory.c_str(), &info) == 0 && S_ISDIR(info.st_mode) && info.st_uid == ::geteuid() &&
           (info.st_mode & 077) == 0;
}

// The root of a container has a /run of its own; who is root by unshare(1) alone sees that of the host's root.
static std::string state_root_in_namespace(const std::string& named) {
    if (!named.empty()) return concat(named, "/pinfold");
    struct stat info {};
    if (::stat("/run", &info) == 0 && info.st_uid == 0) return kRootsState;
    const Result<std::string> map = read_file("/proc/self/uid_map");
    const uid_t user = map ? uid_on_host(*map, 0) : 0;
    if (const std::string own = concat("/run/user/", user); is_private(own)) return concat(own, "/pinfold");
    return concat("/tmp/.pinfold-", user);
}

// A variable may be another user's, left by su(1), or missing, as in jobs of cron(8) and of CI. The last resort is in a
// directory where anybody can take the name first: then it is not used.
std::string default_state_root() {
    const char* variable = std::getenv("XDG_RUNTIME_DIR");
    const std::string named = variable == nullptr ? "" : variable;
    if (::geteuid() == 0) return in_user_namespace() ? state_root_in_namespace(named) : kRootsState;
    for (const std::string& directory : {named, concat("/run/user/", ::geteuid())}) {
        if (is_private(directory)) return concat(directory, "/pinfold");
    }
    return concat("/tmp/.pinfold-", ::geteuid());
}

Result<StateDir> StateDir::create(const std::string& root, const ContainerRecord& record, std::string_view config) {
    UniqueFd root_fd = TRY(open_state_root(root));
    if (::mkdirat(root_fd.get(), record.id.c_str(), 0700) != 0) {
        if (errno == EACCES) {
            return errno_error(concat("make ", root, "/", record.id))
                .with_hint(concat(kOwnRoot, ", or ", kSetRuntimeDirectory));
        }
        if (errno != EEXIST) return errno_error(concat("make ", root, "/", record.id));
        return plain_error(concat("container ", quoted(record.id), " already exists"))
            .with_hint(concat("choose another id, or remove it: pinfold delete --force ", record.id));
    }
    Result<UniqueFd> claimed = claim_directory(root_fd.get(), record.id);
    if (!claimed) {
        ::unlinkat(root_fd.get(), record.id.c_str(),
                   AT_REMOVEDIR);  // ours, if it is empty; another's never is for long
        return claimed.error();
    }
    StateDir dir(std::move(root_fd), std::move(claimed).value(), record.id);
    TRY(write_record_file(dir.fd_.get(), record));
    mark_use(root, record.id);
    TRY(write_new_file(dir.fd_.get(), kConfigFile, config));
    return dir;
}

Result<void> StateDir::record_init(pid_t pid) const {
    const uint64_t started = TRY(process_start_time(pid));
    return write_new_file(fd_.get(), kInitFile, concat(pid, " ", started));
}

Result<UniqueFd> StateDir::make_start_socket() const {
    UniqueFd socket = TRY(make_socket());
    const sockaddr_un address = address_in(fd_.get(), kUnfinishedSocket);
    if (::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
        ::listen(socket.get(), 1) != 0) {
        return errno_error("make the socket that start connects to");
    }
    return socket;
}

Result<void> StateDir::write_file(const char* name, std::string_view text) const {
    return write_new_file(fd_.get(), name, text);
}

Result<UniqueFd> StateDir::make_locked_file(const char* name) const {
    UniqueFd file = TRY(open_at(fd_.get(), name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW, 0600));
    if (::flock(file.get(), LOCK_EX | LOCK_NB) != 0) return errno_error(concat("lock ", name));
    return file;
}

Result<void> StateDir::forget_last_end() const {
    for (const char* name : kOfLastTime) TRY(remove_entry(fd_.get(), name));
    return {};
}

Result<UniqueFd> StateDir::hold() const { return open_at(fd_.get(), ".", O_PATH | O_DIRECTORY); }

Result<void> StateDir::mark_created() const {
    if (::renameat(fd_.get(), kUnfinishedSocket, fd_.get(), kStartSocket) != 0) return errno_error("mark as created");
    return {};
}

// By hand, since the child may still hold a copy of the descriptor, and the lock with it.
void StateDir::unlock() const { ::flock(fd_.get(), LOCK_UN); }

Result<UniqueFd> StateLock::hold() const { return open_at(dir_.get(), ".", O_PATH | O_DIRECTORY); }

Result<StateLock> StateLock::take(const std::string& root, const std::string& id) {
    UniqueFd dir = TRY(open_state_dir(root, id));
    TRY(lock_directory(dir.get(), id));
    // Who held the lock may have removed the container, and a new one may have the name.
    if (!TRY(has_name(dir.get(), AT_FDCWD, concat(root, "/", id)))) return unknown_container(id);
    return StateLock(std::move(dir));
}

// The record alone.
static Result<ContainerState> load_record(int dir, const std::string& root, const std::string& id) {
    ContainerState state;
    state.record.id = id;
    const Result<std::string> text = read_own(dir, kRecordFile, kMaxRecord);
    // Its creator died before it had touched anything, or is just about to.
    if (!text && text.error().code == ENOENT) return state;
    if (!text) return text.error();
    state.record = TRY_IN(concat(root, "/", id, "/", kRecordFile), record_from_json(*text));
    state.has_record = true;
    return state;
}

// Whether somebody is about to remove it, or has just begun to make it: neither is a container. What was left by one
// who died at that has nobody at work on it.
static bool is_transient(int dir, const ContainerState& state) {
    if (state.had_init || has_file(dir, kConfigFile)) return false;
    struct stat info {};
    return ::flock(dir, LOCK_SH | LOCK_NB) != 0 || ::fstat(dir, &info) != 0 || info.st_nlink == 0;
}

// Its first process is still the one that has ended, until there is another: should we die on the way, it is stopped.
Result<StateDir> StateDir::reopen(const std::string& root, const ContainerRecord& record, std::string_view config) {
    UniqueFd root_fd = TRY(open_state_root(root));
    UniqueFd dir = TRY(open_in_root(root_fd.get(), root, record.id));
    TRY(lock_directory(dir.get(), record.id));
    if (!TRY(has_name(dir.get(), root_fd.get(), record.id))) return unknown_container(record.id);
    ContainerState before = TRY(load_record(dir.get(), root, record.id));
    TRY(add_status(dir.get(), before));
    if (before.status != Status::stopped)
        return plain_error(concat("container ", quoted(record.id), " is ", status_name(before.status)));
    TRY(require_cgroup_mounts(before.record.cgroup));
    TRY(remove_cgroup(before.record.cgroup));
    TRY(write_record_file(dir.get(), record));
    TRY(write_new_file(dir.get(), kConfigFile, config));
    mark_use(root, record.id);
    StateDir again(std::move(root_fd), std::move(dir), record.id);
    again.commit();
    return again;
}

static Result<ContainerState> load_from(int dir, const std::string& root, const std::string& id) {
    ContainerState state = TRY(load_record(dir, root, id));
    TRY(add_status(dir, state));
    if (is_transient(dir, state)) return unknown_container(id);
    return state;
}

Result<ContainerState> load_state(const std::string& root, const std::string& id) {
    const UniqueFd dir = TRY(open_state_dir(root, id));
    return load_from(dir.get(), root, id);
}

Result<ContainerState> load_for_delete(const std::string& root, const std::string& id, bool unreadable_too) {
    const UniqueFd dir = TRY(open_state_dir(root, id));
    Result<ContainerState> loaded = load_record(dir.get(), root, id);
    // What is no record will never be one; what could not be read may be, the next time.
    const int code = loaded ? 0 : loaded.error().code;
    const bool is_none = code == 0 || code == ELOOP || code == EISDIR;
    if (!loaded && !(unreadable_too && is_none)) return loaded;
    if (!loaded) log_warning(concat(loaded.error().message, "; a cgroup of the container, if it had one, is left"));
    ContainerState state = loaded ? std::move(loaded).value() : ContainerState{.record = {.id = id}};
    TRY(add_status(dir.get(), state));
    return state;
}

Result<void> replace_record(const std::string& root, const ContainerRecord& record) {
    const UniqueFd dir = TRY(open_state_dir(root, record.id));
    return write_record_file(dir.get(), record);
}

Result<std::string> load_config_text(const std::string& root, const std::string& id) {
    const UniqueFd dir = TRY(open_state_dir(root, id));
    return TRY_IN(concat(root, "/", id), read_own(dir.get(), kConfigFile, kMaxDocument));
}

Result<std::vector<ContainerState>> load_all_states(const std::string& root) {
    const UniqueFd own = TRY(open_own(root));
    TRY(require_proc());
    const auto load = [&](const std::string& id) -> Result<ContainerState> {
        TRY(check_container_id(id));
        const UniqueFd dir = TRY(open_in_root(own.get(), root, id));
        return load_from(dir.get(), root, id);
    };
    std::vector<ContainerState> states;
    for (const std::string& id : TRY_IN(concat("open ", root), names_in(own.get()))) {
        if (id.starts_with('.')) continue;  // not a container's: the cache of compiled filters
        Result<ContainerState> state = load(id);
        if (state) states.push_back(std::move(state).value());
        else if (state.error().code != kNoSuchContainer) log_warning(state.error().message);
    }
    std::ranges::sort(states, {}, [](const ContainerState& state) -> const std::string& { return state.record.id; });
    return states;
}

Result<UniqueFd> connect_to_start(const std::string& root, const std::string& id) {
    const UniqueFd dir = TRY(open_state_dir(root, id));
    UniqueFd socket = TRY(make_socket());
    const sockaddr_un address = address_in(dir.get(), kStartSocket);
    if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
        return errno_error("reach the container's first process");
    }
    return socket;
}

Result<void> forget_start_socket(const std::string& root, const std::string& id) {
    if (::unlink(concat(root, "/", id, "/", kStartSocket).c_str()) == 0) return {};
    return errno_error("mark as started");
}

bool is_abandoned(const std::string& root, const ContainerState& state) {
    if (state.status != Status::creating) return false;
    const Result<UniqueFd> dir = open_state_dir(root, state.record.id);
    return dir && ::flock(dir->get(), LOCK_SH | LOCK_NB) == 0;
}

Result<void> require_state_root(const std::string& root) {
    TRY(open_state_root(root));
    return {};
}

Result<UniqueFd> take_turn(const std::string& root) {
    const UniqueFd directory = TRY(open_state_root(root));
    UniqueFd file = TRY(open_at(directory.get(), kTurnFile, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK, 0600));
    TRY(lock_file(file.get(), LOCK_EX, concat("the sandboxes of ", root)));
    return file;
}

// As the time of the record's last change, since it is never changed; but by the clock that nobody sets: one that jumps
// would make what is in use look idle.
Result<UniqueFd> open_state_file(const std::string& root, const std::string& id, const char* name, int flags) {
    return open_state_file(TRY(open_state_dir(root, id)).get(), name, flags);
}

Result<UniqueFd> open_state_file(int directory, const char* name, int flags) {
    if ((flags & O_ACCMODE) == O_RDONLY) return open_regular(directory, name, O_NOFOLLOW);
    return open_at(directory, name, flags | O_NOFOLLOW | O_NONBLOCK, 0600);  // a pipe would hold us up
}

void mark_use(const std::string& root, const std::string& id) {
    timespec now{};
    ::clock_gettime(CLOCK_BOOTTIME, &now);
    const timespec times[2] = {now, now};
    ::utimensat(AT_FDCWD, concat(root, "/", id, "/", kRecordFile).c_str(), times, AT_SYMLINK_NOFOLLOW);
}

int64_t seconds_since_use(const std::string& root, const std::string& id) {
    struct stat info {};
    if (::lstat(concat(root, "/", id, "/", kRecordFile).c_str(), &info) != 0) return 0;
    timespec now{};
    ::clock_gettime(CLOCK_BOOTTIME, &now);
    const bool borrows = now.tv_nsec < info.st_mtim.tv_nsec;
    return std::max<int64_t>(now.tv_sec - info.st_mtim.tv_sec - (borrows ? 1 : 0), 0);
}

int64_t seconds_since_change(const std::string& root, const std::string& id) {
    struct stat info {};
    if (::lstat(concat(root, "/", id).c_str(), &info) != 0) return 0;
    return ::time(nullptr) - info.st_mtim.tv_sec;
}

Result<void> remove_state(const std::string& root, const std::string& id) {
    const UniqueFd root_fd = TRY(open_at(AT_FDCWD, root, O_DIRECTORY | O_PATH));
    TRY_IN(concat(root, "/", id), remove_directory(root_fd.get(), id));
    return {};
}

namespace {

constexpr size_t kLongestId = 255;  // of a file name

bool is_harmless(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '+' ||
           c == '-' || c == '.';
}

constexpr uint64_t kRecordVersion = 2;
// What the config may have, and as much again for what is around it.
constexpr JsonBounds kRecordBounds{2 * JsonBounds().values, 2 * JsonBounds().longest};

StringMap string_map(const Json& object, std::string_view key) {
    StringMap strings;
    const Json* found = object.find(key);
    if (found == nullptr || found->object() == nullptr) return strings;
    for (const Json::Member& member : *found->object()) {
        if (member.value.string() != nullptr) strings[member.key] = *member.value.string();
    }
    return strings;
}

std::string to_json(const CgroupPath& place) {
    return JsonObject()
        .add_text("mount", place.mount)
        .add_text("path", place.path)
        .add("legacy", json_map(place.v1))
        .add_text("scope", place.scope)
        .text();
}

CgroupPath place_from_json(const Json& object) {
    return {object.text("mount"), object.text("path"), string_map(object, "legacy"), object.text("scope")};
}

std::string to_json(const std::vector<CgroupWrite>& writes) {
    return json_array(writes, [](const CgroupWrite& write) {
        return json_list({write.file, write.value, write.property, write.alternate_file, write.alternate_value});
    });
}

std::string to_json(const GroupLimits& limits) {
    return JsonObject().add("unified", to_json(limits.v2)).add("legacy", to_json(limits.v1)).text();
}

std::vector<CgroupWrite> writes_from_json(const Json& object, std::string_view key) {
    std::vector<CgroupWrite> writes;
    const Json* list = object.find(key);
    if (list == nullptr || list->array() == nullptr) return writes;
    for (const Json& item : *list->array()) {
        std::vector<std::string> words;
        if (item.array() == nullptr) continue;
        for (const Json& word : *item.array()) words.push_back(word.string() != nullptr ? *word.string() : "");
        words.resize(5);
        writes.push_back({words[0], words[1], words[2], words[3], words[4]});
    }
    return writes;
}

}  // namespace

Result<void> check_container_id(const std::string& id) {
    // One that begins with a dash could be made, and then named to no verb; with a dot, what is pinfold's own does.
    const bool usable = !id.empty() && id.size() <= kLongestId && id[0] != '.' && id[0] != '-' &&
                        std::all_of(id.begin(), id.end(), is_harmless);
    if (usable) return {};
    return plain_error(
        concat("container id ", quoted(id),
               ": allowed are 1 to 255 letters, digits and the characters _ + - ., neither - nor . at first"));
}

void write_record(const ContainerRecord& record, const std::function<void(std::string_view)>& put) {
    std::string text = JsonObject()
                           .add("version", kRecordVersion)
                           .add_text("id", record.id)
                           .add_text("ociVersion", record.oci_version)
                           .add_text("bundle", record.bundle)
                           .add_text("rootfs", record.rootfs)
                           .add_text("created", record.created)
                           .add("cgroup", to_json(record.cgroup))
                           .add_if_any("limits", record.limits ? to_json(*record.limits) : "")
                           .add("owner", record.owner)
                           .add("poststartHooks", record.poststart_hooks)
                           .add("poststopHooks", record.poststop_hooks)
                           .add("listens", record.listens)
                           .add("pauses", record.pauses)
                           .text();
    text.pop_back();  // there is one more member
    put(text + ",\"annotations\":{");
    const char* comma = "";
    for (const auto& [key, value] : record.annotations) {
        put(concat(std::exchange(comma, ","), json_quoted(key), ":"));
        put(json_quoted(value));
    }
    put("}}\n");
}

std::string record_to_json(const ContainerRecord& record) {
    std::string text;
    write_record(record, [&](std::string_view piece) { text += piece; });
    return text;
}

Result<ContainerRecord> record_from_json(std::string_view text) {
    const Json root = TRY(parse_json(text, "state", kRecordBounds));
    if (root.number("version") != kRecordVersion) {
        return plain_error("the state was written by another version of pinfold")
            .with_hint("delete the container with that version");
    }
    ContainerRecord record;
    record.id = root.text("id");
    record.oci_version = root.text("ociVersion");
    record.bundle = root.text("bundle");
    record.rootfs = root.text("rootfs");
    record.created = root.text("created");
    if (const Json* place = root.find("cgroup")) record.cgroup = place_from_json(*place);
    if (const Json* limits = root.find("limits"))
        record.limits = {writes_from_json(*limits, "unified"), writes_from_json(*limits, "legacy")};
    record.owner = static_cast<uid_t>(root.number("owner"));
    record.poststart_hooks = root.flag("poststartHooks");
    record.poststop_hooks = root.flag("poststopHooks");
    record.listens = root.flag("listens");
    record.pauses = root.flag("pauses");
    record.annotations = string_map(root, "annotations");
    return record;
}

static std::string state_text(const ContainerState& state, JsonObject object, const MoreMembers& more) {
    const ContainerRecord& record = state.record;
    object.add_text("ociVersion", record.oci_version)
        .add_text("id", record.id)
        .add("pid", state.pid)
        .add_text("status", status_name(state.status))
        .add_text("bundle", record.bundle)
        .add_text("rootfs", record.rootfs)
        .add_text("created", record.created)
        .add_text("owner", std::to_string(record.owner))
        .add("annotations", json_map(record.annotations));
    for (const auto& [name, json] : more) object.add(name, json);
    return object.text();
}

std::string state_to_json(const ContainerState& state, const MoreMembers& more) {
    return state_text(state, JsonObject::by_lines(), more);
}

std::string state_to_json_line(const ContainerState& state, const MoreMembers& more) {
    return state_text(state, JsonObject(), more);
}

}  // namespace pinfold
