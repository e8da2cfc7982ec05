// Bad ends: pinfold killed in the middle.
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "harness.hpp"

using namespace pinfold::integration;

TEST_CASE("ends: pinfold killed while its container runs; delete --force removes the rest") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    Bundle bundle;
    waiting(bundle);
    const auto running = start(bundle);
    REQUIRE(running->read_line() == "READY");
    running->signal(SIGKILL);
    CHECK(running->finish().status == 128 + SIGKILL);
    CHECK(json::parse(verb(bundle, {"state", bundle.id()}).out)["status"] == "running");
    CHECK(verb(bundle, {"delete", bundle.id()}).status == 1);
    CHECK(verb(bundle, {"delete", "--force", bundle.id()}).status == 0);
}

TEST_CASE("ends: pinfold killed during the set-up takes the half-made container along") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    Bundle bundle;
    waiting(bundle);
    // With --log on a FIFO that nobody empties, the child blocks in one of its steps.
    REQUIRE(::mkfifo((bundle.host() / "log").c_str(), 0600) == 0);
    const UniqueFd reader(::open((bundle.host() / "log").c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
    REQUIRE(reader);
    const UniqueFd filler(::open((bundle.host() / "log").c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC));
    // Two pages, of which the kernel calls a pipe full that has begun the second. Room for the first few lines only:
    // some step of the child is the one that blocks, for a second with each line.
    REQUIRE(::fcntl(filler.get(), F_SETPIPE_SZ, 8192) == 8192);
    const std::string fill(4096 - 1200, ' ');
    REQUIRE(::write(filler.get(), fill.data(), fill.size()) == ssize_t(fill.size()));
    const auto running = start(
        bundle, {.global = {"--debug", "--log", bundle.host() / "log"}, .args = {"--pid-file", bundle.host() / "pid"}});
    const pid_t pid = std::stoi(await_file(bundle.host() / "pid"));
    const UniqueFd child(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
    REQUIRE(child);
    running->signal(SIGKILL);
    CHECK(running->finish().status == 128 + SIGKILL);
    CHECK(await_readable(child.get()));  // dead before anybody deletes it
    CHECK(verb(bundle, {"delete", "--force", bundle.id()}).status == 0);
}
