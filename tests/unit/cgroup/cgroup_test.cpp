// Cgroup: controllers missing (on made-up trees), and real groups with their limits, filters and refusals.
#include "cgroup/cgroup.hpp"

#include <linux/capability.h>
#include <sys/mman.h>
#include <sys/sysmacros.h>

#include <filesystem>
#include <optional>

#include "real_group.hpp"
#include "support/temp_dir.hpp"
#include "support/testing.hpp"

using namespace pinfold;
using namespace pinfold::testing;

namespace {

void write_text(const std::string& path, std::string_view text) {
    const UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
    REQUIRE(write_once(fd.get(), text, path));
}

std::string read_text(const std::string& path) {
    const auto text = read_file(path);
    REQUIRE(text);
    return *text;
}

CgroupPlan limited_plan(const std::string& mount) {
    CgroupPlan plan;
    plan.place.mount = mount;
    plan.place.path = "/pinfold/web";
    plan.controllers = {"memory", "cpu", "pids"};
    plan.writes = {{"memory.max", "4096", "linux.resources.memory.limit"},
                   {"memory.low", "4096", "linux.resources.memory.reservation"},
                   {"cpu.weight", "1", "linux.resources.cpu.shares"},
                   {"pids.max", "1", "linux.resources.pids.limit"}};
    return plan;
}

size_t entries(const std::string& directory) {
    return size_t(std::distance(std::filesystem::directory_iterator(directory), {}));
}

// What open() answers in the group: 0 or an errno.
int open_in(int group, const std::string& path, int flags) {
    return outcome(spawn_in(group, [&] {
        const UniqueFd fd(::open(path.c_str(), flags | O_CLOEXEC));
        return fd ? 0 : errno;
    }));
}

void drop_capabilities() {
    __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
    __user_cap_data_struct none[2] = {};
    ::syscall(SYS_capset, &header, none);
}

}  // namespace

TEST_CASE("cgroup: a missing controller is named before anything is made") {
    const TempDir tree;
    write_text(tree.file("cgroup.controllers"), "cpuset cpu io\n");
    const auto group = Cgroup::create(limited_plan(tree.path()));
    REQUIRE_FALSE(group.has_value());
    CHECK(group.error().message ==
          concat("linux.resources.memory.limit, linux.resources.memory.reservation, linux.resources.pids.limit: this "
                 "host's cgroup v2 at ",
                 tree.path(), " has no 'memory', 'pids' controllers"));
    CHECK(group.error().hint.find("v1") == std::string::npos);
    CHECK(entries(tree.path()) == 1);
}

TEST_CASE("cgroup: on a hybrid host the hint says where the controllers are") {
    const TempDir tree;
    write_text(tree.file("cgroup.controllers"), "memory cpu\n");
    CgroupPlan plan = limited_plan(tree.path());
    plan.hybrid = true;
    const auto group = Cgroup::create(plan);
    REQUIRE_FALSE(group.has_value());
    CHECK(group.error().message.ends_with(" has no 'pids' controller"));
    CHECK(group.error().hint.find("systemd.unified_cgroup_hierarchy=1") != std::string::npos);
}

TEST_CASE("cgroup: controllers are passed on where they are missing, and only there") {
    const TempDir tree;  // no kernel behind it, so the files show what was written
    write_text(tree.file("cgroup.controllers"), "memory cpu pids\n");
    write_text(tree.file("cgroup.subtree_control"), "pids memory\n");
    std::filesystem::create_directory(tree.file("pinfold"));
    write_text(tree.file("pinfold/cgroup.subtree_control"), "cpu memory pids\n");
    CHECK_FALSE(Cgroup::create(limited_plan(tree.path())).has_value());  // for want of cgroup.events
    CHECK(read_text(tree.file("cgroup.subtree_control")).starts_with("+cpu"));
    CHECK(read_text(tree.file("pinfold/cgroup.subtree_control")) == "cpu memory pids\n");
}

