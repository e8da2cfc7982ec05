// A process that is found again, signalled and waited for, though its pid may be another's by then.
#include "base/process.hpp"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/sleeper.hpp"
#include "support/testing.hpp"

using namespace pinfold;
using pinfold::testing::start_sleeper;

namespace {

// Ended, and not reaped.
void make_zombie(pid_t pid) {
    ::kill(pid, SIGKILL);
    siginfo_t end{};
    REQUIRE(::waitid(P_PID, id_t(pid), &end, WEXITED | WNOWAIT) == 0);
}

}  // namespace

TEST_CASE("init process: it is the one that was started then, or none") {
    const pid_t pid = start_sleeper();
    const ChildGuard guard(pid);
    const Result<uint64_t> started = process_start_time(pid);
    REQUIRE(started);
    CHECK(*started > 0);
    const Result<UniqueFd> found = open_process(pid, *started);
    REQUIRE(found);
    REQUIRE(*found);
    CHECK(pid_of(found->get()).value() == pid);
    CHECK_FALSE(*open_process(pid, *started + 1));  // the pid of another
    CHECK_FALSE(*open_process(0, 0));
    make_zombie(pid);
    CHECK(process_start_time(pid).value() == 0);
    CHECK_FALSE(*open_process(pid, *started));
}

TEST_CASE("init process: one that has ended receives nothing, and that is no error") {
    const pid_t pid = start_sleeper();
    const UniqueFd process = open_pidfd(pid);
    CHECK(send_signal(process.get(), 0).value());
    CHECK_FALSE(send_signal(process.get(), 1000));
    ::kill(pid, SIGKILL);
    ::waitpid(pid, nullptr, 0);
    CHECK_FALSE(send_signal(process.get(), SIGTERM).value());
    CHECK_FALSE(pid_of(process.get()));
}

TEST_CASE("init process: its end is awaited, but not for ever, and what holds it up is told") {
    const pid_t pid = start_sleeper();
    const ChildGuard guard(pid);
    const UniqueFd process = open_pidfd(pid);
    const Result<void> alive = await_end(process.get(), std::chrono::seconds(0));
    REQUIRE_FALSE(alive);
    CHECK(alive.error().message == "the first process did not end within 0 s of SIGKILL");
    CHECK(alive.error().hint.find("defunct has to be reaped by its parent") != std::string::npos);
    ::kill(pid, SIGKILL);
    CHECK(await_end(process.get()));
    CHECK(await_end(process.get(), std::chrono::seconds(0)));
}
