// Freezing real groups: what is in them and below stops, goes on again, and one that cannot be stopped is let go.
#include "cgroup/cgroup.hpp"

#include <linux/userfaultfd.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>

#include "real_group.hpp"
#include "support/testing.hpp"

using namespace pinfold;
using namespace pinfold::testing;

namespace {

std::string message_of(const Result<void>& result) { return result ? "" : result.error().message; }

// Adds to the counter as fast as it can.
pid_t count_in(int group, volatile uint64_t* counter) {
    return spawn_in(group, [counter] {
        for (;;) *counter = *counter + 1;
        return 0;
    });
}

void end(pid_t pid) {
    ::kill(pid, SIGKILL);
    CHECK(outcome(pid) == -SIGKILL);
}

// In the kernel, in the midst of a page fault that nobody serves: only SIGKILL gets it out of there.
int hang_in_the_kernel(int ready) {
    const UniqueFd faults(static_cast<int>(::syscall(SYS_userfaultfd, O_CLOEXEC)));
    uffdio_api api{UFFD_API, 0, 0};
    void* page = ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    uffdio_register area{{reinterpret_cast<uintptr_t>(page), 4096}, UFFDIO_REGISTER_MODE_MISSING, 0};
    const bool armed =
        faults && ::ioctl(faults.get(), UFFDIO_API, &api) == 0 && ::ioctl(faults.get(), UFFDIO_REGISTER, &area) == 0;
    ::eventfd_write(ready, armed ? 1 : 2);
    const UniqueFd zeros(::open("/dev/zero", O_RDONLY | O_CLOEXEC));
    return ::read(zeros.get(), page, 4096) > 0 ? 0 : 1;
}

}  // namespace

TEST_CASE("freeze: all in the group and below it stops, and goes on") {
    const RealGroup place;
    if (!place.usable()) SKIP_TEST(place.why_not());
    REQUIRE(place.make());
    REQUIRE(place.make("/below"));
    auto* counters = static_cast<volatile uint64_t*>(
        ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
    const pid_t pids[] = {count_in(place.open().get(), &counters[0]),
                          count_in(place.open("/below").get(), &counters[1])};
    CHECK_FALSE(is_frozen(place.at()));

    CHECK(message_of(freeze_group(place.at())) == "");
    CHECK(is_frozen(place.at()));
    CHECK_FALSE(is_frozen(place.at("/below")));  // not by itself
    const uint64_t before[] = {counters[0], counters[1]};
    const pid_t other = ::fork();
    if (other == 0) ::_exit(0);
    CHECK(outcome(other) == 0);  // time passes
    CHECK(counters[0] == before[0]);
    CHECK(counters[1] == before[1]);

    CHECK(message_of(thaw_group(place.at())) == "");
    CHECK_FALSE(is_frozen(place.at()));
    while (counters[0] == before[0] || counters[1] == before[1]) continue;  // for ever if it does not work
    for (const pid_t pid : pids) end(pid);
}

TEST_CASE("freeze: what cannot be stopped in time is let go again") {
    const RealGroup place;
    if (!place.usable()) SKIP_TEST(place.why_not());
    REQUIRE(place.make());
    const UniqueFd ready(::eventfd(0, EFD_CLOEXEC));
    const pid_t pid = spawn_in(place.open().get(), [&] { return hang_in_the_kernel(ready.get()); });
    eventfd_t armed = 0;
    REQUIRE(::eventfd_read(ready.get(), &armed) == 0);
    if (armed == 2) {
        CHECK(outcome(pid) >= 0);
        SKIP_TEST("no userfaultfd for faults of the kernel");
    }
    // It says so before it hangs; from then on it needs no more than a system call.
    while (read_file(concat("/proc/", pid, "/wchan")).value() != "handle_userfault") continue;
    const auto frozen = freeze_group(place.at(), std::chrono::milliseconds(100));
    CHECK(message_of(frozen) ==
          concat("freeze cgroup ", place.host().mount, place.path(), ": not all processes had stopped after 100 ms"));
    CHECK_FALSE(is_frozen(place.at()));
    end(pid);
}

TEST_CASE("freeze: a frozen group above is not ours to thaw") {
    const RealGroup place;
    if (!place.usable()) SKIP_TEST(place.why_not());
    REQUIRE(place.make());
    REQUIRE(place.make("/below"));
    CHECK(message_of(freeze_group(place.at())) == "");
    const auto thawed = thaw_group(place.at("/below"), std::chrono::milliseconds(10));
    REQUIRE_FALSE(thawed);
    CHECK(thawed.error().hint.find("a group above it") != std::string::npos);
    CHECK(message_of(thaw_group(place.at())) == "");
}

TEST_CASE("freeze: a group that is absent") {
    const RealGroup place;
    if (!place.usable()) SKIP_TEST(place.why_not());
    CHECK_FALSE(is_frozen(place.at()));
    CHECK(message_of(freeze_group(place.at())).find("does not exist") != std::string::npos);
    CHECK_FALSE(freeze_group(place.at("/../..")).has_value());
}
