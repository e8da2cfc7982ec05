// Files by descriptor: whole reads and writes, with errors that name the file.
#include "base/fs.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "base/strings.hpp"

namespace pinfold {

Result<UniqueFd> open_at(int dir, const std::string& path, int flags, unsigned mode) {
    UniqueFd fd(::openat(dir, path.c_str(), flags | O_CLOEXEC, mode));
    if (!fd) return errno_error(concat("open ", path));
    return fd;
}

Result<std::string> read_all(int fd, std::string_view name) {
    struct stat info {};
    const bool sized = ::fstat(fd, &info) == 0 && info.st_size > 0;
    // One byte more than the size: the read that fills the text less than whole is the last one.
    std::string text(sized ? size_t(info.st_size) + 1 : 4096, '\0');
    for (size_t used = 0;;) {
        const ssize_t got = ::read(fd, text.data() + used, text.size() - used);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return errno_error(concat("read ", name));
        used += size_t(got);
        if (got == 0) {
            text.resize(used);
            return text;
        }
        if (used == text.size()) text.resize(text.size() * 2);
    }
}

Result<std::string> read_file(const std::string& path) {
    const UniqueFd fd = TRY(open_at(AT_FDCWD, path, O_RDONLY));
    return read_all(fd.get(), path);
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

}  // namespace pinfold
