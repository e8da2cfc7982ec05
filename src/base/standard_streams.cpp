// Descriptors 0, 1 and 2, before any other is opened.
#include "base/standard_streams.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

#include "base/strings.hpp"

namespace pinfold {

// The kernel gives the lowest number that is free, and those below are not, once they were filled.
Result<void> fill_standard_streams() {
    for (const int number : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
        if (::fcntl(number, F_GETFD) >= 0 || errno != EBADF) continue;
        const int opened = ::open("/dev/null", O_RDWR);
        if (opened < 0) return errno_error(concat("descriptor ", number, " is closed: open /dev/null in its place"));
        if (opened == number) continue;
        ::close(opened);  // another thread of a library's caller has taken the number meanwhile
    }
    return {};
}

Result<UniqueFd> above_standard_streams(UniqueFd fd) {
    if (fd.get() > STDERR_FILENO) return fd;
    UniqueFd moved(::fcntl(fd.get(), F_DUPFD_CLOEXEC, STDERR_FILENO + 1));
    if (!moved) return errno_error("move a descriptor");
    return moved;
}

}  // namespace pinfold
