// What a caller wants of a process besides its configuration.
#pragma once

#include <string>

namespace pinfold {

struct ChildOptions {
    std::string pid_file;        // empty: none
    std::string console_socket;  // empty: the terminal stays with us
    std::string pidfd_socket;    // empty: none
    std::string seccomp_cache;   // directory of compiled filters
    unsigned preserve_fds = 0;   // beyond 0, 1, 2
    bool detach = false;
};

}  // namespace pinfold
