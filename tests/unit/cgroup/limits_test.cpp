// linux.resources to control files: every conversion, every refusal.
#include "cgroup/plan.hpp"

#include "translation.hpp"

using namespace pinfold;

namespace {

std::string written(const Resources& resources) { return testing::words_of(v2_writes(resources)); }

void check(std::initializer_list<testing::TranslationCase> cases) { testing::check_translation(v2_writes, cases); }

std::string weight_for(uint64_t shares) {
    Resources resources;
    resources.cpu.shares = shares;
    return written(resources);
}

}  // namespace

TEST_CASE("limits: nothing asked, nothing written") {
    check({{[](Resources&) {}, ""},
           {[](Resources& r) {  // zeros, as engines send them
                r.memory.limit = 0;
                r.memory.reservation = 0;
                r.memory.swap = 0;
                r.memory.kernel = 0;
                r.cpu.shares = 0;
                r.cpu.quota = 0;
                r.cpu.period = 0;
                r.cpu.burst = 0;
                r.cpu.realtime_runtime = 0;
                r.block_io.weight = 0;
                r.block_io.leaf_weight = 0;
                r.block_io.weight_device = {{8, 0, 0, 0}};
                r.network.class_id = 0;
                r.memory.disable_oom_killer = false;
            },
            ""},
           {[](Resources& r) {  // what cgroup v2 does anyway, and what no limit has to enforce
                r.memory.kernel = -1;
                r.memory.kernel_tcp = -1;
                r.memory.use_hierarchy = true;
                r.memory.check_before_update = true;
                r.cpu.realtime_runtime = -1;
            },
            ""}});
}

TEST_CASE("limits: memory") {
    check({
        {[](Resources& r) { r.memory.limit = 67108864; }, "memory.max=67108864"},
        {[](Resources& r) { r.memory.limit = -1; }, "memory.max=max"},
        {[](Resources& r) { r.memory.reservation = 4096; }, "memory.low=4096"},
        {[](Resources& r) { r.memory.limit = 100, r.memory.swap = 150; }, "memory.max=100; memory.swap.max=50"},
        {[](Resources& r) { r.memory.limit = 100, r.memory.swap = 100; }, "memory.max=100; memory.swap.max=0"},
        {[](Resources& r) { r.memory.limit = 100, r.memory.swap = -1; }, "memory.max=100; memory.swap.max=max"},
        {[](Resources& r) { r.memory.limit = -1, r.memory.swap = -1; }, "memory.max=max; memory.swap.max=max"},
        {[](Resources& r) { r.memory.swap = -1; }, "memory.swap.max=max"},
        {[](Resources& r) { r.memory.limit = INT64_MAX, r.memory.swap = INT64_MAX; },
         "memory.max=9223372036854775807; memory.swap.max=0"},
        {[](Resources& r) { r.memory.limit = 200, r.memory.swap = 100; },
         "error: linux.resources.memory.swap: 100 is less than linux.resources.memory.limit 200, but counts memory and "
         "swap together"},
        {[](Resources& r) { r.memory.swap = 100; },
         "error: linux.resources.memory.swap: counts memory and swap together, so it needs "
         "linux.resources.memory.limit as well"},
        {[](Resources& r) { r.memory.limit = -1, r.memory.swap = 100; },
         "error: linux.resources.memory.swap: counts memory and swap together, so it needs "
         "linux.resources.memory.limit as well"},
    });
}

TEST_CASE("limits: cpu shares become weights") {
    CHECK(weight_for(1) == "cpu.weight=1");
    CHECK(weight_for(2) == "cpu.weight=1");
    CHECK(weight_for(512) == "cpu.weight=59");
    CHECK(weight_for(1024) == "cpu.weight=100");
    CHECK(weight_for(2048) == "cpu.weight=174");
    CHECK(weight_for(262144) == "cpu.weight=10000");
    CHECK(weight_for(UINT64_MAX) == "cpu.weight=10000");
}

TEST_CASE("limits: cpu") {
    check({
        {[](Resources& r) { r.cpu.quota = 50000, r.cpu.period = 200000; }, "cpu.max=50000 200000"},
        {[](Resources& r) { r.cpu.quota = 50000; }, "cpu.max=50000 100000"},
        {[](Resources& r) { r.cpu.quota = -1, r.cpu.period = 50000; }, "cpu.max=max 50000"},
        {[](Resources& r) { r.cpu.quota = 0, r.cpu.period = 50000; }, "cpu.max=max 50000"},
        {[](Resources& r) { r.cpu.idle = 1, r.cpu.shares = 1024; }, "cpu.weight=100; cpu.idle=1"},
        {[](Resources& r) { r.cpu.burst = 1000, r.cpu.quota = 50000; }, "cpu.max=50000 100000; cpu.max.burst=1000"},
        {[](Resources& r) { r.cpu.cpus = "0-1", r.cpu.mems = "0,1"; }, "cpuset.cpus=0-1; cpuset.mems=0,1"},
    });
}

