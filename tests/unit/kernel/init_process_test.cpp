// A process that is found again, signalled and waited for, though its pid may be another's by then.
#include "base/process.hpp"

#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <future>
#include <thread>

#include "base/fs.hpp"
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

// A process that lives in a thread of its own, the first one having ended.
pid_t start_leaderless() {
    const pid_t pid = ::fork();
    if (pid == 0) {
        std::thread([] {
            for (;;) ::pause();
        }).detach();
        ::syscall(SYS_exit, 0);
    }
    REQUIRE(pid > 0);
    const std::string file = "/proc/" + std::to_string(pid) + "/stat";
    while (read_file(file).value().find(") Z ") == std::string::npos) ::sched_yield();
    return pid;
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
    CHECK(process_start_time(pid).value() == *started);
    CHECK_FALSE(*open_process(pid, *started));
}

TEST_CASE("init process: it lives as long as one of its threads does, and that one tells what it has") {
    const pid_t pid = start_leaderless();
    const ChildGuard guard(pid);
    const uint64_t started = process_start_time(pid).value();
    const UniqueFd found = open_process(pid, started).value();
    REQUIRE(found);
    CHECK_FALSE(has_ended(found.get()));
    const auto has_namespaces = [](const std::string& thread) {
        return ::access((thread + "/ns/mnt").c_str(), F_OK) == 0;
    };
    CHECK_FALSE(has_namespaces("/proc/" + std::to_string(pid)));
    CHECK(ask_threads(pid, has_namespaces));
    CHECK(require_first_thread(pid).error().message.find("without its first thread") != std::string::npos);
    CHECK(require_first_thread(::getpid()));
    make_zombie(pid);
    CHECK(has_ended(found.get()));
    CHECK_FALSE(*open_process(pid, started));
    CHECK_FALSE(ask_threads(pid, has_namespaces));
    CHECK(require_first_thread(pid).error().message == "container not running: its first process has ended");
}

TEST_CASE("init process: a number that is another's thread by now is no process's") {
    std::promise<pid_t> number;
    std::promise<void> done;
    std::thread other([&] {
        number.set_value(::gettid());
        done.get_future().wait();
    });
    const pid_t thread = number.get_future().get();
    const Result<UniqueFd> found = open_process(thread, process_start_time(thread).value());
    done.set_value();
    other.join();
    REQUIRE(found);
    CHECK_FALSE(*found);
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