TEST_CASE("cgroup: what fails half-way leaves nothing") {
    const TempDir tree;
    write_text(tree.file("cgroup.controllers"), "\n");
    CgroupPlan plan;
    plan.place.mount = tree.path();
    plan.place.path = "/pinfold/deep/web";
    const auto group = Cgroup::create(plan);
    REQUIRE_FALSE(group.has_value());
    CHECK(group.error().message.starts_with(concat("cgroup ", tree.path(), "/pinfold/deep/web: open cgroup.events: ")));
    CHECK(entries(tree.path()) == 1);

    plan.place.path = "/pinfold/" + std::string(300, 'x');
    CHECK_FALSE(Cgroup::create(plan).has_value());
    CHECK(entries(tree.path()) == 1);
}

TEST_CASE("cgroup: no plan, no group") {
    const auto group = Cgroup::create(CgroupPlan{});
    REQUIRE(group);
    CHECK(group->fd() == -1);
}

TEST_CASE("cgroup: a child is born into the group, which goes with its owner") {
    RealGroup place;
    if (!place.usable()) SKIP_TEST(place.why_not());
    std::optional<Cgroup> group;
    {
        auto made = Cgroup::create(place.plan());
        REQUIRE_MESSAGE(made, (made ? "" : made.error().message));
        group = std::move(*made);
    }
    const pid_t child = settle_in(group->fd());
    REQUIRE(child > 0);
    CHECK(read_text(place.file("web/cgroup.procs")) == concat(child, '\n'));
    group.reset();
    CHECK(outcome(child) == -SIGKILL);
    CHECK_FALSE(place.exists("/web"));
}

TEST_CASE("cgroup: commit lets it stay, moving hands it over, a forked copy does nothing") {
    RealGroup place;
    if (!place.usable()) SKIP_TEST(place.why_not());
    auto first = Cgroup::create(place.plan("/first"));
    auto second = Cgroup::create(place.plan("/second"));
    REQUIRE(first);
    REQUIRE(second);

    std::optional<Cgroup> owner(std::move(*first));
    CHECK(first->fd() == -1);
    *owner = std::move(*second);  // the first is nobody's now
    CHECK_FALSE(place.exists("/first"));
    CHECK(place.exists("/second"));

    const pid_t copy = ::fork();
    if (copy == 0) {
        owner.reset();
        ::_exit(0);
    }
    CHECK(outcome(copy) == 0);
    CHECK(place.exists("/second"));

    owner->commit();
    owner.reset();
    CHECK(place.exists("/second"));
}

TEST_CASE("cgroup: a group with processes is refused and left alone") {
    RealGroup place;
    if (!place.usable()) SKIP_TEST(place.why_not());
    REQUIRE(place.make());
    REQUIRE(place.make("/web"));
    REQUIRE(place.make("/web/below"));
    const pid_t stranger = settle_in(place.open("/web/below").get());
    REQUIRE(stranger > 0);
    const auto group = Cgroup::create(place.plan());
    REQUIRE_FALSE(group.has_value());
    CHECK(group.error().message ==
          concat("cgroup ", place.host().mount, place.path(), "/web: already holds processes"));
    CHECK(::kill(stranger, 0) == 0);
    ::kill(stranger, SIGKILL);
    CHECK(outcome(stranger) == -SIGKILL);
    CHECK(place.exists("/web/below"));
}

TEST_CASE("cgroup: an empty group that was there before is used, and is not removed on failure") {
    RealGroup place;
    if (!place.usable()) SKIP_TEST(place.why_not());
    REQUIRE(place.make());
    REQUIRE(place.make("/web"));
    CgroupPlan plan = place.plan();
    plan.writes = {{"cgroup.max.depth", "nonsense", "linux.resources.unified.cgroup.max.depth"}};
    CHECK_FALSE(Cgroup::create(plan).has_value());
    CHECK(place.exists("/web"));
    plan.writes.clear();
    CHECK(Cgroup::create(plan).has_value());
    CHECK(place.exists("/web"));
}

