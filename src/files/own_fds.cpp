// This process's descriptors as the host's /proc lists them.
#include "files/own_fds.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

#include "base/fs.hpp"
#include "base/strings.hpp"

namespace pinfold {

Result<OwnFds> OwnFds::open() { return OwnFds(TRY(open_at(AT_FDCWD, "/proc/self/fd", O_PATH | O_DIRECTORY))); }

Result<UniqueFd> OwnFds::reopen(int fd, int flags) const {
    UniqueFd opened(::openat(directory_.get(), std::to_string(fd).c_str(), flags | O_CLOEXEC));
    if (!opened) return errno_error("open");
    return opened;
}

Result<void> OwnFds::give_name(int fd, int directory, const std::string& name) const {
    const std::string number = std::to_string(fd);
    if (::linkat(directory_.get(), number.c_str(), directory, name.c_str(), AT_SYMLINK_FOLLOW) == 0) return {};
    return errno_error(concat("name ", quoted(name)));
}

}  // namespace pinfold
