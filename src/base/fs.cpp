// Files by descriptor: whole reads and writes, with errors that name the file.
#include "base/fs.hpp"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdint>

#include "base/strings.hpp"

namespace pinfold {

namespace {

constexpr const char* kOwnFds = "/proc/self/fd/";

// A descriptor by its number says nothing to whoever reads an error: the name of what it was opened as does. The error
// itself stays in errno.
std::string told_name(const std::string& path) {
    if (!path.starts_with(kOwnFds)) return path;
    const size_t end = path.find('/', std::string_view(kOwnFds).size());
    char target[PATH_MAX];
    const int code = errno;
    const ssize_t size = ::readlink(path.substr(0, end).c_str(), target, sizeof target);
    errno = code;
    if (size <= 0 || target[0] != '/') return path;
    return concat(std::string_view(target, size_t(size)), end == path.npos ? "" : path.substr(end));
}

}  // namespace

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
        if (got == 0) {
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

Result<void> write_all(int fd, std::string_view bytes, std::string_view name) {
    while (!bytes.empty()) {
        const ssize_t written = ::write(fd, bytes.data(), bytes.size());
        if (written < 0 && errno != EINTR) return errno_error(concat("write ", name));
        if (written > 0) bytes.remove_prefix(size_t(written));
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

}  // namespace pinfold
