// Counting what ran out of memory, from the texts that the kernel gives.
#include "cgroup/control_files.hpp"

#include <fcntl.h>

#include "base/fs.hpp"
#include "support/temp_dir.hpp"
#include "support/testing.hpp"

using namespace pinfold;

namespace {

OomCount counted(const char* events, const char* limit) {
    const testing::TempDir group;
    for (const auto& [file, text] : {std::pair("memory.events", events), {"memory.max", limit}}) {
        const UniqueFd fd(::open(group.file(file).c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
        REQUIRE(write_once(fd.get(), text, file));
    }
    const size_t slash = group.path().rfind('/');
    return count_oom({group.path().substr(0, slash), group.path().substr(slash), {}, {}});
}

}  // namespace

TEST_CASE("oom: an event's count is found by its whole name") {
    constexpr const char* kEvents = "low 1\nhigh 2\nmax 3\noom 4\noom_kill 5\noom_group_kill 6\n";
    CHECK(event_count(kEvents, "oom") == 4);
    CHECK(event_count(kEvents, "oom_kill") == 5);
    CHECK(event_count(kEvents, "oom_group_kill") == 6);
    CHECK(event_count(kEvents, "oom_") == 0);
    CHECK(event_count("", "oom") == 0);
}

TEST_CASE("oom: kills, whose limit it was, and how much it is") {
    const OomCount own = counted("max 3\noom 1\noom_kill 2\n", "4096\n");
    CHECK(own.kills == 2);
    CHECK(own.at_limit);
    CHECK(own.limit == 4096);
    const OomCount above = counted("max 0\noom 0\noom_kill 1\n", "max\n");
    CHECK(above.kills == 1);
    CHECK_FALSE(above.at_limit);
    CHECK(above.limit == 0);
    CHECK(count_oom({}).kills == 0);  // no group
}
