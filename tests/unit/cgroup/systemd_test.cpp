// Scopes as they are planned: names, places, properties; and what is known of systemd on this host.
#include "cgroup/systemd.hpp"
#include <unistd.h>

#include <algorithm>

#include "base/strings.hpp"
#include "cgroup/control_files.hpp"
#include "cgroup/plan.hpp"
#include "support/testing.hpp"

using namespace pinfold;

namespace {

// "SLICE UNIT PATH", or the error.
std::string named(const std::string& cgroups_path, const std::string& id = "web") {
    const auto name = parse_scope_name(cgroups_path, id, "system.slice");
    if (!name) return concat("error: ", name.error().message);
    return concat(name->slice, " ", name->unit, " ", scope_path(*name));
}

std::vector<std::string> properties_for(const std::string& file, const std::string& value) {
    return limit_properties({{file, value, ""}});
}

bool has(const std::vector<std::string>& list, const std::string& item) {
    return std::find(list.begin(), list.end(), item) != list.end();
}

CgroupHost host_with_systemd(bool user = false) {
    CgroupHost host{"/sys/fs/cgroup", false, !user};
    host.systemd = {true, user, user ? user_manager_top("", 1000) : ""};
    return host;
}

Result<CgroupPlan> plan_for(const Linux& config, const CgroupHost& host = host_with_systemd()) {
    return plan_cgroup(config, "web", host, CgroupManager::systemd, host.systemd.user);
}

}  // namespace

TEST_CASE("scope: names and their places") {
    CHECK(named("") == "system.slice pinfold-web.scope /system.slice/pinfold-web.scope");
    CHECK(named("system.slice:docker:7fde") == "system.slice docker-7fde.scope /system.slice/docker-7fde.scope");
    CHECK(named(":docker:7fde") == "system.slice docker-7fde.scope /system.slice/docker-7fde.scope");
    CHECK(named("machine.slice::web") == "machine.slice web.scope /machine.slice/web.scope");
    CHECK(named("a-b-c.slice:p:n") == "a-b-c.slice p-n.scope /a.slice/a-b.slice/a-b-c.slice/p-n.scope");
    CHECK(named("-.slice:p:n") == "-.slice p-n.scope /p-n.scope");
    CHECK(named("", "a+b") == "system.slice pinfold-a\\x2bb.scope /system.slice/pinfold-a\\x2bb.scope");
}

TEST_CASE("scope: what is no name") {
    for (const char* path : {"/a/b", "a:b", "a", "a.slice:b:c:d", "system.slice:docker:", "/system.slice:a:b"}) {
        CAPTURE(path);
        CHECK(named(path).find("is not SLICE:PREFIX:NAME") != std::string::npos);
    }
    for (const char* slice : {"system", ".slice", "-a.slice", "a-.slice", "a--b.slice", "a/b.slice", "../a.slice"}) {
        CAPTURE(slice);
        CHECK(named(concat(slice, ":p:n")).starts_with("error: "));
    }
    CHECK(named("system.slice:p:n.slice").find("is a slice") != std::string::npos);
    for (const char* name : {"a b", "a/b", "..//x", "a\nb"}) CHECK(named(concat(":p:", name)).starts_with("error: "));
    CHECK(named(concat(":p:", std::string(246, 'x'))).ends_with(".scope"));
    CHECK(named(concat(":p:", std::string(250, 'x'))).starts_with("error: "));
}

TEST_CASE("scope: limits that systemd knows, in its words") {
    using List = std::vector<std::string>;
    CHECK(properties_for("memory.max", "67108864") == List{"MemoryMax=67108864"});
    CHECK(properties_for("memory.max", "max") == List{"MemoryMax=infinity"});
    CHECK(properties_for("memory.low", "1") == List{"MemoryLow=1"});
    CHECK(properties_for("memory.swap.max", "0") == List{"MemorySwapMax=0"});
    CHECK(properties_for("pids.max", "20") == List{"TasksMax=20"});
    CHECK(properties_for("cpu.weight", "39") == List{"CPUWeight=39"});
    CHECK(properties_for("cpuset.cpus", "0-1,3") == List{"AllowedCPUs=0-1,3"});
    CHECK(properties_for("cpuset.mems", "0") == List{"AllowedMemoryNodes=0"});
    CHECK(properties_for("io.weight", "default 500") == List{"IOWeight=500"});
    CHECK(properties_for("io.weight", "8:0 500").empty());
    CHECK(properties_for("cpu.max", "50000 100000") == List{"CPUQuotaPerSecUSec=500000", "CPUQuotaPeriodUSec=100000"});
    // In whole per cents, and never less than was asked for.
    CHECK(properties_for("cpu.max", "12345 100000")[0] == "CPUQuotaPerSecUSec=130000");
    CHECK(properties_for("cpu.max", "max 100000") == List{"CPUQuotaPerSecUSec=infinity", "CPUQuotaPeriodUSec=100000"});
    CHECK(properties_for("cpu.max", "max 0").empty());
    CHECK(properties_for("io.max", "8:0 rbps=1").empty());
}

