// Bad ends: pinfold killed in the middle, and a payload that reaches for pinfold itself.
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

#include "harness.hpp"

using namespace pinfold::integration;

namespace {

// A program with an interpreter in its head does not start in an empty root.
bool is_static(const std::string& program) {
    return read_text(program).substr(0, 4096).find("/ld-") == std::string::npos;
}

// A payload that blocks for good, once it is there.
void sleep_forever(Bundle& bundle) { bundle.probe({"wait-signal"}); }

}  // namespace

TEST_CASE("ends: pinfold killed while its container runs; delete --force removes the rest") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    Bundle bundle;
    sleep_forever(bundle);
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
    sleep_forever(bundle);
    // With --log on a FIFO that nobody empties, the child blocks in one of its steps.
    REQUIRE(::mkfifo((bundle.host() / "log").c_str(), 0600) == 0);
    const UniqueFd reader(::open((bundle.host() / "log").c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
    REQUIRE(reader);
    const UniqueFd filler(::open((bundle.host() / "log").c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC));
    const int room = ::fcntl(filler.get(), F_SETPIPE_SZ, 4096);
    REQUIRE(room == 4096);
    // Room for the first few lines only: some step of the child is the one that blocks.
    const std::string fill(static_cast<size_t>(room) - 1200, ' ');
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

// CVE-2019-5736: the container's first process is pinfold itself, by a link to its own program file. An attacker holds
// on to that file until nobody runs it any more, and then opens it for writing.
TEST_CASE("ends: a payload that is pinfold's own file cannot write it") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    if (!is_static(runtime_command()[0])) SKIP_TEST("only a static pinfold can be a payload");
    Bundle bundle;
    fs::create_symlink("/proc/self/exe", bundle.rootfs() / "trick");
    REQUIRE(::mkfifo((bundle.rootfs() / "fifo").c_str(), 0666) == 0);
    bundle.config["root"]["readonly"] = false;
    bundle.config["process"]["args"] = {"/trick", "--log", "/fifo", "run", "inner"};
    const auto running = start(bundle, {.args = {"--pid-file", bundle.host() / "pid"}});
    const std::string exe = "/proc/" + await_file(bundle.host() / "pid") + "/exe";
    // The inner pinfold waits for a reader of its log. Its file, and not that of the probe, is what must be refused.
    const UniqueFd own(::open(runtime_command()[0].c_str(), O_PATH | O_CLOEXEC));
    struct stat inner {
    }, outer{};
    REQUIRE(::fstat(own.get(), &outer) == 0);
    do REQUIRE(::stat(exe.c_str(), &inner) == 0);
    while (inner.st_ino != outer.st_ino);
    const UniqueFd held(::open(exe.c_str(), O_PATH | O_CLOEXEC));
    REQUIRE(held);
    const UniqueFd fifo(::open((bundle.rootfs() / "fifo").c_str(), O_RDONLY | O_CLOEXEC));
    CHECK(running->finish().status == 1);
    const UniqueFd writable(::open(("/proc/self/fd/" + std::to_string(held.get())).c_str(), O_WRONLY | O_CLOEXEC));
    const int code = errno;
    CHECK_FALSE(writable);
    CHECK(code == EROFS);
}
