// Watching real groups: nothing, the end, a kill for want of memory.
#include "cgroup/watch.hpp"

#include <sys/mman.h>

#include "real_group.hpp"
#include "support/testing.hpp"

using namespace pinfold;
using namespace pinfold::testing;
using namespace std::chrono_literals;

namespace {

using Event = GroupWatch::Event;

Event next(GroupWatch& watch, std::chrono::milliseconds patience) {
    const auto event = watch.next(Deadline(patience));
    REQUIRE(event);
    return *event;
}

}  // namespace

TEST_CASE("watch: quiet until the last process has gone") {
    const RealGroup place;
    if (!place.usable()) SKIP_TEST(place.why_not());
    REQUIRE(place.make());
    const pid_t pid = settle_in(place.open().get());
    auto watch = GroupWatch::create(place.at());
    REQUIRE(watch);
    CHECK(next(*watch, 0ms) == Event::none);
    CHECK(next(*watch, 20ms) == Event::none);
    ::kill(pid, SIGKILL);
    CHECK(outcome(pid) == -SIGKILL);
    CHECK(next(*watch, 1h) == Event::empty);
    place.clear();  // another group of this name is not ours
    CHECK(next(*watch, 1h) == Event::empty);
    CHECK_FALSE(GroupWatch::create(place.at("/none")).has_value());
}

TEST_CASE("watch: a kill for want of memory is told before the end") {
    const RealGroup place;
    if (!place.usable()) SKIP_TEST(place.why_not());
    if (!place.has_controller("memory")) SKIP_TEST("no memory controller below the top");
    REQUIRE(place.make());
    const UniqueFd group = place.open();
    REQUIRE(write_file_at(group.get(), "memory.max", "8388608"));
    (void)write_file_at(group.get(), "memory.swap.max", "0").has_value();
    auto watch = GroupWatch::create(place.at());
    REQUIRE(watch);
    CHECK(outcome(spawn_in(group.get(), [] {
              const size_t size = 64 << 20;
              void* memory = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
              for (size_t at = 0; at < size; at += 4096) static_cast<volatile char*>(memory)[at] = 1;
              return 0;
          })) == -SIGKILL);
    CHECK(next(*watch, 1h) == Event::oom);
    CHECK(next(*watch, 1h) == Event::empty);
}
