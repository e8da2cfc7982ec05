// The runtime's own program file.
#include "kernel/own_binary.hpp"

#include <fcntl.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fs.hpp"
#include "base/process.hpp"
#include "kernel/mounts.hpp"

namespace pinfold {

namespace {

constexpr const char* kOwnBinary = "/proc/self/exe";

Result<UniqueFd> readonly_clone() {
    UniqueFd tree = TRY(clone_tree(AT_FDCWD, kOwnBinary, false));
    TRY(change_mount(tree.get(), MountChange{.set = MOUNT_ATTR_RDONLY}, false));
    return tree;
}

// Where mounts cannot be made (no CAP_SYS_ADMIN): a copy in memory that nobody can change.
Result<UniqueFd> sealed_copy() {
    UniqueFd copy = TRY(make_memory_program());
    const UniqueFd own = TRY(open_at(AT_FDCWD, kOwnBinary, O_RDONLY));
    struct stat info {};
    if (::fstat(own.get(), &info) != 0) return errno_error("stat /proc/self/exe");
    for (off_t copied = 0; copied < info.st_size;) {
        const ssize_t moved = ::sendfile(copy.get(), own.get(), nullptr, size_t(info.st_size - copied));
        if (moved <= 0) return errno_error("copy /proc/self/exe");
        copied += moved;
    }
    TRY(seal(copy.get()));
    return copy;
}

}  // namespace

Error run_from_readonly_binary(char** argv) {
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
