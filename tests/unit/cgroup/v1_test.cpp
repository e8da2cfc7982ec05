// Groups in cgroup v1: on made-up trees, and for real where this machine mounts some.
#include "cgroup/v1.hpp"

#include <filesystem>
#include <fstream>
#include <set>

#include "cgroup/cgroup.hpp"
#include "cgroup/control_files.hpp"
#include "cgroup/stats.hpp"
#include "cgroup/watch.hpp"
#include "real_group.hpp"
#include "support/sleeper.hpp"
#include "support/temp_dir.hpp"
#include "support/testing.hpp"

using namespace pinfold;
using namespace pinfold::testing;
using namespace std::chrono_literals;
namespace fs = std::filesystem;

namespace {

void put(const std::string& path, const std::string& text) {
    std::ofstream file(path);
    file << text;
    REQUIRE(file.flush().good());
}

std::string get(const std::string& path) {
    const auto text = read_file(path);
    return text ? *text : "absent";
}

// Hierarchies without a kernel behind them: their files show what was written.
class MadeUpHost {
public:
    MadeUpHost() {
        for (const char* name : {"memory", "cpuset", "cpu,cpuacct"}) fs::create_directory(tree_.file(name));
        put(tree_.file("cpuset/cpuset.cpus"), "0-3\n");
        put(tree_.file("cpuset/cpuset.mems"), "0\n");
    }
    CgroupPath place() const {
        return {"",
                "/pinfold/web",
                {{"memory", tree_.file("memory")},
                 {"cpuset", tree_.file("cpuset")},
                 {"cpu", tree_.file("cpu,cpuacct")},
                 {"cpuacct", tree_.file("cpu,cpuacct")}},
                ""};
    }
    std::string file(const std::string& name) const { return tree_.file(name); }
    // As the kernel would do at once.
    void fill(const std::string& group, std::initializer_list<std::pair<const char*, const char*>> files) const {
        fs::create_directories(tree_.file(group));
        for (const auto& [name, text] : files) put(tree_.file(group + "/" + name), text);
    }
    size_t groups() const {
        size_t count = 0;
        for (const auto& entry : fs::recursive_directory_iterator(tree_.path())) count += entry.is_directory();
        return count - 3;
    }

private:
    TempDir tree_;
};

// The same path in all hierarchies of this machine, without cgroup v2; gone at the end of the scope.
class RealV1 {
public:
    RealV1() : place_{"", concat("/pinfold-test-", ::getpid()), find_cgroup_host().value().v1, ""} {}
    RealV1(const RealV1&) = delete;
    RealV1& operator=(const RealV1&) = delete;
    ~RealV1() {
        if (usable()) (void)remove_cgroup(place_).has_value();
    }

    bool usable() const { return ::geteuid() == 0 && place_.v1.contains("freezer") && place_.v1.contains("pids"); }
    const CgroupPath& place() const { return place_; }
    CgroupPlan plan() const {
        CgroupPlan plan;
        plan.place = place_;
        return plan;
    }
    std::string file(const std::string& controller, const std::string& name) const {
        return concat(place_.v1.at(controller), place_.path, '/', name);
    }
    bool any_left() const {
        for (const std::string& mount : v1_mounts(place_)) {
            if (fs::exists(mount + place_.path)) return true;
        }
        return false;
    }

private:
    CgroupPath place_;
};

constexpr const char* kNoV1 = "needs root, and cgroup v1 with freezer and pids";

// A child that stays until it is killed.
pid_t settle(const CgroupPath& place) {
    const pid_t pid = start_sleeper();
    REQUIRE(add_process(place, pid));
    return pid;
}

}  // namespace

