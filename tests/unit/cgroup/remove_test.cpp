// remove_cgroup: empty groups, busy ones, nested ones, absent ones, and what it must never touch.
#include <sys/resource.h>

#include <atomic>
#include <thread>
#include <vector>

#include "cgroup/cgroup.hpp"
#include "real_group.hpp"
#include "support/temp_dir.hpp"
#include "support/testing.hpp"

using namespace pinfold;
using namespace pinfold::testing;

namespace {

// Nests groups by descriptors: such a path would be too long for any other way.
void nest(int top, int depth) {
    UniqueFd here(::openat(top, ".", O_PATH | O_DIRECTORY | O_CLOEXEC));
    for (int level = 0; level < depth; ++level) {
        REQUIRE(::mkdirat(here.get(), "a-name-of-some-length", 0755) == 0);
        here = UniqueFd(::openat(here.get(), "a-name-of-some-length", O_PATH | O_DIRECTORY | O_CLOEXEC));
    }
}

class FewDescriptors {
public:
    explicit FewDescriptors(rlim_t count) {
        ::getrlimit(RLIMIT_NOFILE, &before_);
        const rlimit fewer{count, before_.rlim_max};
        ::setrlimit(RLIMIT_NOFILE, &fewer);
    }
    ~FewDescriptors() { ::setrlimit(RLIMIT_NOFILE, &before_); }

private:
    rlimit before_{};
};

}  // namespace

TEST_CASE("remove: absent is removed, none is none") {
    const TempDir tree;
    CHECK(remove_cgroup({tree.path(), "/pinfold/web", {}, {}}).has_value());
    CHECK(remove_cgroup({}).has_value());
}

TEST_CASE("remove: the top and paths that lead elsewhere are refused") {
    const TempDir tree;
    for (const char* path : {"/", "//", "/.", "/..", "/a/../..", "/web/.."}) {
        CAPTURE(path);
        CHECK_FALSE(remove_cgroup({tree.path(), path, {}, {}}).has_value());
    }
    CHECK(::access(tree.path().c_str(), F_OK) == 0);
}

TEST_CASE("remove: the shared parent goes with the last group, other parents stay") {
    const TempDir tree;
    for (const char* name : {"pinfold", "pinfold/a", "pinfold/a/b", "pinfold/c", "docker", "docker/d"}) {
        REQUIRE(::mkdir(tree.file(name).c_str(), 0755) == 0);
    }
    CHECK(remove_cgroup({tree.path(), "/pinfold/a/b", {}, {}}).has_value());
    CHECK(::access(tree.file("pinfold/a").c_str(), F_OK) != 0);
    CHECK(::access(tree.file("pinfold/c").c_str(), F_OK) == 0);
    CHECK(remove_cgroup({tree.path(), "/pinfold/c", {}, {}}).has_value());
    CHECK(::access(tree.file("pinfold").c_str(), F_OK) != 0);
    CHECK(remove_cgroup({tree.path(), "/docker/d", {}, {}}).has_value());
    CHECK(::access(tree.file("docker").c_str(), F_OK) == 0);
}

TEST_CASE("remove: all that runs there dies, frozen or not, with the groups that it nested") {
    RealGroup place;
    if (!place.usable()) SKIP_TEST(place.why_not());
    for (const char* below : {"", "/a", "/a/b", "/c", "/frozen"}) REQUIRE(place.make(below));
    std::vector<pid_t> children;
    for (const char* below : {"", "/a", "/a/b", "/a/b", "/frozen"}) {
        children.push_back(settle_in(place.open(below).get()));
        REQUIRE(children.back() > 0);
    }
    (void)write_file_at(place.open("/frozen").get(), "cgroup.freeze", "1").has_value();
    const auto removed = remove_cgroup(place.at());
    CHECK_MESSAGE(removed, (removed ? "" : removed.error().message));
    CHECK_FALSE(place.exists());
    for (const pid_t child : children) CHECK(outcome(child) == -SIGKILL);
}

TEST_CASE("remove: processes that fork all the time are ended") {
    RealGroup place;
    if (!place.usable()) SKIP_TEST(place.why_not());
    REQUIRE(place.make());
    const pid_t first = spawn_in(place.open().get(), [] {
        ::signal(SIGCHLD, SIG_IGN);
        for (int generation = 0; generation < 100'000; ++generation) {  // each makes the next and leaves
            if (::fork() != 0) return 0;
        }
        return 0;
    });
    REQUIRE(first > 0);
    CHECK(outcome(first) == 0);
    const auto removed = remove_cgroup(place.at());
    CHECK_MESSAGE(removed, (removed ? "" : removed.error().message));
    CHECK_FALSE(place.exists());
}

TEST_CASE("remove: groups nested deeper than there are descriptors") {
    RealGroup place;
    if (!place.usable()) SKIP_TEST(place.why_not());
    REQUIRE(place.make());
    nest(place.open().get(), 300);
    const FewDescriptors few(32);
    const auto removed = remove_cgroup(place.at());
    CHECK_MESSAGE(removed, (removed ? "" : removed.error().message));
    CHECK_FALSE(place.exists());
}

TEST_CASE("remove: containers that come and go at once do not lose their parent") {
    RealGroup place;
    if (!place.usable()) SKIP_TEST(place.why_not());
    std::atomic<int> failures = 0;
    const auto come_and_go = [&](int number) {
        CgroupPlan plan = place.plan();
        plan.place.path = concat(kCgroupHome, "/unit-", ::getpid(), "/", number);
        for (int round = 0; round < 100; ++round) {
            if (const auto group = Cgroup::create(plan); !group) ++failures;
        }
    };
    {
        std::vector<std::jthread> threads;
        for (int number = 0; number < 4; ++number) threads.emplace_back(come_and_go, number);
    }
    CHECK(failures == 0);
    CHECK(::access(concat(place.host().mount, kCgroupHome, "/unit-", ::getpid()).c_str(), F_OK) != 0);
}
