// What pinfold remembers of a container.
#include "state/store.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "base/fs.hpp"
#include "base/strings.hpp"
#include "spec/json.hpp"
#include "state/record.hpp"

namespace pinfold {

namespace {

constexpr const char* kRecordFile = "state.json";
constexpr const char* kInitFile = "init";  // "PID START-TIME"

Result<UniqueFd> open_state_root(const std::string& root) {
    UniqueFd fd(::open(root.c_str(), O_DIRECTORY | O_PATH | O_CLOEXEC));
    if (fd) return fd;
    if (errno != ENOENT) return errno_error(concat("open ", root));
    for (size_t slash = root.find('/', 1);; slash = root.find('/', slash + 1)) {
        if (::mkdir(root.substr(0, slash).c_str(), 0700) != 0 && errno != EEXIST) {
            return errno_error(concat("make ", root)).with_hint("name a directory of your own with --root");
        }
        if (slash == std::string::npos) break;
    }
    return open_at(AT_FDCWD, root, O_DIRECTORY | O_PATH);
}

Result<void> write_new_file(int dir, const char* name, std::string_view text) {
    const UniqueFd fd = TRY(open_at(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0600));
    return write_once(fd.get(), text, name);
}

void remove_directory(int root, const std::string& id) {
    const UniqueFd dir(::openat(root, id.c_str(), O_DIRECTORY | O_NOFOLLOW | O_PATH | O_CLOEXEC));
    ::unlinkat(dir.get(), kInitFile, 0);
    ::unlinkat(dir.get(), kRecordFile, 0);
    ::unlinkat(root, id.c_str(), AT_REMOVEDIR);
}

Error unknown_container(const std::string& id) {
    return plain_error(concat("container ", quoted(id), " does not exist"));
}

// Field 22 of /proc/PID/stat, counted after the program's name, which may hold anything; 0 if there is no such process.
Result<uint64_t> start_time(pid_t pid) {
    Result<std::string> stat = read_file(concat("/proc/", pid, "/stat"));
    if (!stat) return uint64_t{0};
    const std::vector<std::string_view> fields = split(std::string_view(*stat).substr(stat->rfind(')') + 2), ' ');
    const bool zombie = fields[0] == "Z" || fields[0] == "X";
    return zombie ? 0 : parse_number<uint64_t>(fields[19]).value_or(0);
}

Result<void> add_status(int dir, ContainerState& state) {
    const Result<UniqueFd> file = open_at(dir, kInitFile, O_RDONLY | O_NOFOLLOW);
    if (!file) return {};  // still creating, or its creator died
    const std::string text = TRY(read_all(file->get(), kInitFile));
    const std::vector<std::string_view> words = split(text, ' ');
    const pid_t pid = parse_number<pid_t>(words[0]).value_or(0);
    const uint64_t started = words.size() < 2 ? 0 : parse_number<uint64_t>(words[1]).value_or(0);
    const bool alive = pid > 0 && started != 0 && TRY(start_time(pid)) == started;
    state.status = alive ? Status::running : Status::stopped;
    state.pid = alive ? pid : 0;
    return {};
}

}  // namespace

const char* status_name(Status status) {
    switch (status) {
        case Status::creating: return "creating";
        case Status::running: return "running";
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
    if (owner_ == ::getpid()) remove_directory(root_.get(), id_);
}

Result<StateDir> StateDir::create(const std::string& root, const ContainerRecord& record) {
    UniqueFd root_fd = TRY(open_state_root(root));
    if (::mkdirat(root_fd.get(), record.id.c_str(), 0700) != 0) {
        if (errno != EEXIST) return errno_error(concat("make ", root, "/", record.id));
        return plain_error(concat("container ", quoted(record.id), " already exists"))
            .with_hint(concat("choose another id, or remove it: pinfold delete ", record.id));
    }
    StateDir dir(std::move(root_fd), UniqueFd(), record.id);
    dir.fd_ = TRY(open_at(dir.root_.get(), record.id, O_DIRECTORY | O_NOFOLLOW | O_PATH));
    TRY(write_new_file(dir.fd_.get(), kRecordFile, record_to_json(record)));
    return dir;
}

Result<void> StateDir::record_init(pid_t pid) const {
    return write_new_file(fd_.get(), kInitFile, concat(pid, " ", TRY(start_time(pid))));
}

Result<ContainerState> load_state(const std::string& root, const std::string& id) {
    const UniqueFd root_fd(::open(root.c_str(), O_DIRECTORY | O_PATH | O_CLOEXEC));
    if (!root_fd) return unknown_container(id);
    const UniqueFd dir(::openat(root_fd.get(), id.c_str(), O_DIRECTORY | O_NOFOLLOW | O_PATH | O_CLOEXEC));
    if (!dir) return errno == ENOENT ? unknown_container(id) : errno_error(concat("open ", root, "/", id));
    ContainerState state;
    state.record.id = id;
    const Result<UniqueFd> file = open_at(dir.get(), kRecordFile, O_RDONLY | O_NOFOLLOW);
    if (!file) return state;  // its creator died before it had touched anything
    const std::string text = TRY(read_all(file->get(), kRecordFile));
    if (!text.empty()) state.record = TRY_IN(concat(root, "/", id, "/", kRecordFile), record_from_json(text));
    TRY(add_status(dir.get(), state));
    return state;
}

Result<void> remove_state(const std::string& root, const std::string& id) {
    const UniqueFd root_fd = TRY(open_at(AT_FDCWD, root, O_DIRECTORY | O_PATH));
    remove_directory(root_fd.get(), id);
    struct stat info {};
    if (::fstatat(root_fd.get(), id.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0) return {};
    return plain_error(concat(root, "/", id, ": the directory holds files that are not pinfold's"));
}

}  // namespace pinfold