TEST_CASE("v1 groups: one per hierarchy, with processors and memory passed down") {
    const MadeUpHost host;
    host.fill("cpuset/pinfold", {{"cpuset.cpus", "\n"}, {"cpuset.mems", "\n"}});
    host.fill("cpuset/pinfold/web", {{"cpuset.cpus", "\n"}, {"cpuset.mems", "0\n"}, {"cgroup.procs", ""}});
    CgroupPlan plan;
    plan.place = host.place();
    NewGroup group;
    const auto done = V1Groups(plan.place).make(plan, group);
    CHECK_MESSAGE(done, (done ? "" : done.error().message));
    CHECK(get(host.file("cpuset/pinfold/cpuset.cpus")) == "0-3\n");
    CHECK(get(host.file("cpuset/pinfold/web/cpuset.cpus")) == "0-3\n");
    CHECK(get(host.file("cpuset/pinfold/web/cpuset.mems")) == "0\n");
    CHECK(fs::is_directory(host.file("cpu,cpuacct/pinfold/web")));
    // The one that was there before is not ours to remove.
    CHECK(group.made.path == "/pinfold/web");
    CHECK(group.made.v1 == StringMap{{"memory", host.file("memory")},
                                     {"cpu", host.file("cpu,cpuacct")},
                                     {"cpuacct", host.file("cpu,cpuacct")}});
}

TEST_CASE("v1 groups: what fails half-way leaves nothing") {
    const MadeUpHost host;
    CgroupPlan plan;
    plan.place = host.place();
    plan.place.v1.erase("cpuset");
    plan.v1_writes = {{"memory.limit_in_bytes", "1", "linux.resources.memory.limit"}};
    const auto group = Cgroup::create(plan);
    REQUIRE_FALSE(group.has_value());
    CHECK(group.error().message.starts_with(
        "cgroup v1, group /pinfold/web: linux.resources.memory.limit: open memory.limit_in_bytes: "));
    CHECK(host.groups() == 0);
}

TEST_CASE("v1 groups: other processes and frozen groups are refused, and left") {
    const RealV1 host;
    if (!host.usable()) SKIP_TEST(kNoV1);
    for (const std::string& mount : v1_mounts(host.place())) {
        if (mount != host.place().v1.at("cpuset")) fs::create_directory(mount + host.place().path);
    }
    CgroupPath rest = host.place();
    rest.v1.erase("cpuset");
    const pid_t stranger = settle(rest);
    const auto refused = Cgroup::create(host.plan());
    REQUIRE_FALSE(refused.has_value());
    CHECK(refused.error().message.ends_with(": already holds processes"));
    CHECK(::kill(stranger, 0) == 0);
    ::kill(stranger, SIGKILL);
    CHECK(outcome(stranger) == -SIGKILL);

    put(host.file("freezer", "freezer.state"), "FROZEN");
    const auto frozen = Cgroup::create(host.plan());
    REQUIRE_FALSE(frozen.has_value());
    CHECK(frozen.error().message.find(": is frozen") != std::string::npos);
    CHECK(fs::exists(host.file("pids", "pids.max")));
    CHECK_FALSE(fs::exists(concat(host.place().v1.at("cpuset"), host.place().path)));
}

TEST_CASE("v1 groups: everything in them dies, frozen or nested, and they go") {
    const RealV1 host;
    if (!host.usable()) SKIP_TEST(kNoV1);
    auto group = Cgroup::create(host.plan());
    REQUIRE_MESSAGE(group, (group ? "" : group.error().message));
    CHECK(group->fd() == -1);
    const pid_t first = settle(host.place());
    const pid_t second = settle(host.place());
    for (const char* controller : {"freezer", "memory"}) fs::create_directories(host.file(controller, "a/b"));
    put(host.file("freezer", "a/b/cgroup.procs"), std::to_string(second));
    put(host.file("memory", "a/b/cgroup.procs"), std::to_string(second));
    CHECK(*group_processes(host.place()) == std::vector<pid_t>{first, second});
    put(host.file("freezer", "a/b/freezer.state"), "FROZEN");
    CHECK(freeze_group(host.place()).has_value());
    CHECK(is_frozen(host.place()));
    // They are our children, and so dead only to the kernel until they are awaited.
    REQUIRE(remove_cgroup(host.place()).has_value());
    CHECK_FALSE(host.any_left());
    CHECK(outcome(first) == -SIGKILL);
    CHECK(outcome(second) == -SIGKILL);
    group->commit();
}

