// A child that does nothing until it is killed.
#pragma once

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/testing.hpp"

namespace pinfold::testing {

// For who ends and reaps it.
inline pid_t start_sleeper() {
    const pid_t pid = ::fork();
    if (pid == 0) {
        for (;;) ::pause();
    }
    REQUIRE(pid > 0);
    return pid;
}

// One that is there until the end of the scope.
class Sleeper {
public:
    Sleeper() = default;
    ~Sleeper() {
        ::kill(pid_, SIGKILL);
        ::waitpid(pid_, nullptr, 0);
    }
    Sleeper(const Sleeper&) = delete;
    Sleeper& operator=(const Sleeper&) = delete;

    pid_t pid() const { return pid_; }

private:
    pid_t pid_ = start_sleeper();
};

}  // namespace pinfold::testing
