// Files by descriptor: whole reads and writes, with errors that name the file.
#include "base/fs.hpp"

#include <fcntl.h>
#include <linux/magic.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <string>
#include <utility>

#include "base/clock.hpp"
#include "base/strings.hpp"

#ifndef MFD_EXEC
#define MFD_EXEC 0x0010U
#endif

namespace pinfold {

namespace {

constexpr const char* kOwnFds = "/proc/self/fd/";

// A descriptor by its number says nothing to whoever reads an error: the name of what it was opened as does. The error
// itself stays in errno.
std::string told_name(const std::string& path) {
    if (!path.starts_with(kOwnFds)) return path;
    const size_t end = path.find('/', std::string_view(kOwnFds).size());
    const int code = errno;
    const std::string target = link_target(path.substr(0, end));
    errno = code;
    if (!target.starts_with('/')) return path;
    return concat(target, end == path.npos ? "" : path.substr(end));
}

}  // namespace

std::string link_target(const std::string& path, int dir) {
    char target[PATH_MAX];
    const ssize_t size = ::readlinkat(dir, path.c_str(), target, sizeof target);
    if (size < ssize_t{sizeof target}) return std::string(target, size < 0 ? 0 : size_t(size));
    errno = ENAMETOOLONG;
    return {};
}

Result<UniqueFd> open_at(int dir, const std::string& path, int flags, unsigned mode) {
    UniqueFd fd(::openat(dir, path.c_str(), flags | O_CLOEXEC, mode));
    if (!fd) return errno_error(concat("open ", told_name(path)));
    return fd;
}

namespace {

const char* kind_of(mode_t mode) {
    switch (mode & S_IFMT) {
        case S_IFDIR: return "a directory";
        case S_IFIFO: return "a FIFO";
        case S_IFSOCK: return "a socket";
        case S_IFCHR:
        case S_IFBLK: return "a device";
        default: return "something else";
    }
}

Error too_large(std::string_view name, std::string_view size, size_t most) {
    return plain_error(concat(name, " has ", size, " bytes, allowed: at most ", most));
}

// By errno, of a step that went through the list of our descriptors.
Error error_of_own_fd(const std::string& step) {
    const Error error = errno_error(step);
    if (error.code != ENOENT) return error;
    Result<void> proc = require_proc();
    return proc ? error : std::move(proc).error().within(step);
}

}  // namespace

Result<void> require_proc() {
    struct statfs info {};
    if (::statfs(kOwnFds, &info) == 0 && info.f_type == PROC_SUPER_MAGIC) return {};
    return Error{kNoProc, "/proc is not mounted here, or it is another pid namespace's", "mount -t proc proc /proc"};
}

Result<std::string> read_at_most(int fd, std::string_view name, size_t most) {
    struct stat info {};
    const size_t size = ::fstat(fd, &info) == 0 && info.st_size > 0 ? size_t(info.st_size) : 0;
    if (size > most) return too_large(name, std::to_string(size), most);
    // One byte more than the size: the read that fills the text less than whole is the last one.
    std::string text(size > 0 ? size + 1 : 4096, '\0');
    for (size_t used = 0;;) {
        const ssize_t got = ::read(fd, text.data() + used, text.size() - used);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return errno_error(concat("read ", name));
        used += size_t(got);
        if (used > most) return too_large(name, concat("more than ", most), most);
        if (got == 0 || (size > 0 && used < text.size())) {
            text.resize(used);
            return text;
        }
        if (used == text.size()) text.resize(text.size() * 2);
    }
}

Result<std::string> read_all(int fd, std::string_view name) { return read_at_most(fd, name, SIZE_MAX); }

Result<std::string> read_file(const std::string& path) {
    const UniqueFd fd = TRY(open_at(AT_FDCWD, path, O_RDONLY));
    return read_all(fd.get(), path);
}

Result<UniqueFd> open_regular(int dir, const std::string& path, int flags) {
    const UniqueFd place = TRY(open_at(dir, path, O_PATH | flags));
    struct stat info {};
    if (::fstat(place.get(), &info) != 0) return errno_error(concat("stat ", told_name(path)));
    if (S_ISLNK(info.st_mode)) return errno_error(ELOOP, concat("open ", told_name(path)));
    if (!S_ISREG(info.st_mode))
        return plain_error(concat(told_name(path), " is ", kind_of(info.st_mode), ", not a regular file"));
    // The very file that was looked at, whatever has its name by now.
    UniqueFd file(::open(concat(kOwnFds, place.get()).c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
    if (!file) return error_of_own_fd(concat("open ", told_name(path)));
    return file;
}

Result<std::string> read_regular(const std::string& path, size_t most) {
    const UniqueFd file = TRY(open_regular(AT_FDCWD, path));
    return read_at_most(file.get(), told_name(path), most);
}

// A stream of the caller's may not block, as whoever made it likes, and be full: then its reader is waited for.
Result<void> write_all(int fd, std::string_view bytes, std::string_view name) {
    while (!bytes.empty()) {
        const ssize_t written = ::write(fd, bytes.data(), bytes.size());
        if (written < 0 && errno == EAGAIN) {
            pollfd slot{fd, POLLOUT, 0};
            if (::poll(&slot, 1, -1) < 0 && errno != EINTR) return errno_error(concat("wait to write ", name));
        } else if (written < 0 && errno != EINTR) {
            return errno_error(concat("write ", name));
        } else if (written > 0) {
            bytes.remove_prefix(size_t(written));
        }
    }
    return {};
}

Result<void> write_once(int fd, std::string_view text, std::string_view name) {
    const ssize_t written = ::write(fd, text.data(), text.size());
    if (written < 0) return errno_error(concat("write ", quoted(text), " to ", name));
    if (size_t(written) != text.size()) return plain_error(concat("write to ", name, ": only a part was taken"));
    return {};
}

Result<void> write_file_at(int dir, const std::string& path, std::string_view text) {
    const UniqueFd fd = TRY(open_at(dir, path, O_WRONLY));
    return write_once(fd.get(), text, path);
}

Result<Parent> open_parent(const std::string& path) {
    const size_t slash = path.rfind('/');
    const std::string directory = slash == path.npos ? "." : path.substr(0, slash + 1);
    return Parent{TRY(open_at(AT_FDCWD, directory, O_DIRECTORY | O_PATH)),
                  path.substr(slash == path.npos ? 0 : slash + 1)};
}

Result<Pipe> make_pipe(std::string_view purpose) {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) return errno_error(concat("make a pipe", purpose));
    return Pipe{UniqueFd(ends[0]), UniqueFd(ends[1])};
}

Result<OwnFds> OwnFds::open() { return OwnFds(TRY(open_at(AT_FDCWD, kOwnFds, O_PATH | O_DIRECTORY))); }

std::string OwnFds::path_of(int fd) const { return concat(directory_ ? "" : kOwnFds, fd); }

Result<UniqueFd> OwnFds::reopen(int fd, int flags) const {
    UniqueFd opened(::openat(directory_.get(), path_of(fd).c_str(), flags | O_CLOEXEC));
    if (!opened) return directory_ ? errno_error("open") : error_of_own_fd("open");
    return opened;
}

Result<void> OwnFds::give_name(int fd, int directory, const std::string& name) const {
    if (::linkat(directory_.get(), path_of(fd).c_str(), directory, name.c_str(), AT_SYMLINK_FOLLOW) == 0) return {};
    const std::string step = concat("name ", quoted(name));
    return directory_ ? errno_error(step) : error_of_own_fd(step);
}

namespace {

std::string temporary_name() {
    uint64_t number = 0;
    [[maybe_unused]] const ssize_t filled = ::getrandom(&number, sizeof number, 0);  // as good as any if it fails
    char text[32];
    std::snprintf(text, sizeof text, ".pinfold-%016lx", number);
    return text;
}

// What has a name that nobody can foresee finds it free, but for an accident.
template <class Make>
Result<std::string> under_temporary_name(const Make& make) {
    constexpr int kMostAccidents = 8;
    for (int attempt = 1;; ++attempt) {
        std::string name = temporary_name();
        Result<void> made = make(name);
        if (made) return name;
        if (made.error().code != EEXIST || attempt == kMostAccidents) return std::move(made).error();
    }
}

// Each byte is compared with the one before it: no buffer of zeros, and as fast as memcmp.
bool only_zeros(std::string_view bytes) {
    return bytes.empty() || (bytes[0] == '\0' && std::memcmp(bytes.data(), bytes.data() + 1, bytes.size() - 1) == 0);
}

Result<void> rename_over(int directory, const std::string& temporary, const std::string& name) {
    if (::renameat(directory, temporary.c_str(), directory, name.c_str()) == 0) return {};
    Error error = errno_error(concat("replace ", quoted(name)));
    if (error.code == EBUSY) error.hint = "something is mounted there, and what is mounted cannot be replaced";
    ::unlinkat(directory, temporary.c_str(), 0);
    return error;
}

}  // namespace

const char* file_kind(unsigned mode) {
    switch (mode & S_IFMT) {
        case S_IFREG: return "file";
        case S_IFDIR: return "directory";
        case S_IFLNK: return "symbolic link";
        case S_IFIFO: return "fifo";
        case S_IFSOCK: return "socket";
        default: return "device";
    }
}

Result<void> check_replaceable(int directory, const std::string& name) {
    struct stat info {};
    if (::fstatat(directory, name.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0) return {};  // making it tells why
    if (S_ISREG(info.st_mode) || S_ISLNK(info.st_mode)) return {};
    return Error{EEXIST, concat(quoted(name), " is a ", file_kind(info.st_mode), " already"), {}};
}

// Without a name the file is gone with its last descriptor, also where this process is killed.
Result<NewFile> NewFile::create(int directory, unsigned mode) {
    UniqueFd nameless(::openat(directory, ".", O_TMPFILE | O_WRONLY | O_CLOEXEC, mode));
    if (nameless) return NewFile(directory, std::move(nameless), "");
    if (errno != EOPNOTSUPP) return errno_error("make a file");
    UniqueFd named;
    std::string name = TRY(under_temporary_name([&](const std::string& one) -> Result<void> {
        named.reset(::openat(directory, one.c_str(), O_CREAT | O_EXCL | O_NOFOLLOW | O_WRONLY | O_CLOEXEC, mode));
        return named ? Result<void>() : errno_error("make a file");
    }));
    return NewFile(directory, std::move(named), std::move(name));
}

NewFile::~NewFile() {
    if (fd_ && !name_.empty()) ::unlinkat(directory_, name_.c_str(), 0);
}

// By position, so that zeros are left out by not writing them.
Result<void> NewFile::append(std::string_view bytes) {
    const uint64_t end = size_ + bytes.size();
    for (const bool hole = only_zeros(bytes); size_ < end && !hole; written_ = size_) {
        const ssize_t written = ::pwrite(fd_.get(), bytes.data(), bytes.size(), static_cast<off_t>(size_));
        if (written < 0 && errno != EINTR) return errno_error("write");
        if (written <= 0) continue;
        bytes.remove_prefix(size_t(written));
        size_ += size_t(written);
    }
    size_ = end;
    return {};
}

Result<void> NewFile::finish() const {
    if (size_ == written_ || ::ftruncate(fd_.get(), static_cast<off_t>(size_)) == 0) return {};
    return errno_error("set the size");  // a hole at the end
}

Result<void> NewFile::commit(const std::string& name, const OwnFds& own) {
    TRY(finish());
    if (name_.empty()) {
        Result<void> linked = own.give_name(fd_.get(), directory_, name);
        if (linked || linked.error().code != EEXIST) return linked;
    }
    return rename_to(name, own);
}

Result<void> NewFile::rename_to(const std::string& name, const OwnFds& own) {
    TRY(finish());
    if (name_.empty())
        name_ = TRY(
            under_temporary_name([&](const std::string& one) { return own.give_name(fd_.get(), directory_, one); }));
    return rename_over(directory_, std::exchange(name_, {}), name);
}

Result<void> NewFile::commit_new(const std::string& name) {
    TRY(finish());
    if (name_.empty()) return OwnFds().give_name(fd_.get(), directory_, name);
    if (::linkat(directory_, name_.c_str(), directory_, name.c_str(), 0) == 0) return {};
    return errno_error(concat("name ", quoted(name)));
}

Result<void> replace_file(int directory, const std::string& name, std::string_view text, unsigned mode) {
    NewFile file = TRY_IN(name, NewFile::create(directory, mode));
    TRY_IN(name, file.append(text));
    return file.rename_to(name);
}

Result<void> make_file(int directory, const std::string& name, std::string_view text, unsigned mode) {
    NewFile file = TRY_IN(name, NewFile::create(directory, mode));
    TRY_IN(name, file.append(text));
    return file.commit_new(name);
}

Result<void> make_link(int directory, const std::string& target, const std::string& name) {
    if (::symlinkat(target.c_str(), directory, name.c_str()) == 0) return {};
    if (errno != EEXIST) return errno_error(concat("link ", quoted(name)));
    TRY(check_replaceable(directory, name));
    const std::string temporary = TRY(under_temporary_name([&](const std::string& one) -> Result<void> {
        if (::symlinkat(target.c_str(), directory, one.c_str()) == 0) return {};
        return errno_error(concat("link ", quoted(name)));
    }));
    return rename_over(directory, temporary, name);
}

namespace {

// How /proc/locks names a file.
std::string name_in_locks(const struct stat& info) {
    char name[64];
    std::snprintf(name, sizeof name, "%02x:%02x:%llu", major(info.st_dev), minor(info.st_dev),
                  static_cast<unsigned long long>(info.st_ino));
    return name;
}

// The lock may outlive who took it, in a child that has the same open file.
std::string describe_process(std::string_view pid) {
    const Result<std::string> name = read_file(concat("/proc/", pid, "/comm"));
    if (!name) return concat("a child of process ", pid, ", which has ended");
    return concat("process ", pid, " (", quoted(std::string_view(*name).substr(0, name->find('\n'))), ")");
}

// "3: FLOCK  ADVISORY  WRITE 4711 00:2a:1234 0 EOF"; who waits has an arrow before FLOCK.
std::string holder_of(int fd) {
    struct stat info {};
    const Result<std::string> locks = read_file("/proc/locks");
    if (!locks || ::fstat(fd, &info) != 0) return "another process";
    const std::string file = name_in_locks(info);
    for (const std::string_view line : split(*locks, '\n')) {
        std::vector<std::string_view> words = split(line, ' ');
        std::erase(words, std::string_view());
        if (words.size() > 5 && words[1] == "FLOCK" && words[5] == file) return describe_process(words[4]);
    }
    return "a process that cannot be seen from here";
}

void pause_for(std::chrono::nanoseconds time) {
    const timespec rest{time_t(time.count() / 1'000'000'000), time.count() % 1'000'000'000};
    ::nanosleep(&rest, nullptr);
}

}  // namespace

// Nothing tells that a lock is free but the lock itself, and only a signal ends the wait for it. Signals may be
// blocked or ignored, and their handlers belong to the whole process, so the lock is tried again and again: after a
// millisecond at first, twenty times a second in the end.
Result<void> lock_file(int fd, int kind, std::string_view name, std::chrono::milliseconds patience) {
    constexpr std::chrono::nanoseconds kFirstPause = std::chrono::milliseconds(1);
    constexpr std::chrono::nanoseconds kLongestPause = std::chrono::milliseconds(50);
    const int64_t end = monotonic_ns() + std::chrono::nanoseconds(patience).count();
    for (auto pause = kFirstPause;; pause = std::min(2 * pause, kLongestPause)) {
        const int64_t now = monotonic_ns();  // before the try: who was stopped for long still gets one
        if (::flock(fd, kind | LOCK_NB) == 0) return {};
        if (errno != EWOULDBLOCK && errno != EINTR) return errno_error(concat("lock ", name));
        if (now >= end) break;
        pause_for(std::min(pause, std::chrono::nanoseconds(end - now)));
    }
    const auto seconds = std::chrono::ceil<std::chrono::seconds>(patience).count();
    return Error{EWOULDBLOCK, concat(name, " is still held after ", seconds, " s, by ", holder_of(fd)), {}};
}

namespace {

constexpr int kAllSeals = F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE;

}  // namespace

// Before Linux 6.3 all of them could be executed, and there was no word for it.
Result<UniqueFd> make_memory_program() {
    constexpr unsigned kFlags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
    UniqueFd file(::memfd_create("pinfold", kFlags | MFD_EXEC));
    if (!file && errno == EINVAL) file = UniqueFd(::memfd_create("pinfold", kFlags));
    if (!file) return errno_error("make a program in memory: memfd_create");
    return file;
}

Result<void> seal(int file) {
    if (::fcntl(file, F_ADD_SEALS, kAllSeals) != 0) return errno_error("seal a program in memory");
    return {};
}

bool is_sealed(int file) { return ::fcntl(file, F_GET_SEALS) == kAllSeals; }

}  // namespace pinfold