TEST_CASE("v1 groups: what is not known to be the container's is left alone") {
    const RealV1 host;
    if (!host.usable()) SKIP_TEST(kNoV1);
    auto group = Cgroup::create(host.plan());
    REQUIRE(group);
    const pid_t pid = settle(host.place());
    CHECK_FALSE(remove_empty_cgroup(host.place()).has_value());
    CHECK(::kill(pid, 0) == 0);
    ::kill(pid, SIGKILL);
    CHECK(outcome(pid) == -SIGKILL);
    CHECK(remove_empty_cgroup(host.place()).has_value());
    CHECK_FALSE(host.any_left());
}

TEST_CASE("v1 groups: the order of writes is found, whatever was there") {
    const RealV1 host;
    if (!host.usable()) SKIP_TEST(kNoV1);
    if (!fs::exists(host.place().v1.at("memory") + "/memory.memsw.limit_in_bytes")) SKIP_TEST("no swap accounting");
    auto group = Cgroup::create(host.plan());
    REQUIRE(group);
    const auto set = [&](int64_t limit, int64_t swap, int64_t quota, uint64_t burst) {
        Resources resources;
        resources.memory.limit = limit;
        resources.memory.swap = swap;
        resources.cpu.quota = quota;
        resources.cpu.burst = burst;
        const auto updated = update_cgroup(host.place(), resources);
        CHECK_MESSAGE(updated, (updated ? "" : updated.error().message));
        CHECK(get(host.file("memory", "memory.limit_in_bytes")) == concat(limit, '\n'));
        CHECK(get(host.file("memory", "memory.memsw.limit_in_bytes")) == concat(swap, '\n'));
        CHECK(get(host.file("cpu", "cpu.cfs_burst_us")) == concat(burst, '\n'));
    };
    set(64 << 20, 128 << 20, 50000, 40000);
    set(256 << 20, 256 << 20, 90000, 80000);
    set(32 << 20, 64 << 20, 20000, 10000);
}

TEST_CASE("v1 groups: an update is all or nothing") {
    const RealV1 host;
    if (!host.usable()) SKIP_TEST(kNoV1);
    auto group = Cgroup::create(host.plan());
    REQUIRE(group);
    put(host.file("pids", "pids.max"), "77");
    put(host.file("memory", "memory.oom_control"), "0");
    Resources resources;
    resources.pids_limit = 5;
    resources.memory.limit = 64 << 20;
    resources.memory.disable_oom_killer = true;
    resources.block_io.throttle_read_bps_device = {{4095, 1048575, 1}};  // there is no such device
    const auto updated = update_cgroup(host.place(), resources);
    REQUIRE_FALSE(updated.has_value());
    CHECK(updated.error().message.find("linux.resources.blockIO.throttleReadBpsDevice[0]: ") != std::string::npos);
    CHECK(get(host.file("pids", "pids.max")) == "77\n");
    CHECK(get(host.file("memory", "memory.limit_in_bytes")).size() > 15);
    CHECK(get(host.file("memory", "memory.oom_control")).starts_with("oom_kill_disable 0\n"));
}

TEST_CASE("v1 groups: kernel memory is limited, or refused") {
    const RealV1 host;
    if (!host.usable()) SKIP_TEST(kNoV1);
    CgroupPlan plan = host.plan();
    plan.v1_writes = {{"memory.kmem.limit_in_bytes", "33554432", "linux.resources.memory.kernel"}};
    const auto group = Cgroup::create(plan);
    if (group) CHECK(get(host.file("memory", "memory.kmem.limit_in_bytes")) == "33554432\n");
    else CHECK(group.error().message.find("linux.resources.memory.kernel: ") != std::string::npos);
    if (!group) CHECK_FALSE(host.any_left());
}

