// Child processes: started, waited for, held by a descriptor.
#include "base/process.hpp"

#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

#include "base/strings.hpp"

namespace pinfold {

std::vector<char*> pointers(const std::vector<std::string>& texts) {
    std::vector<char*> result;
    result.reserve(texts.size() + 1);
    for (const std::string& text : texts) result.push_back(const_cast<char*>(text.c_str()));
    result.push_back(nullptr);
    return result;
}

Result<pid_t> spawn(const std::vector<std::string>& words, int output) {
    posix_spawn_file_actions_t actions;
    ::posix_spawn_file_actions_init(&actions);
    for (const int fd : {STDOUT_FILENO, STDERR_FILENO}) {
        if (output >= 0) ::posix_spawn_file_actions_adddup2(&actions, output, fd);
    }
    pid_t pid = 0;
    const int failed = ::posix_spawnp(&pid, words[0].c_str(), &actions, nullptr, pointers(words).data(), environ);
    ::posix_spawn_file_actions_destroy(&actions);
    if (failed != 0) return errno_error(failed, concat("start ", words[0]));
    return pid;
}

UniqueFd open_pidfd(pid_t pid) { return UniqueFd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0))); }

int reap(pid_t pid) {
    siginfo_t end{};
    while (::waitid(P_PID, static_cast<id_t>(pid), &end, WEXITED) != 0) {
        if (errno != EINTR) return 0;
    }
    return exit_code_of(end);
}

// By system call: the C library's has no room for the usage.
Result<ChildEnd> reap_held(int pidfd) {
    ChildEnd end{};
    while (::syscall(SYS_waitid, P_PIDFD, pidfd, &end.how, WEXITED, &end.usage) != 0) {
        if (errno != EINTR) return errno_error("waitid");
    }
    return end;
}

int exit_code_of(const siginfo_t& end) { return end.si_code == CLD_EXITED ? end.si_status : 128 + end.si_status; }

}  // namespace pinfold
