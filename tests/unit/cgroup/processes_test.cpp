// Who is in a group: itself, the groups below, threaded ones, none.
#include "cgroup/control_files.hpp"

#include <algorithm>

#include "real_group.hpp"
#include "support/testing.hpp"

using namespace pinfold;
using namespace pinfold::testing;

namespace {

using Pids = std::vector<pid_t>;

Pids found(const RealGroup& place) {
    const auto pids = group_processes(place.at());
    REQUIRE(pids);
    return *pids;
}

void kill_all(const Pids& pids) {
    for (const pid_t pid : pids) ::kill(pid, SIGKILL);
    for (const pid_t pid : pids) CHECK(outcome(pid) == -SIGKILL);
}

}  // namespace

TEST_CASE("processes: of the group and of all groups below") {
    const RealGroup place;
    if (!place.usable()) SKIP_TEST(place.why_not());
    CHECK(found(place) == Pids{});  // absent
    REQUIRE(place.make());
    CHECK(found(place) == Pids{});  // empty
    REQUIRE(place.make("/a"));
    REQUIRE(place.make("/a/deeper"));
    REQUIRE(place.make("/b"));
    Pids settled;
    for (const char* below : {"/b", "/a/deeper", "", "/a/deeper"})
        settled.push_back(settle_in(place.open(below).get()));
    std::ranges::sort(settled);
    CHECK(found(place) == settled);
    kill_all(settled);
}

TEST_CASE("processes: more than one page of them") {
    const RealGroup place;
    if (!place.usable()) SKIP_TEST(place.why_not());
    REQUIRE(place.make());
    const UniqueFd group = place.open();
    Pids settled;
    while (settled.size() < 1200) settled.push_back(settle_in(group.get()));
    std::ranges::sort(settled);
    CHECK(found(place) == settled);
    kill_all(settled);
}

TEST_CASE("processes: a threaded group below has no list of its own") {
    const RealGroup place;
    if (!place.usable()) SKIP_TEST(place.why_not());
    REQUIRE(place.make());
    REQUIRE(place.make("/threaded"));
    REQUIRE(write_file_at(place.open("/threaded").get(), "cgroup.type", "threaded"));
    const Pids settled = {settle_in(place.open().get())};
    CHECK(found(place) == settled);
    kill_all(settled);
}
