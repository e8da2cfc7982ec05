// What is counted of a process that does not let itself be looked at.
#include "sandbox/memory_watch.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <system_error>
#include <thread>

#include "base/clock.hpp"
#include "pinfold/unique_fd.hpp"
#include "support/testing.hpp"

using namespace pinfold;

namespace {

constexpr uint64_t kShared = uint64_t{64} << 20;

struct Pipe {
    Pipe() {
        int ends[2];
        REQUIRE(::pipe2(ends, O_CLOEXEC) == 0);
        from = UniqueFd(ends[0]);
        to = UniqueFd(ends[1]);
    }
    UniqueFd from;
    UniqueFd to;
};

pid_t start(const std::function<void()>& work) {
    const pid_t pid = ::fork();
    REQUIRE(pid >= 0);
    if (pid > 0) return pid;
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    work();
    ::_exit(0);
}

// One who keeps, and one process below it with shared memory that it has mapped and not touched.
class Kept {
public:
    Kept() {
        const Pipe ready;
        sandbox_init_ = start([&] {
            start([&] {
                void* memory = ::mmap(nullptr, kShared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
                if (memory != MAP_FAILED && ::write(ready.to.get(), "r", 1) == 1) ::pause();
            });
            ::pause();
        });
        char byte = 0;
        REQUIRE(::read(ready.from.get(), &byte, 1) == 1);
    }
    ~Kept() {
        ::kill(sandbox_init_, SIGKILL);
        ::waitpid(sandbox_init_, nullptr, 0);
    }
    Kept(const Kept&) = delete;
    Kept& operator=(const Kept&) = delete;

    uint64_t measured_by(uid_t uid) const {
        const Pipe answer;
        const pid_t watcher = start([&] {
            if (::setresgid(uid, uid, uid) != 0 || ::setresuid(uid, uid, uid) != 0) return;
            std::optional<MemoryWatch> watch = MemoryWatch::create({}, sandbox_init_, UINT64_MAX);
            const uint64_t used = watch ? watch->measure() : 0;
            if (::write(answer.to.get(), &used, sizeof used) < 0) ::_exit(1);
        });
        uint64_t used = 0;
        CHECK(::read(answer.from.get(), &used, sizeof used) == ssize_t(sizeof used));
        ::waitpid(watcher, nullptr, 0);
        return used;
    }

private:
    pid_t sandbox_init_ = -1;
};

}  // namespace

TEST_CASE("memory watch: who may not see what a process has mapped counts all of it") {
    if (::geteuid() != 0) SKIP_TEST("needs root, whose processes another user may not look into");
    const Kept kept;
    CHECK(kept.measured_by(0) >= kShared);
    CHECK(kept.measured_by(65534) >= kShared);
}

TEST_CASE("memory: a process whose threads begin and end without end holds up nobody who looks at it") {
    const Pipe ready;
    const pid_t sandbox_init = start([&] {
        start([&] {
            const std::function<void()> churn = [&churn] {
                ::usleep(200);
                try {
                    std::thread(churn).detach();
                } catch (const std::system_error&) {
                    ::_exit(1);
                }
            };
            for (int i = 0; i < 100; ++i) churn();
            if (::write(ready.to.get(), "r", 1) == 1) ::pause();
        });
        ::pause();
    });
    char byte = 0;
    REQUIRE(::read(ready.from.get(), &byte, 1) == 1);
    std::optional<MemoryWatch> watch = MemoryWatch::create({}, sandbox_init, UINT64_MAX);
    REQUIRE(watch);
    const int64_t begin = monotonic_ns();
    CHECK(watch->measure() > 0);
    const double each = double(monotonic_ns() - begin) / 1e9;
    CHECK_MESSAGE(each < 0.5, each, " s");
    CHECK(watch->measure(monotonic_ns()) == 0);  // its time is over
    ::kill(sandbox_init, SIGKILL);
    ::waitpid(sandbox_init, nullptr, 0);
}
