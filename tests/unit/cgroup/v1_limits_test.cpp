// linux.resources to the control files of cgroup v1, and which limits go there.
#include "cgroup/v1_limits.hpp"

#include "translation.hpp"

using namespace pinfold;

namespace {

void check(std::initializer_list<testing::TranslationCase> cases) { testing::check_translation(v1_writes, cases); }

Resources everything() {
    Resources r;
    r.memory.limit = 1;
    r.cpu.shares = 2;
    r.cpu.cpus = "0";
    r.cpu.mems = "1";
    r.pids_limit = 3;
    r.block_io.weight = 10;
    r.hugepage_limits = {{"2MB", 4}};
    r.network.class_id = 5;
    r.network.priorities = {{"lo", 6}};
    r.rdma = {{"mlx", {7, {}}}};
    r.unified = {{"memory.high", "8"}};
    r.devices = {DeviceRule{}};
    return r;
}

// Which properties are on a side.
std::string names(const Resources& r) {
    const std::pair<bool, const char*> table[] = {{r.memory.limit.has_value(), "memory"},
                                                  {r.cpu.shares.has_value(), "cpu"},
                                                  {!r.cpu.cpus.empty() && !r.cpu.mems.empty(), "cpuset"},
                                                  {r.pids_limit.has_value(), "pids"},
                                                  {r.block_io.weight.has_value(), "io"},
                                                  {!r.hugepage_limits.empty(), "hugetlb"},
                                                  {r.network.class_id.has_value(), "class"},
                                                  {!r.network.priorities.empty(), "priorities"},
                                                  {!r.rdma.empty(), "rdma"},
                                                  {!r.unified.empty(), "unified"},
                                                  {!r.devices.empty(), "devices"}};
    std::vector<std::string> found;
    for (const auto& [there, name] : table) {
        if (there) found.emplace_back(name);
    }
    return join(found, " ");
}

const char* const kAll = "memory cpu cpuset pids io hugetlb class priorities rdma unified devices";

}  // namespace

TEST_CASE("v1 limits: nothing asked, nothing written") {
    check({{[](Resources&) {}, ""},
           {[](Resources& r) {  // zeros, as engines send them
                r.memory.limit = r.memory.swap = r.memory.reservation = r.memory.kernel = r.memory.kernel_tcp = 0;
                r.memory.disable_oom_killer = false;
                r.memory.use_hierarchy = false;
                r.cpu.shares = r.cpu.period = r.cpu.burst = r.cpu.realtime_period = 0;
                r.cpu.quota = r.cpu.realtime_runtime = r.cpu.idle = 0;
                r.block_io.weight = r.block_io.leaf_weight = 0;
                r.block_io.weight_device = {{8, 0, 0, 0}};
                r.network.class_id = 0;
            },
            ""}});
}

TEST_CASE("v1 limits: memory") {
    check({{[](Resources& r) {
                r.memory.limit = 100;
                r.memory.swap = 150;
                r.memory.reservation = 50;
            },
            "memory.limit_in_bytes=100; memory.memsw.limit_in_bytes=150; memory.soft_limit_in_bytes=50"},
           {[](Resources& r) {
                r.memory.limit = -1;
                r.memory.swap = -7;
            },
            "memory.limit_in_bytes=-1; memory.memsw.limit_in_bytes=-1"},
           {[](Resources& r) {
                r.memory.kernel = 30;
                r.memory.kernel_tcp = 20;
                r.memory.swappiness = 0;
                r.memory.disable_oom_killer = true;
                r.memory.use_hierarchy = true;
            },
            "memory.use_hierarchy=1; memory.kmem.limit_in_bytes=30; memory.kmem.tcp.limit_in_bytes=20; "
            "memory.swappiness=0; memory.oom_control=1"},
           {[](Resources& r) { r.memory.swap = 5; },
            "error: linux.resources.memory.swap: counts memory and swap together, so it needs "
            "linux.resources.memory.limit as well"},
           {[](Resources& r) { r.memory.swap = 5, r.memory.limit = 6; },
            "error: linux.resources.memory.swap: 5 is less than linux.resources.memory.limit 6, but counts memory and "
            "swap together"}});
}

TEST_CASE("v1 limits: processors and processes") {
    check({{[](Resources& r) {
                r.cpu.shares = 512;
                r.cpu.quota = 20000;
                r.cpu.period = 50000;
                r.cpu.burst = 1000;
                r.cpu.realtime_period = 1000000;
                r.cpu.realtime_runtime = 900;
                r.cpu.idle = 1;
                r.cpu.cpus = "0-1";
                r.cpu.mems = "0";
            },
            "cpu.shares=512; cpu.cfs_period_us=50000; cpu.cfs_quota_us=20000; cpu.cfs_burst_us=1000; "
            "cpu.rt_period_us=1000000; cpu.rt_runtime_us=900; cpu.idle=1; cpuset.cpus=0-1; cpuset.mems=0"},
           {[](Resources& r) { r.cpu.quota = -5; }, "cpu.cfs_quota_us=-1"},
           {[](Resources& r) { r.pids_limit = 7; }, "pids.max=7"},
           {[](Resources& r) { r.pids_limit = 0; }, "pids.max=1"},
           {[](Resources& r) { r.pids_limit = -1; }, "pids.max=max"}});
}