TEST_CASE("v1 groups: watched until the last process has gone") {
    const RealV1 host;
    if (!host.usable()) SKIP_TEST(kNoV1);
    auto group = Cgroup::create(host.plan());
    REQUIRE(group);
    const pid_t pid = settle(host.place());
    auto watch = GroupWatch::create(host.place());
    REQUIRE_MESSAGE(watch, (watch ? "" : watch.error().message));
    CHECK(*watch->next(Deadline(0ms)) == GroupWatch::Event::none);
    CHECK(*watch->next(Deadline(20ms)) == GroupWatch::Event::none);
    ::kill(pid, SIGKILL);
    CHECK(*watch->next(Deadline(1h)) == GroupWatch::Event::empty);
    CHECK(outcome(pid) == -SIGKILL);
}

TEST_CASE("v1 groups: statistics in the callers' words") {
    const MadeUpHost host;
    host.fill("memory/pinfold/web", {{"memory.limit_in_bytes", "100\n"},
                                     {"memory.usage_in_bytes", "60\n"},
                                     {"memory.max_usage_in_bytes", "90\n"},
                                     {"memory.failcnt", "3\n"},
                                     {"memory.stat", "cache 7\nrss 8\n"},
                                     {"memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 2\n"}});
    host.fill("cpu,cpuacct/pinfold/web", {{"cpuacct.usage", "3000\n"},
                                          {"cpuacct.usage_percpu", "1000 2000 \n"},
                                          {"cpuacct.stat", "user 5\nsystem 2\n"},
                                          {"cpu.stat", "nr_periods 9\nnr_throttled 8\nthrottled_time 7\n"}});
    fs::create_directories(host.file("cpuset/pinfold/web"));
    const auto groups = V1GroupFds::open(host.place());
    REQUIRE(groups);
    const std::string stats = stats_to_json(-1, *groups);
    INFO(stats);
    const auto has = [&](const char* part) { return stats.find(part) != std::string::npos; };
    CHECK(has(R"("usage":{"total":3000,"percpu":[1000,2000],"kernel":20000000,"user":50000000})"));
    CHECK(has(R"("throttling":{"periods":9,"throttledPeriods":8,"throttledTime":7})"));
    CHECK(has(R"("memory":{"cache":7,"usage":{"limit":100,"usage":60,"max":90,"failcnt":3})"));
    CHECK(has(R"("raw":{"cache":7,"rss":8},"event_count":{"oom_kill_disable":0,"under_oom":0,"oom_kill":2})"));
}

TEST_CASE("v1 groups: figures of devices and pages") {
    const TempDir tree;
    fs::create_directories(tree.file("web"));
    put(tree.file("web/blkio.bfq.io_service_bytes_recursive"), "Total 0\n");
    put(tree.file("web/blkio.throttle.io_service_bytes_recursive"), "8:0 Read 4096\n8:0 Write 1\nTotal 4097\n");
    put(tree.file("web/hugetlb.2MB.usage_in_bytes"), "2097152\n");
    put(tree.file("web/hugetlb.2MB.rsvd.usage_in_bytes"), "1\n");
    put(tree.file("web/hugetlb.2MB.max_usage_in_bytes"), "4194304\n");
    put(tree.file("web/hugetlb.2MB.failcnt"), "3\n");
    const auto groups = V1GroupFds::open({"", "/web", {{"blkio", tree.path()}, {"hugetlb", tree.path()}}, ""});
    REQUIRE(groups);
    const std::string stats = stats_to_json(-1, *groups);
    INFO(stats);
    CHECK(stats.find(R"("ioServiceBytesRecursive":[{"major":8,"minor":0,"op":"Read","value":4096},)") !=
          std::string::npos);
    CHECK(stats.find(R"("hugetlb":{"2MB":{"usage":2097152,"max":4194304,"failcnt":3}})") != std::string::npos);
}
