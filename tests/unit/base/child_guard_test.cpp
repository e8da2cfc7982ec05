// ChildGuard: real children, ended and reaped, or let go.
#include "base/process.hpp"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "support/sleeper.hpp"
#include "support/testing.hpp"

using namespace pinfold;
using pinfold::testing::start_sleeper;

namespace {

bool is_reaped(pid_t pid) { return ::waitpid(pid, nullptr, WNOHANG) < 0 && errno == ECHILD; }

}  // namespace

TEST_CASE("child guard: the child ends with the scope, and is no zombie") {
    const pid_t pid = start_sleeper();
    { const ChildGuard guard(pid); }
    CHECK(is_reaped(pid));
}

TEST_CASE("child guard: a released child lives on") {
    const pid_t pid = start_sleeper();
    {
        ChildGuard guard(pid);
        guard.release();
    }
    CHECK(::waitpid(pid, nullptr, WNOHANG) == 0);
    ::kill(pid, SIGKILL);
    CHECK(::waitpid(pid, nullptr, 0) == pid);
}

TEST_CASE("child guard: moved, only the new owner ends the child") {
    const pid_t pid = start_sleeper();
    ChildGuard* target = nullptr;
    {
        ChildGuard guard(pid);
        target = new ChildGuard(std::move(guard));
    }
    CHECK(::waitpid(pid, nullptr, WNOHANG) == 0);
    delete target;
    CHECK(is_reaped(pid));
}

TEST_CASE("child guard: a copy in a forked child does nothing") {
    const pid_t pid = start_sleeper();
    const ChildGuard guard(pid);
    const pid_t other = ::fork();
    if (other == 0) {
        guard.~ChildGuard();
        ::_exit(0);
    }
    REQUIRE(::waitpid(other, nullptr, 0) == other);
    CHECK(::waitpid(pid, nullptr, WNOHANG) == 0);
}