TEST_CASE("v1 limits: devices, pages, network") {
    check({{[](Resources& r) {
                r.block_io.weight = 500;
                r.block_io.leaf_weight = 300;
                r.block_io.weight_device = {{8, 16, 200, 100}};
            },
            "blkio.weight=500 or blkio.bfq.weight=500; blkio.leaf_weight=300; "
            "blkio.weight_device=8:16 200 or blkio.bfq.weight_device=8:16 200; blkio.leaf_weight_device=8:16 100"},
           {[](Resources& r) {
                r.block_io.throttle_read_bps_device = {{8, 0, 1}};
                r.block_io.throttle_write_bps_device = {{8, 0, 2}, {8, 16, 0}};
                r.block_io.throttle_read_iops_device = {{8, 0, 3}};
                r.block_io.throttle_write_iops_device = {{8, 0, 4}};
            },
            "blkio.throttle.read_bps_device=8:0 1; blkio.throttle.write_bps_device=8:0 2; "
            "blkio.throttle.write_bps_device=8:16 0; blkio.throttle.read_iops_device=8:0 3; "
            "blkio.throttle.write_iops_device=8:0 4"},
           {[](Resources& r) {
                r.hugepage_limits = {{"2MB", 0}};
            },
            "hugetlb.2MB.limit_in_bytes=0 or hugetlb.2MB.rsvd.limit_in_bytes=0"},
           {[](Resources& r) {
                r.network.class_id = 0x100001;
                r.network.priorities = {{"eth0", 5}, {"lo", 0}};
                r.rdma = {{"mlx5_1", {3, 10000}}};
            },
            "net_cls.classid=1048577; net_prio.ifpriomap=eth0 5; net_prio.ifpriomap=lo 0; "
            "rdma.max=mlx5_1 hca_handle=3 hca_object=10000"},
           {[](Resources& r) {
                r.unified = {{"memory.high", "1"}};
            },
            "error: linux.resources.unified.memory.high: needs cgroup v2, and this host mounts only v1"}});
}

TEST_CASE("v1 limits: each goes where its controller is") {
    CgroupHost host;
    host.mount = "/v2";
    CHECK(names(divide_resources(everything(), host).v2) == kAll);

    host.controllers = "hugetlb memory\n";
    host.v1 = {{"memory", "/m"}, {"cpuset", "/c"}, {"net_cls", "/n"}, {"blkio", "/b"}};
    const DividedResources hybrid = divide_resources(everything(), host);
    CHECK(names(hybrid.v1) == "cpuset io class");
    CHECK(names(hybrid.v2) == "memory cpu pids hugetlb priorities rdma unified devices");

    host.mount.clear();
    CHECK(names(divide_resources(everything(), host).v1) == kAll);
    host.v1.clear();
    CHECK(names(divide_resources(everything(), host).v2) == kAll);
}

TEST_CASE("v1 limits: a controller that is nowhere is named") {
    const auto writes = v1_writes([] {
        Resources resources;
        resources.network.class_id = 1;
        resources.rdma = {{"mlx", {1, {}}}};
        return resources;
    }());
    REQUIRE(writes);
    const StringMap all = {{"net_cls", "/n"}, {"rdma", "/r"}};
    CHECK(check_v1_controllers(*writes, all).has_value());
    const auto checked = check_v1_controllers(*writes, {{"memory", "/m"}});
    REQUIRE_FALSE(checked.has_value());
    CHECK(checked.error().message ==
          "linux.resources.network.classID, linux.resources.rdma.mlx: no cgroup v1 hierarchy with 'net_cls', 'rdma' is "
          "mounted below /sys/fs/cgroup");
    CHECK(checked.error().hint.find("mount -t cgroup -o net_cls") != std::string::npos);
}

TEST_CASE("v1 limits: what a new group has anyway") {
    CHECK(is_v1_default({"memory.limit_in_bytes", "-1", ""}));
    CHECK(is_v1_default({"cpu.cfs_period_us", "100000", ""}));
    CHECK_FALSE(is_v1_default({"memory.limit_in_bytes", "1", ""}));
    CHECK_FALSE(is_v1_default({"memory.swappiness", "60", ""}));
    CHECK(is_v1_unlimited("9223372036854771712\n"));
    CHECK(is_v1_unlimited("-1\n"));
    CHECK_FALSE(is_v1_unlimited("67108864\n"));
    CHECK_FALSE(is_v1_unlimited("0\n"));
}