TEST_CASE("limits: processes") {
    check({
        {[](Resources& r) { r.pids_limit = 20; }, "pids.max=20"},
        {[](Resources& r) { r.pids_limit = 0; }, "pids.max=1"},
        {[](Resources& r) { r.pids_limit = -1; }, "pids.max=max"},
        {[](Resources& r) { r.pids_limit = -7; }, "pids.max=max"},
    });
}

TEST_CASE("limits: devices, pages, and the kernel's own words") {
    check({
        {[](Resources& r) { r.block_io.weight = 10; }, "io.weight=default 1 or io.bfq.weight=default 10"},
        {[](Resources& r) { r.block_io.weight = 1000; }, "io.weight=default 10000 or io.bfq.weight=default 1000"},
        {[](Resources& r) {
             r.block_io.weight_device = {{8, 0, 505, {}}};
         },
         "io.weight=8:0 5000 or io.bfq.weight=8:0 505"},
        {[](Resources& r) {
             r.block_io.throttle_read_bps_device = {{8, 0, 1048576}};
         },
         "io.max=8:0 rbps=1048576"},
        {[](Resources& r) {
             r.block_io.throttle_write_iops_device = {{8, 16, 0}};
         },
         "io.max=8:16 wiops=max"},
        {[](Resources& r) {
             r.hugepage_limits = {{"2MB", 4194304}};
         },
         "hugetlb.2MB.max=4194304 or hugetlb.2MB.rsvd.max=4194304"},
        {[](Resources& r) {
             r.hugepage_limits = {{"../x", 1}};
         },
         "error: linux.resources.hugepageLimits[0]: '../x' is no page size"},
        {[](Resources& r) {
             r.rdma = {{"mlx5_1", {3, 10000}}};
         },
         "rdma.max=mlx5_1 hca_handle=3 hca_object=10000"},
        {[](Resources& r) {
             r.unified = {{"memory.high", "100"}}, r.pids_limit = 5;
         },
         "pids.max=5; memory.high=100"},
        {[](Resources& r) {
             r.unified = {{"io.max", "8:0 rbps=1\n8:16 wiops=2\n"}};
         },
         "io.max=8:0 rbps=1; io.max=8:16 wiops=2"},
        {[](Resources& r) {
             r.unified = {{"../memory.max", "1"}};
         },
         "error: linux.resources.unified: '../memory.max' is no control file's name"},
        {[](Resources& r) {
             r.unified = {{"web", "1"}};
         },
         "error: linux.resources.unified: 'web' is no control file's name"},
    });
}

TEST_CASE("limits: what cgroup v2 cannot enforce is refused, all of it at once") {
    check({
        {[](Resources& r) { r.memory.swappiness = 0, r.memory.kernel = 4096, r.network.class_id = 1; },
         "error: linux.resources.memory.kernel, linux.resources.memory.swappiness, linux.resources.network.classID: "
         "cgroup v2 has no such setting"},
        {[](Resources& r) { r.memory.disable_oom_killer = true; },
         "error: linux.resources.memory.disableOOMKiller: cgroup v2 has no such setting"},
        {[](Resources& r) { r.cpu.realtime_runtime = 950000, r.cpu.realtime_period = 1000000; },
         "error: linux.resources.cpu.realtimeRuntime, linux.resources.cpu.realtimePeriod: cgroup v2 has no such "
         "setting"},
        {[](Resources& r) {
             r.block_io.weight_device = {{8, 0, 100, 10}};
         },
         "error: linux.resources.blockIO.leafWeight: cgroup v2 has no such setting"},
        {[](Resources& r) {
             r.memory.kernel_tcp = 1, r.network.priorities = {{"eth0", 1}};
         },
         "error: linux.resources.memory.kernelTCP, linux.resources.network.priorities: cgroup v2 has no such setting"},
    });
}

TEST_CASE("limits: a refusal says what to do instead") {
    Resources resources;
    resources.cpu.realtime_runtime = 1;
    resources.cpu.realtime_period = 1;
    resources.memory.swappiness = 60;
    const auto refused = v2_writes(resources);
    REQUIRE_FALSE(refused);
    CHECK(refused.error().hint ==
          "leave it out; instead: limit swap with memory.swap, or set the host's vm.swappiness; use process.scheduler "
          "with SCHED_DEADLINE");
}

TEST_CASE("limits: what a new group has anyway") {
    CHECK(is_v2_default({"memory.max", "max", ""}));
    CHECK(is_v2_default({"pids.max", "max", ""}));
    CHECK(is_v2_default({"cpu.max", "max 100000", ""}));
    CHECK(is_v2_default({"cpu.idle", "0", ""}));
    CHECK_FALSE(is_v2_default({"cpu.max", "max 50000", ""}));
    CHECK_FALSE(is_v2_default({"memory.max", "4096", ""}));
    CHECK_FALSE(is_v2_default({"memory.low", "max", ""}));
}

TEST_CASE("limits: which controller a file belongs to") {
    CHECK(controller_of("memory.swap.max") == "memory");
    CHECK(controller_of("cpuset.cpus") == "cpuset");
    CHECK(controller_of("cgroup.freeze") == "");
}
