// The words for what ran out of memory, and the search for a limit that is enough.
#include "process/memory_report.hpp"

#include <signal.h>

#include <vector>

#include "support/testing.hpp"

using namespace pinfold;

namespace {

constexpr uint64_t kKiB = 1024;

Plan plan_of(std::vector<CgroupWrite> writes) {
    Plan plan;
    plan.id = "web";
    plan.process.args = {"/app", "serve"};
    plan.cgroup.writes = std::move(writes);
    return plan;
}

}  // namespace

TEST_CASE("memory report: what was killed, and by which limit") {
    const Plan plan = plan_of({{"memory.max", "4096", "linux.resources.memory.limit"}});
    CHECK(describe_oom({1, true, 4096}, plan, 7, 128 + SIGKILL) ==
          "container 'web': out of memory: the kernel killed 1 process, the container's first ('/app', pid 7); "
          "linux.resources.memory.limit, 4096 bytes, was reached");
    CHECK(describe_oom({2, true, 8192}, plan, 7, 128 + SIGKILL) ==
          "container 'web': out of memory: the kernel killed 2 processes, with the container's first ('/app', pid 7); "
          "linux.resources.memory.limit, 8192 bytes, was reached");
    CHECK(describe_oom({1, false, 4096}, plan, 7, 0) ==
          "container 'web': out of memory: the kernel killed 1 process; it was a limit above the container's group, or "
          "the host's memory");
}

TEST_CASE("memory report: the property that had the last word is named") {
    const Plan unified = plan_of({{"memory.max", "4096", "linux.resources.memory.limit"},
                                  {"memory.max", "2048", "linux.resources.unified.memory.max"},
                                  {"pids.max", "5", "linux.resources.pids.limit"}});
    const Error error = memory_limit_too_low({1, true, 2048}, unified, 8192);
    CHECK(error.message ==
          "memory limit too low: the container cannot start with linux.resources.unified.memory.max at 2048 bytes; it "
          "takes 8192");
    CHECK(error.hint == "set linux.resources.unified.memory.max to 8192 and what the program needs");
    const Error unknown = memory_limit_too_low({1, true, 2048}, plan_of({}), std::nullopt);
    CHECK(unknown.message ==
          "memory limit too low: the container cannot start with linux.resources.memory.limit at 2048 bytes");
    CHECK(unknown.hint == "raise linux.resources.memory.limit");
}

TEST_CASE("memory report: the smallest limit that is enough, in few attempts") {
    for (const uint64_t needed : {20 * kKiB, 100 * kKiB, 112 * kKiB, 5000 * kKiB}) {
        for (const uint64_t too_low : {uint64_t(0), uint64_t(4096), needed - 1}) {
            int attempts = 0;
            const auto enough = find_enough_memory(too_low, [&](uint64_t limit) {
                ++attempts;
                CHECK(limit > too_low);
                return limit >= needed;
            });
            REQUIRE(enough);
            CHECK(*enough >= needed + 128 * kKiB);
            CHECK(*enough < needed + 128 * kKiB + 16 * kKiB);
            CHECK(attempts < 20);
        }
    }
    CHECK_FALSE(find_enough_memory(4096, [](uint64_t) { return false; }));
}
