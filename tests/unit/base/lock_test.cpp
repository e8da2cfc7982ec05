// Locks of files: taken, waited for, given up on, with the name of who has them.
#include "base/fs.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <functional>

#include "base/clock.hpp"
#include "base/strings.hpp"
#include "support/temp_dir.hpp"
#include "support/testing.hpp"

using namespace pinfold;
using pinfold::testing::TempDir;

namespace {

constexpr std::chrono::milliseconds kShort{50};

UniqueFd open_it(const TempDir& dir) { return open_at(AT_FDCWD, dir.file("it"), O_RDWR | O_CREAT, 0600).value(); }

// A process that has the lock, and does something with it once it is told to go on.
class Holder {
public:
    Holder(const TempDir& dir, int kind, const std::function<void()>& then) {
        std::array<int, 2> told{}, go{};
        REQUIRE(::pipe2(told.data(), O_CLOEXEC) == 0);
        REQUIRE(::pipe2(go.data(), O_CLOEXEC) == 0);
        pid_ = ::fork();
        char byte = 0;
        if (pid_ == 0) {
            ::close(go[1]);
            const UniqueFd file = open_it(dir);
            if (::flock(file.get(), kind) != 0 || ::write(told[1], "x", 1) != 1 || ::read(go[0], &byte, 1) < 0)
                ::_exit(1);
            then();
            ::_exit(0);
        }
        ::close(told[1]);
        ::close(go[0]);
        const UniqueFd from(told[0]);
        go_.reset(go[1]);
        REQUIRE(::read(from.get(), &byte, 1) == 1);
    }
    ~Holder() { finish(); }
    Holder(const Holder&) = delete;
    Holder& operator=(const Holder&) = delete;

    pid_t pid() const { return pid_; }
    void go_on() { go_.reset(); }
    void finish() {
        go_on();
        if (pid_ > 0) ::waitpid(std::exchange(pid_, 0), nullptr, 0);
    }

private:
    pid_t pid_ = 0;
    UniqueFd go_;
};

void block_all_signals() {
    sigset_t all;
    ::sigfillset(&all);
    ::sigprocmask(SIG_SETMASK, &all, nullptr);
}

}  // namespace

TEST_CASE("lock: a free one is taken at once, and a shared one is shared") {
    TempDir dir;
    const UniqueFd one = open_it(dir), other = open_it(dir);
    CHECK(lock_file(one.get(), LOCK_SH, "it"));
    CHECK(lock_file(other.get(), LOCK_SH, "it", kShort));
    CHECK(lock_file(-1, LOCK_SH, "it").error().message.starts_with("lock it: "));
}

TEST_CASE("lock: one that is not let go of is given up, with the name of its holder") {
    TempDir dir;
    for (const int kind : {LOCK_EX, LOCK_SH}) {
        const Holder holder(dir, kind, [] {});
        const UniqueFd file = open_it(dir);
        const int64_t begin = monotonic_ns();
        const Result<void> locked = lock_file(file.get(), LOCK_EX, "it", kShort);
        REQUIRE_FALSE(locked);
        CHECK(monotonic_ns() - begin >= std::chrono::nanoseconds(kShort).count());
        CHECK(locked.error().code == EWOULDBLOCK);
        CHECK(locked.error().message ==
              concat("it is still held after 1 s, by process ", holder.pid(), " ('unit-base')"));
    }
}

TEST_CASE("lock: the holder may be a child of who took it") {
    TempDir dir;
    std::array<int, 2> ends{};
    REQUIRE(::pipe2(ends.data(), O_CLOEXEC) == 0);
    UniqueFd stays(ends[1]);
    // The grandchild has the same open file, and ends with the pipe.
    Holder holder(dir, LOCK_EX, [&] {
        if (::fork() != 0) return;
        stays.reset();
        char byte = 0;
        ::_exit(::read(ends[0], &byte, 1) == 0 ? 0 : 1);
    });
    const UniqueFd here(ends[0]);
    const pid_t pid = holder.pid();
    holder.finish();
    const UniqueFd file = open_it(dir);
    CHECK(lock_file(file.get(), LOCK_EX, "it", kShort).error().message ==
          concat("it is still held after 1 s, by a child of process ", pid, ", which has ended"));
    stays.reset();
    CHECK(lock_file(file.get(), LOCK_EX, "it"));
}

TEST_CASE("lock: it is got once it is free, and given up in time, with every signal blocked") {
    TempDir dir;
    Holder holder(dir, LOCK_EX, [] {});
    const pid_t waiter = ::fork();
    if (waiter == 0) {
        block_all_signals();
        const UniqueFd file = open_it(dir);
        const bool given_up = !lock_file(file.get(), LOCK_EX, "it", kShort);
        holder.go_on();
        ::_exit(given_up && lock_file(file.get(), LOCK_EX, "it") ? 0 : 1);
    }
    holder.go_on();  // our end; the waiter closes the other
    int status = -1;
    REQUIRE(::waitpid(waiter, &status, 0) == waiter);
    CHECK(status == 0);
}
