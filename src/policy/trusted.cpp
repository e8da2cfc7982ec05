// Who may write a file is asked of the opened file.
#include "policy/trusted.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include "base/strings.hpp"
#include "kernel/namespaces.hpp"

namespace pinfold {

namespace {

// Root of the host has no number in a user namespace that does not map it; the kernel shows this one instead.
constexpr uid_t kUnmapped = 65534;

bool is_root(uid_t uid) {
    if (uid != kUnmapped) return uid == 0;
    const Result<bool> initial = in_initial_user_namespace();
    return initial && !*initial;
}

}  // namespace

Result<void> require_trusted(int fd, const std::string& path, bool callers_own) {
    struct stat info {};
    if (::fstat(fd, &info) != 0) return errno_error(concat("stat ", path));
    if (!is_root(info.st_uid) && !(callers_own && info.st_uid == ::getuid())) {
        return plain_error(concat(path, " belongs to user ", info.st_uid, ", who could change it"))
            .with_hint(concat("chown root:root ", path));
    }
    if ((info.st_mode & 022) != 0) {
        return plain_error(concat(path, " can be changed by others than its owner"))
            .with_hint(concat("chmod go-w ", path));
    }
    return {};
}

}  // namespace pinfold