TEST_CASE("cgroup: a frozen group is refused, be it frozen itself or from above") {
    RealGroup place;
    if (!place.usable()) SKIP_TEST(place.why_not());
    REQUIRE(place.make());
    REQUIRE(place.make("/web"));
    if (::access(place.file("cgroup.freeze").c_str(), W_OK) != 0) SKIP_TEST("no freezer before Linux 5.2");
    write_text(place.file("web/cgroup.freeze"), "1");
    const auto itself = Cgroup::create(place.plan());
    REQUIRE_FALSE(itself.has_value());
    CHECK(itself.error().message.find("/web: is frozen") != std::string::npos);

    write_text(place.file("cgroup.freeze"), "1");
    CHECK_FALSE(Cgroup::create(place.plan("/new")).has_value());
    CHECK_FALSE(place.exists("/new"));
    write_text(place.file("cgroup.freeze"), "0");
}

TEST_CASE("cgroup: limits are written; a refused one is named with file and value, and the group is gone") {
    RealGroup place;
    if (!place.usable()) SKIP_TEST(place.why_not());
    CgroupPlan plan = place.plan();
    plan.writes = {{"cgroup.max.depth", "3", "linux.resources.unified.cgroup.max.depth"}};
    {
        const auto group = Cgroup::create(plan);
        REQUIRE(group);
        CHECK(read_text(place.file("web/cgroup.max.depth")) == "3\n");
    }
    plan.writes.push_back({"cgroup.max.descendants", "lots", "linux.resources.unified.cgroup.max.descendants"});
    const auto group = Cgroup::create(plan);
    REQUIRE_FALSE(group.has_value());
    CHECK(group.error().message == concat("cgroup ", place.host().mount, place.path(),
                                          "/web: linux.resources.unified.cgroup.max.descendants: "
                                          "write 'lots' to cgroup.max.descendants: invalid argument (EINVAL)"));
    CHECK_FALSE(place.exists("/web"));
}

TEST_CASE("cgroup: devices are filtered from the first moment") {
    RealGroup place;
    if (!place.usable()) SKIP_TEST(place.why_not());
    const TempDir nodes;
    const std::string kmsg = nodes.file("kmsg");
    REQUIRE(::mknod(kmsg.c_str(), S_IFCHR | 0600, makedev(1, 11)) == 0);
    if (!UniqueFd(::open(kmsg.c_str(), O_RDONLY | O_CLOEXEC))) SKIP_TEST("the kernel's log cannot be opened here");

    CgroupPlan plan = place.plan();
    plan.filter_devices = true;
    {
        const auto group = Cgroup::create(plan);
        REQUIRE_MESSAGE(group, (group ? "" : group.error().message));
        CHECK(open_in(group->fd(), kmsg, O_RDONLY) == EPERM);
        CHECK(open_in(group->fd(), "/dev/null", O_RDWR) == 0);
        CHECK(open_in(group->fd(), "/dev/full", O_RDWR) == 0);
        CHECK(outcome(spawn_in(group->fd(), [&] {
                  return ::mknod(nodes.file("made").c_str(), S_IFCHR | 0600, makedev(1, 11)) == 0 ? 0 : errno;
              })) == 0);
    }
    plan.device_rules = {{true, 'c', 1, 11, "r"}};
    const auto group = Cgroup::create(plan);
    REQUIRE(group);
    CHECK(open_in(group->fd(), kmsg, O_RDONLY) == 0);
    CHECK(open_in(group->fd(), kmsg, O_RDWR) == EPERM);
}

TEST_CASE("cgroup: who may not load a device program fails, unless the plan says that it may fail") {
    RealGroup place;
    if (!place.usable()) SKIP_TEST(place.why_not());
    REQUIRE(place.make());
    CgroupPlan plan = place.plan();
    plan.filter_devices = true;
    const auto attempt = [&](bool may_fail) {
        plan.filter_may_fail = may_fail;
        const pid_t child = ::fork();
        if (child == 0) {
            drop_capabilities();
            const auto group = Cgroup::create(plan);
            ::_exit(group ? 0 : group.error().code);
        }
        return outcome(child);
    };
    CHECK(attempt(false) == EPERM);
    CHECK_FALSE(place.exists("/web"));
    CHECK(attempt(true) == 0);
    CHECK(place.exists("/web"));  // the child left without its destructors
}

