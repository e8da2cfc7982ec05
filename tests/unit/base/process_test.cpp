// Child processes: started, waited for, held by a descriptor.
#include "base/process.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

#include "base/fs.hpp"
#include "support/testing.hpp"

using namespace pinfold;

TEST_CASE("process: a program's output, and its exit code") {
    Pipe pipe = std::move(make_pipe("")).value();
    const Result<pid_t> pid = spawn({"sh", "-c", "echo out; echo err >&2; exit 3"}, pipe.to.get());
    REQUIRE(pid);
    pipe.to.reset();
    CHECK(*read_all(pipe.from.get(), "the output") == "out\nerr\n");
    CHECK(reap(*pid) == 3);
    CHECK(::waitpid(*pid, nullptr, 0) == -1);
}

TEST_CASE("process: a program that is not there") {
    const Result<pid_t> pid = spawn({"no-such-program-anywhere"});
    REQUIRE_FALSE(pid);
    CHECK(pid.error().code == ENOENT);
    CHECK(pid.error().message.starts_with("start no-such-program-anywhere: "));
}

TEST_CASE("process: a held child that was killed, once") {
    const Result<pid_t> pid = spawn({"sh", "-c", "kill -9 $$"});
    REQUIRE(pid);
    const UniqueFd held = open_pidfd(*pid);
    REQUIRE(held);
    const Result<ChildEnd> end = reap_held(held.get());
    REQUIRE(end);
    CHECK(exit_code_of(end->how) == 128 + SIGKILL);
    CHECK(end->usage.ru_maxrss > 0);
    const Result<ChildEnd> again = reap_held(held.get());
    REQUIRE_FALSE(again);
    CHECK(again.error().code == ECHILD);
    CHECK(reap(*pid) == 0);
}

TEST_CASE("process: nobody is held by a pid that nobody has") {
    CHECK_FALSE(open_pidfd(0x7fffffff));
    CHECK(errno == ESRCH);
}
