// Child processes: started, waited for, held by a descriptor.
#include "base/process.hpp"

#include <linux/capability.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <optional>

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

namespace {

// A child that ends with that code when it is told to, and one that traces it and never waits for it. Empty: none may.
struct Traced {
    explicit Traced(int code) {
        const pid_t first = ::fork();
        if (first == 0) {
            char letter = 0;
            ::_exit(::read(end_it.from.get(), &letter, 1) == 1 ? code : 1);
        }
        child.emplace(first);
        const pid_t second = ::fork();
        if (second == 0) {
            const bool seized = ::ptrace(PTRACE_SEIZE, first, 0, 0) == 0;
            if (::write(ready.to.get(), seized ? "y" : "n", 1) == 1) ::pause();
            ::_exit(1);
        }
        tracer.emplace(second);
        char answer = 0;
        is_traced = ::read(ready.from.get(), &answer, 1) == 1 && answer == 'y';
    }

    Result<ChildEnd> end() {
        const UniqueFd pidfd = open_pidfd(child->pid());
        if (::write(end_it.to.get(), "x", 1) != 1) return plain_error("write");
        return reap_held(pidfd.get());
    }

    const Pipe end_it = std::move(make_pipe("")).value(), ready = std::move(make_pipe("")).value();
    std::optional<ChildGuard> child, tracer;  // which goes first, so that the other can be reaped
    bool is_traced = false;
};

// 0 if it could not be told, 2 if there was nothing to tell.
int end_without_capabilities() {
    Traced traced(7);
    if (!traced.is_traced) return 2;
    __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
    __user_cap_data_struct data[2]{};
    if (::syscall(SYS_capget, &header, data) != 0) return 3;
    data[0].effective = data[1].effective = 0;
    if (::syscall(SYS_capset, &header, data) != 0) return 4;
    return traced.end() ? 5 : 0;
}

}  // namespace

TEST_CASE("reap_held: one that has ended, and that another process traces and never waits for") {
    Traced traced(7);
    if (!traced.is_traced) SKIP_TEST("no process may trace its sibling here");
    const auto end = traced.end();
    REQUIRE(end);
    CHECK(exit_code_of(end->how) == 7);
}

// Whoever has fewer effective capabilities than the other has permitted ones is told 0, whatever the code was.
TEST_CASE("reap_held: what the kernel does not tell is not taken for success") {
    if (::geteuid() != 0) SKIP_TEST("only root has capabilities to lower");
    const pid_t pid = ::fork();
    if (pid == 0) ::_exit(end_without_capabilities());
    const int code = reap(pid);
    if (code == 2) SKIP_TEST("no process may trace its sibling here");
    CHECK(code == 0);
}