TEST_CASE("cgroup: a group above that holds processes cannot pass controllers on") {
    RealGroup place;
    if (!place.usable()) SKIP_TEST(place.why_not());
    if (!place.has_controller("hugetlb")) SKIP_TEST("no hugetlb controller below the top");
    REQUIRE(place.make());
    const pid_t stranger = settle_in(place.open().get());
    REQUIRE(stranger > 0);
    CgroupPlan plan = place.plan();
    plan.controllers = {"hugetlb"};
    plan.writes = {{"hugetlb.2MB.max", "0", "linux.resources.hugepageLimits"}};
    const auto group = Cgroup::create(plan);
    REQUIRE_FALSE(group.has_value());
    CHECK(group.error().message == concat("linux.resources.hugepageLimits: cgroup ", place.host().mount, place.path(),
                                          " holds processes, so it cannot pass 'hugetlb' on to groups below it"));
    CHECK_FALSE(place.exists("/web"));
    ::kill(stranger, SIGKILL);
    CHECK(outcome(stranger) == -SIGKILL);

    const auto later = Cgroup::create(plan);
    REQUIRE_MESSAGE(later, (later ? "" : later.error().message));
    CHECK(read_text(place.file("web/hugetlb.2MB.max")) == "0\n");
}

TEST_CASE("cgroup: a memory limit kills what exceeds it") {
    RealGroup place;
    if (!place.usable()) SKIP_TEST(place.why_not());
    if (!place.has_controller("memory")) SKIP_TEST("no memory controller below the top");
    Linux config;
    config.resources.memory.limit = 16 << 20;
    config.resources.memory.swap = 16 << 20;
    config.cgroups_path = place.path() + "/web";
    const auto plan = plan_cgroup(config, "web", place.host(), CgroupManager::cgroupfs, false);
    REQUIRE(plan);
    const auto group = Cgroup::create(*plan);
    REQUIRE_MESSAGE(group, (group ? "" : group.error().message));
    const auto eat = [](size_t size) {
        return [size] {
            void* memory = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
            for (size_t at = 0; at < size; at += 4096) static_cast<volatile char*>(memory)[at] = 1;
            return 0;
        };
    };
    CHECK(outcome(spawn_in(group->fd(), eat(4 << 20))) == 0);
    CHECK(outcome(spawn_in(group->fd(), eat(64 << 20))) == -SIGKILL);
}

TEST_CASE("cgroup: a process limit stops forks") {
    RealGroup place;
    if (!place.usable()) SKIP_TEST(place.why_not());
    if (!place.has_controller("pids")) SKIP_TEST("no pids controller below the top");
    Linux config;
    config.resources.pids_limit = 5;
    config.cgroups_path = place.path() + "/web";
    const auto plan = plan_cgroup(config, "web", place.host(), CgroupManager::cgroupfs, false);
    REQUIRE(plan);
    const auto group = Cgroup::create(*plan);
    REQUIRE_MESSAGE(group, (group ? "" : group.error().message));
    CHECK(outcome(spawn_in(group->fd(), [] {
              for (int forks = 0; forks < 20; ++forks) {
                  const pid_t child = ::fork();
                  if (child == 0)
                      for (;;) ::pause();
                  if (child < 0) return errno == EAGAIN ? forks : 100;
              }
              return 101;
          })) == 4);
}

TEST_CASE("cgroup: a cpu limit and a weight are in force") {
    RealGroup place;
    if (!place.usable()) SKIP_TEST(place.why_not());
    if (!place.has_controller("cpu")) SKIP_TEST("no cpu controller below the top");
    Linux config;
    config.resources.cpu.shares = 512;
    config.resources.cpu.quota = 20000;
    config.cgroups_path = place.path() + "/web";
    const auto plan = plan_cgroup(config, "web", place.host(), CgroupManager::cgroupfs, false);
    REQUIRE(plan);
    const auto group = Cgroup::create(*plan);
    REQUIRE_MESSAGE(group, (group ? "" : group.error().message));
    CHECK(read_text(place.file("web/cpu.max")) == "20000 100000\n");
    CHECK(read_text(place.file("web/cpu.weight")) == "59\n");
}
