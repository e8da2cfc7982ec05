// plan_cgroup: where the group goes, what it needs, and when there is none.
#include "cgroup/plan.hpp"

#include "base/strings.hpp"
#include "cgroup/device_program.hpp"
#include "device_eval.hpp"
#include "support/testing.hpp"

using namespace pinfold;
using pinfold::testing::device_allowed;

namespace {

const CgroupHost kHost{"/sys/fs/cgroup", false, true};
const CgroupHost kNowhere{"", false, false};
const CgroupHost kReadOnly{"/sys/fs/cgroup", false, false};

Result<CgroupPlan> plan_for(const Linux& config, const CgroupHost& host = kHost,
                            CgroupManager manager = CgroupManager::cgroupfs, bool rootless = false) {
    return plan_cgroup(config, "web", host, manager, rootless);
}

std::string path_for(const std::string& cgroups_path) {
    Linux config;
    config.cgroups_path = cgroups_path;
    const auto plan = plan_for(config);
    return plan ? plan->place.path : concat("error: ", plan.error().message);
}

Linux with_limits() {
    Linux config;
    config.resources.memory.limit = 67108864;
    config.resources.cpu.shares = 512;
    config.resources.pids_limit = 20;
    return config;
}

}  // namespace

TEST_CASE("plan: a normal user's groups lie below what was delegated to it") {
    CgroupHost host;
    host.mount = "/sys/fs/cgroup";
    host.home = "/user.slice/app";
    Linux config;
    config.resources.pids_limit = 5;
    const auto plan = [&] { return plan_cgroup(config, "web", host, CgroupManager::cgroupfs, true); };
    CHECK(plan()->place.path == "/user.slice/app/pinfold/web");
    config.cgroups_path = "here";
    CHECK(plan()->place.path == "/user.slice/app/pinfold/here");
    config.cgroups_path = "/user.slice/app/there";
    CHECK(plan()->place.path == "/user.slice/app/there");
    config.cgroups_path = "/elsewhere";
    REQUIRE_FALSE(plan().has_value());
    CHECK(plan().error().message.find(
              "linux.resources.pids.limit: needs cgroups, but linux.cgroupsPath '/elsewhere'") == 0);
    config.resources.pids_limit.reset();
    CHECK_FALSE(plan()->place.exists());
}

TEST_CASE("plan: the group's place") {
    CHECK(path_for("") == "/pinfold/web");
    CHECK(path_for("/docker/7515") == "/docker/7515");
    CHECK(path_for("//docker/./7515/") == "/docker/7515");
    CHECK(path_for("mine/a") == "/pinfold/mine/a");
    CHECK(path_for("system.slice:docker:7fde") == "/pinfold/system.slice:docker:7fde");
    CHECK(path_for("/") == "error: linux.cgroupsPath: cgroup path '/': is the top, which is the host's");
    CHECK(path_for("/a/../b") == "error: linux.cgroupsPath: cgroup path '/a/../b': leads elsewhere by '..'");
    CHECK(path_for("../b").starts_with("error: linux.cgroupsPath: "));
    CHECK(path_for(std::string("/a/x\0y", 6)).starts_with("error: linux.cgroupsPath: "));
}

TEST_CASE("plan: nothing asked") {
    const auto plan = plan_for({});
    REQUIRE(plan);
    CHECK(plan->place.exists());
    CHECK(plan->place.mount == "/sys/fs/cgroup");
    CHECK(plan->controllers.empty());
    CHECK(plan->writes.empty());
    CHECK(plan->filter_devices);
    CHECK_FALSE(plan->filter_may_fail);
}

TEST_CASE("plan: limits and their controllers, each once") {
    Linux config = with_limits();
    config.resources.cpu.quota = 50000;
    config.resources.memory.swap = 134217728;
    config.resources.unified = {{"cgroup.max.depth", "3"}};
    const auto plan = plan_for(config);
    REQUIRE(plan);
    CHECK(plan->controllers == std::vector<std::string>{"memory", "cpu", "pids"});
    REQUIRE(plan->writes.size() == 6);
    CHECK(plan->writes[0].file == "memory.max");
    CHECK(plan->writes[0].value == "67108864");
    CHECK(plan->writes[0].property == "linux.resources.memory.limit");
    CHECK(plan->writes[5].property == "linux.resources.unified.cgroup.max.depth");
}

TEST_CASE("plan: what is unlimited needs no controller") {
    Linux config;
    config.resources.memory.limit = -1;
    config.resources.memory.swap = -1;
    config.resources.pids_limit = -1;
    config.resources.cpu.quota = -1;
    config.resources.cpu.period = 100000;
    const auto plan = plan_for(config);
    REQUIRE(plan);
    CHECK(plan->writes.empty());
    CHECK(plan->controllers.empty());
    CHECK(plan_for(config, kNowhere, CgroupManager::disabled).has_value());
}

TEST_CASE("plan: contradictions are passed on") {
    Linux config;
    config.resources.memory.limit = 200;
    config.resources.memory.swap = 100;
    const auto plan = plan_for(config);
    REQUIRE_FALSE(plan.has_value());
    CHECK(plan.error().message.starts_with("linux.resources.memory.swap: "));
}

