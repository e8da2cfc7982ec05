// tmpcopyup.
#include "kernel/copy_up.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <string>

#include "base/fs.hpp"
#include "base/strings.hpp"

namespace pinfold {

namespace {

using Directory = std::unique_ptr<DIR, int (*)(DIR*)>;

// Opened once, as a mere place: a container that shares the directory may put a pipe or a device at the name meanwhile,
// and neither is opened.
struct Entry {
    UniqueFd source;
    int to;
    std::string name;
    struct stat info;
};

Result<Directory> list(int fd) {
    UniqueFd copy = TRY(open_at(fd, ".", O_RDONLY | O_DIRECTORY));
    DIR* stream = ::fdopendir(copy.get());
    if (stream == nullptr) return errno_error("list a directory");
    copy.release();  // closedir closes it
    return Directory(stream, ::closedir);
}

Result<void> copy_attributes(const Entry& entry) {
    if (::fchownat(entry.to, entry.name.c_str(), entry.info.st_uid, entry.info.st_gid, AT_SYMLINK_NOFOLLOW) != 0) {
        return errno_error(concat("chown ", entry.name));
    }
    if (!S_ISLNK(entry.info.st_mode) && ::fchmodat(entry.to, entry.name.c_str(), entry.info.st_mode & 07777, 0) != 0) {
        return errno_error(concat("chmod ", entry.name));
    }
    const timespec times[2] = {entry.info.st_atim, entry.info.st_mtim};
    if (::utimensat(entry.to, entry.name.c_str(), times, AT_SYMLINK_NOFOLLOW) != 0) {
        return errno_error(concat("set times of ", entry.name));
    }
    return {};
}

Result<void> copy_regular(const Entry& entry) {
    // Not to wait for 45 seconds where somebody holds a lease on it (fcntl(2), F_SETLEASE).
    const int flags = O_RDONLY | O_NONBLOCK;
    const UniqueFd in = TRY_IN(entry.name, open_at(AT_FDCWD, concat("/proc/self/fd/", entry.source.get()), flags));
    const UniqueFd out = TRY(open_at(entry.to, entry.name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0600));
    for (;;) {
        const ssize_t moved = ::sendfile(out.get(), in.get(), nullptr, size_t{1} << 24);
        if (moved == 0) return {};
        if (moved < 0 && errno != EINTR) return errno_error(concat("copy ", entry.name));
    }
}

Result<void> copy_symlink(const Entry& entry) {
    const std::string target = link_target("", entry.source.get());
    if (target.empty()) return errno_error(concat("read link ", entry.name));
    if (::symlinkat(target.c_str(), entry.to, entry.name.c_str()) != 0) return errno_error(concat("link ", entry.name));
    return {};
}

Result<void> copy_directory(int parent_fd, const Entry& entry) {
    if (::mkdirat(entry.to, entry.name.c_str(), 0700) != 0) return errno_error(concat("make directory ", entry.name));
    const UniqueFd from = TRY(open_at(entry.source.get(), ".", O_RDONLY | O_DIRECTORY));
    const UniqueFd to = TRY(open_at(entry.to, entry.name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW));
    struct stat parent {};
    if (::fstat(parent_fd, &parent) != 0) return errno_error("stat");
    if (parent.st_dev != entry.info.st_dev) return {};  // another file system: an empty directory stands for it
    return copy_tree(from.get(), to.get());
}

Result<void> copy_special(const Entry& entry) {
    if (::mknodat(entry.to, entry.name.c_str(), entry.info.st_mode, entry.info.st_rdev) != 0) {
        return errno_error(concat("make special file ", entry.name));
    }
    return {};
}

Result<void> copy_entry(int from, int to, const char* name) {
    Entry entry{TRY(open_at(from, name, O_PATH | O_NOFOLLOW)), to, name, {}};
    if (::fstat(entry.source.get(), &entry.info) != 0) return errno_error(concat("stat ", name));
    switch (entry.info.st_mode & S_IFMT) {
        case S_IFREG: TRY(copy_regular(entry)); break;
        case S_IFDIR: TRY(copy_directory(from, entry)); break;
        case S_IFLNK: TRY(copy_symlink(entry)); break;
        case S_IFSOCK: return {};  // nobody listens in an image
        default: TRY(copy_special(entry));
    }
    return copy_attributes(entry);
}

}  // namespace

Result<void> copy_tree(int from, int to) {
    const Directory directory = TRY(list(from));
    while (const dirent* entry = ::readdir(directory.get())) {
        const std::string_view name = entry->d_name;
        if (name == "." || name == "..") continue;
        TRY(copy_entry(from, to, entry->d_name));
    }
    return {};
}

}  // namespace pinfold
