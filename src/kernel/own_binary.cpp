// The runtime's own program file.
#include "kernel/own_binary.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>

#include "base/fs.hpp"
#include "base/process.hpp"
#include "kernel/mounts.hpp"

namespace pinfold {

namespace {

constexpr const char* kOwnBinary = "/proc/self/exe";
constexpr int kAllSeals = F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE;

Result<bool> is_sealed() {
    struct statvfs info {};
    if (::statvfs(kOwnBinary, &info) != 0) return errno_error("statvfs /proc/self/exe");
    if (info.f_flag & ST_RDONLY) return true;
    const UniqueFd fd = TRY(open_at(AT_FDCWD, kOwnBinary, O_RDONLY));
    return ::fcntl(fd.get(), F_GET_SEALS) == kAllSeals;
}

Result<UniqueFd> readonly_clone() {
    UniqueFd tree = TRY(clone_tree(AT_FDCWD, kOwnBinary, false));
    TRY(change_mount(tree.get(), MountChange{.set = MOUNT_ATTR_RDONLY}, false));
    return tree;
}

// Where mounts cannot be made (no CAP_SYS_ADMIN): a copy in memory that nobody can change.
Result<UniqueFd> sealed_copy() {
    UniqueFd copy(::memfd_create("pinfold", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    if (!copy) return errno_error("memfd_create");
    const UniqueFd own = TRY(open_at(AT_FDCWD, kOwnBinary, O_RDONLY));
    struct stat info {};
    if (::fstat(own.get(), &info) != 0) return errno_error("stat /proc/self/exe");
    for (off_t copied = 0; copied < info.st_size;) {
        const ssize_t moved = ::sendfile(copy.get(), own.get(), nullptr, size_t(info.st_size - copied));
        if (moved <= 0) return errno_error("copy /proc/self/exe");
        copied += moved;
    }
    if (::fcntl(copy.get(), F_ADD_SEALS, kAllSeals) != 0) return errno_error("seal the copy of /proc/self/exe");
    return copy;
}

}  // namespace

Result<void> run_from_readonly_binary(char** argv) {
    if (TRY(is_sealed())) return {};
    Result<UniqueFd> binary = readonly_clone();
    if (!binary) binary = sealed_copy();
    if (!binary) return std::move(binary).error();
    // Where pinfold is installed is not to be seen from the clone.
    std::string path = own_path();
    argv[0] = path.data();
    ::execveat(binary->get(), "", argv, environ, AT_EMPTY_PATH);
    return errno_error("start again from a read-only binary");
}

}  // namespace pinfold