TEST_CASE("scope: a plan has the unit, its place and its properties") {
    if (!has_scope_program()) SKIP_TEST("built without libsystemd");
    Linux config;
    config.cgroups_path = "system.slice:docker:7fde";
    config.resources.pids_limit = 20;
    config.resources.cpu.burst = 1000;
    const auto plan = plan_for(config);
    REQUIRE(plan);
    CHECK(plan->place.scope == "docker-7fde.scope");
    CHECK(plan->place.path == "/system.slice/docker-7fde.scope");
    CHECK(plan->writes.size() == 2);
    CHECK(has(plan->scope_properties, "Slice=system.slice"));
    CHECK(has(plan->scope_properties, "Delegate=yes"));
    CHECK(has(plan->scope_properties, "TasksMax=20"));
    CHECK_FALSE(has(plan->scope_properties, "TasksMax=infinity"));

    const auto unlimited = plan_for({});
    REQUIRE(unlimited);
    CHECK(has(unlimited->scope_properties, "TasksMax=infinity"));
    CHECK(has(unlimited->scope_properties, "Description=pinfold container web"));
}

TEST_CASE("scope: a normal user's lies below its own manager, which need not be writable at the top") {
    if (!has_scope_program()) SKIP_TEST("built without libsystemd");
    const auto plan = plan_for({}, host_with_systemd(true));
    REQUIRE(plan);
    CHECK(plan->place.path == "/user.slice/user-1000.slice/user@1000.service/user.slice/pinfold-web.scope");
}

TEST_CASE("scope: hosts without one") {
    if (!has_scope_program()) SKIP_TEST("built without libsystemd");
    CgroupHost elsewhere = host_with_systemd();
    elsewhere.systemd.running = false;
    CgroupHost v1_only = host_with_systemd();
    v1_only.mount.clear();
    for (const auto& [host, why] : {std::pair(elsewhere, "systemd does not run"), std::pair(v1_only, "cgroup v2")}) {
        Linux config;
        config.resources.pids_limit = 20;
        const auto plan = plan_for(config, host);
        REQUIRE_FALSE(plan.has_value());
        CHECK(plan.error().message.find("linux.resources.pids.limit") != std::string::npos);
        CHECK(plan.error().message.find(why) != std::string::npos);
        CHECK(plan.error().hint.find("cgroupfs") != std::string::npos);
    }
}

TEST_CASE("scope: limits are for cgroup v2 to hold, whatever v1 has beside it") {
    if (!has_scope_program()) SKIP_TEST("built without libsystemd");
    CgroupHost hybrid = host_with_systemd();
    hybrid.hybrid = true;
    hybrid.v1 = {{"pids", "/sys/fs/cgroup/pids"}};
    Linux config;
    config.resources.pids_limit = 20;
    const auto plan = plan_for(config, hybrid);
    REQUIRE(plan);
    CHECK(plan->place.v1.empty());
    CHECK(plan->v1_writes.empty());
    CHECK(plan->controllers == std::vector<std::string>{"pids"});
}

TEST_CASE("systemd: where managers keep their slices") {
    CHECK(system_manager_top("/init.scope").empty());
    CHECK(system_manager_top("/").empty());
    CHECK(system_manager_top("/machine.slice/box.scope/init.scope") == "/machine.slice/box.scope");
    CHECK(user_manager_top("/box", 7) == "/box/user.slice/user-7.slice/user@7.service");
}

TEST_CASE("systemd: a user's id as the host has it") {
    CHECK(uid_on_host("         0          0 4294967295\n", 1000) == 1000);
    CHECK(uid_on_host("         0       1000          1\n         1     100000      65536\n", 0) == 1000);
    CHECK(uid_on_host("         0       1000          1\n         1     100000      65536\n", 5) == 100004);
    CHECK(uid_on_host("", 3) == 3);
}

TEST_CASE("systemd: the group of a process") {
    const auto own = group_of(::getpid());
    REQUIRE(own);
    CHECK(own->starts_with("/"));
    CHECK_FALSE(group_of(0).has_value());
}
