// `escape [GROUP]`: tries to get out, one line per attempt: its name, what became of it, the error.
#include "escape.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "commands.hpp"

namespace probe {

namespace {

struct Group {
    const char* name;
    Attempts (*attempts)();
    bool alone = false;  // tried only when asked for: it may end the process
};

constexpr Group kGroups[] = {
    {"kernel", kernel_attempts},     {"namespaces", namespace_attempts}, {"processes", process_attempts},
    {"files", file_attempts},        {"devices", device_attempts},       {"sockets", socket_attempts},
    {"terminal", terminal_attempts}, {"x32", x32_attempts, true},        {"int80", int80_attempts, true},
};

const char* judge(const Attempt& attempt, long result, int error) {
    if (result == kAbsent) return "absent";
    if (result >= 0) return "reached";
    const bool refused = error == EPERM || error == EACCES || error == ENOSYS ||
                         std::find(attempt.refusals.begin(), attempt.refusals.end(), error) != attempt.refusals.end();
    return refused ? "refused" : "reached";
}

void try_one(const Attempt& attempt) {
    errno = 0;
    const long result = attempt.run();
    const int error = result < 0 ? errno : 0;
    const Object line = Object()
                            .add("name", attempt.name)
                            .add("result", judge(attempt, result, error))
                            .add("errno", strerrorname_np(error));
    std::printf("%s\n", line.text().c_str());
    std::fflush(stdout);  // the next one may be the last
}

}  // namespace

long in_child(const std::function<long()>& run) {
    const pid_t child = ::fork();
    if (child < 0) return run();
    if (child == 0) ::_exit(run() >= 0 ? 0 : errno);
    int status = 0;
    while (::waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
    errno = WIFEXITED(status) ? WEXITSTATUS(status) : EINTR;
    return errno == 0 ? 0 : -1;
}

long confined() {
    errno = EXDEV;
    return -1;
}

Object escape_command(const Arguments& arguments) {
    long count = 0;
    for (const Group& group : kGroups) {
        if (arguments.empty() ? group.alone : arguments[0] != group.name) continue;
        for (const Attempt& attempt : group.attempts()) {
            try_one(attempt);
            ++count;
        }
    }
    return success().add("attempts", count);
}

}  // namespace probe