TEST_CASE("plan: the disabled manager makes no group, and refuses every limit by name") {
    const auto without = plan_for({}, kHost, CgroupManager::disabled);
    REQUIRE(without);
    CHECK_FALSE(without->place.exists());
    CHECK_FALSE(without->filter_devices);

    const auto with = plan_for(with_limits(), kHost, CgroupManager::disabled);
    REQUIRE_FALSE(with.has_value());
    CHECK(with.error().message ==
          "linux.resources.memory.limit, linux.resources.cpu.shares, linux.resources.pids.limit: needs cgroups, but "
          "--cgroup-manager disabled was asked for");
    CHECK_FALSE(with.error().hint.empty());
}

TEST_CASE("plan: hosts where no group can be made") {
    for (const CgroupHost& host : {kNowhere, kReadOnly}) {
        CAPTURE(host.mount);
        const auto rootless = plan_for({}, host, CgroupManager::cgroupfs, true);
        REQUIRE(rootless);
        CHECK_FALSE(rootless->place.exists());

        const auto limited = plan_for(with_limits(), host, CgroupManager::cgroupfs, true);
        REQUIRE_FALSE(limited.has_value());
        CHECK(limited.error().message.find("linux.resources.memory.limit") != std::string::npos);
        CHECK(limited.error().message.find("/sys/fs/cgroup") != std::string::npos);
        CHECK_FALSE(limited.error().hint.empty());

        // Root's payload could open any device: that is not passed over.
        const auto root = plan_for({}, host);
        REQUIRE_FALSE(root.has_value());
        CHECK(root.error().message.starts_with("linux.resources.devices: "));
        CHECK(plan_for({}, host, CgroupManager::disabled).has_value());
    }
}

TEST_CASE("plan: making a node does not allow its use, a rule does") {
    Linux config;
    config.devices = {{"/dev/fuse", 'c', 10, 229, {}, {}, {}}};
    config.resources.devices = {{false, 'a', {}, {}, "rwm"}, {true, 'c', 10, 229, "r"}};
    const auto plan = plan_for(config);
    REQUIRE(plan);
    const auto program = device_program(plan->device_rules);
    CHECK(device_allowed(program, {'c', 10, 229, "r"}));
    CHECK_FALSE(device_allowed(program, {'c', 10, 229, "rw"}));
    CHECK_FALSE(device_allowed(program, {'c', 10, 1, "r"}));
}

TEST_CASE("plan: a privileged container needs no device program") {
    Linux config;
    config.resources.devices = {{true, 'a', {}, {}, "rwm"}};
    const auto plan = plan_for(config);
    REQUIRE(plan);
    CHECK(plan->place.exists());
    CHECK_FALSE(plan->filter_devices);
}

TEST_CASE("plan: in a user namespace the device program may fail") {
    const auto plan = plan_for({}, kHost, CgroupManager::cgroupfs, true);
    REQUIRE(plan);
    CHECK(plan->filter_devices);
    CHECK(plan->filter_may_fail);
}

TEST_CASE("plan: a hybrid host has groups in cgroup v1 only for those who use them") {
    CgroupHost host{"/sys/fs/cgroup/unified", true, true, {{"memory", "/v1/memory"}, {"pids", "/v1/pids"}}, "cpu\n"};
    const auto none = plan_for({}, host);
    REQUIRE(none);
    CHECK(none->place.mount == host.mount);
    CHECK(none->place.v1.empty());

    const auto limited = plan_for(with_limits(), host);
    REQUIRE(limited);
    CHECK(limited->place.v1 == host.v1);
    CHECK(limited->controllers == std::vector<std::string>{"cpu"});
    CHECK(properties_of(limited->v1_writes) == "linux.resources.memory.limit, linux.resources.pids.limit");
    CHECK(limited->filter_devices);
    CHECK(limited->device_writes.empty());

    Linux named;
    named.cgroups_path = "/docker/1";
    CHECK(plan_for(named, host)->place.v1 == host.v1);
    CHECK_FALSE(plan_for({}, host, CgroupManager::disabled)->place.exists());
    CHECK_FALSE(plan_for(with_limits(), host, CgroupManager::disabled).has_value());

    host.v1.erase("pids");  // cgroup v2 is then asked for it, and refuses when the group is made
    CHECK(plan_for(with_limits(), host)->controllers == std::vector<std::string>{"cpu", "pids"});
}

TEST_CASE("plan: a host with cgroup v1 alone") {
    const CgroupHost host{"", false, true, {{"memory", "/v1/memory"}, {"cpu", "/v1/cpu"}, {"devices", "/v1/devices"}}};
    const auto plan = plan_for({}, host);
    REQUIRE(plan);
    CHECK(plan->place.exists());
    CHECK(plan->place.mount.empty());
    CHECK(plan->place.v1 == host.v1);
    CHECK_FALSE(plan->filter_devices);
    REQUIRE_FALSE(plan->device_writes.empty());
    CHECK(plan->device_writes[0].file == "devices.deny");

    const auto limited = plan_for(with_limits(), host);
    REQUIRE_FALSE(limited.has_value());
    CHECK(limited.error().message ==
          "linux.resources.pids.limit: no cgroup v1 hierarchy with 'pids' is mounted below /sys/fs/cgroup");

    CgroupHost without = host;
    without.v1.erase("devices");
    CHECK_FALSE(plan_for({}, without).has_value());
    Linux privileged;
    privileged.resources.devices = {{true, 'a', {}, {}, "rwm"}};
    CHECK(plan_for(privileged, without)->device_writes.empty());
}
