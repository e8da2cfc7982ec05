// How a limit that was written is told from what its control file says afterwards.
#include "cgroup/limit_files.hpp"

#include <fstream>

#include "support/temp_dir.hpp"
#include "support/testing.hpp"

using namespace pinfold;
using namespace pinfold::testing;

namespace {

struct Written {
    const char* file;
    const char* planned;
    const char* found;
    bool taken;
};

constexpr Written kWritten[] = {
    {"memory.max", "1000000", "999424\n", true},  // whole pages
    {"memory.max", "1000000", "max\n", false},
    {"memory.max", "1000000", "2000000\n", false},
    {"memory.max", "max", "max\n", true},
    {"memory.limit_in_bytes", "-1", "9223372036854771712\n", true},
    {"memory.limit_in_bytes", "1048576", "9223372036854771712\n", false},
    {"pids.max", "20", "20\n", true},
    {"pids.max", "20", "max\n", false},
    {"pids.max", "20", "19\n", false},
    {"cpu.weight", "100", "1\n", false},
    {"cpu.shares", "1", "2\n", true},  // the least that there is
    {"cpu.shares", "300000", "262144\n", true},
    {"cpu.shares", "1024", "2\n", false},
    {"hugetlb.2MB.max", "5000000", "4194304\n", true},  // whole pages of their kind
    {"hugetlb.2MB.max", "5000000", "2097152\n", false},
    {"cpu.max", "50000 100000", "50000 100000\n", true},
    {"cpu.max", "50000 100000", "max 100000\n", false},
    {"cpuset.cpus", "0,1", "0-1\n", true},
    {"cpuset.cpus", "0", "0-1\n", false},
    {"cpuset.cpus.partition", "root", "root invalid (Cpu list in cpuset.cpus not exclusive)\n", false},
    {"io.max", "8:0 rbps=1048576", "8:0 rbps=1048576 wbps=max riops=max wiops=max\n", true},
    {"io.max", "8:0 rbps=1048576", "8:0 rbps=max wbps=max riops=max wiops=max\n", false},
    {"io.max", "8:0 rbps=1048576", "", false},
    {"io.max", "8:0 rbps=max", "", true},  // which takes no line
    {"io.max", "8:0 rbps=max", "8:16 rbps=1 wbps=max riops=max wiops=max\n", true},
    {"io.max", "8:0 rbps=max", "8:0 rbps=1 wbps=max riops=max wiops=max\n", false},
    {"io.weight", "default 50", "default 50\n8:0 20\n", true},
    {"blkio.throttle.read_bps_device", "8:0 1024", "8:16 5\n8:0 1024\n", true},
    {"blkio.throttle.read_bps_device", "8:0 0", "", true},
    {"blkio.throttle.read_bps_device", "8:0 0", "8:0 5\n", false},
};

std::vector<std::string> lasting(const std::vector<CgroupWrite>& writes) {
    std::vector<std::string> values;
    for (const CgroupWrite& write : lasting_writes(writes)) values.push_back(write.value);
    return values;
}

void write_text(const std::string& path, const char* text) { std::ofstream(path) << text; }

}  // namespace

TEST_CASE("cgroup: limits as control files show them") {
    for (const Written& one : kWritten) {
        CAPTURE(one.file);
        CAPTURE(one.planned);
        CAPTURE(one.found);
        CHECK(has_taken(one.file, one.planned, one.found) == one.taken);
    }
}

TEST_CASE("cgroup: of what is written twice, the last is what is found") {
    using Values = std::vector<std::string>;
    CHECK(lasting({{"memory.max", "2", {}}, {"pids.max", "7", {}}, {"memory.max", "1", {}}}) == Values{"7", "1"});
    CHECK(lasting({{"io.max", "8:0 rbps=1", {}}, {"io.max", "8:0 wbps=2", {}}, {"io.max", "8:16 rbps=3", {}}}).size() ==
          3);
    CHECK(lasting({{"io.max", "8:0 rbps=1", {}}, {"io.max", "8:0 wbps=2 rbps=3", {}}}) == Values{"8:0 wbps=2 rbps=3"});
    CHECK(lasting({{"io.weight", "default 5", {}}, {"io.weight", "8:0 6", {}}, {"io.weight", "8:0 7", {}}}) ==
          Values{"default 5", "8:0 7"});
    // The kernel shows no weight for an idle group.
    CHECK(lasting({{"cpu.weight", "50", {}}, {"cpu.idle", "1", {}}}) == Values{"1"});
    CHECK(lasting({{"cpu.weight", "50", {}}, {"cpu.idle", "0", {}}}).size() == 2);
}

TEST_CASE("cgroup: a limit that cannot be read does not hold") {
    const TempDir group;
    const std::optional<LimitFound> gone = read_limit(group.path(), {"pids.max", "20", {}});
    REQUIRE(gone);
    CHECK(gone->found == "cannot be read");
    CHECK_FALSE(gone->holds);
}

TEST_CASE("cgroup: one of two files for a limit is enough") {
    const TempDir group;
    const CgroupWrite weight{"io.weight", "8:0 100", {}, "io.bfq.weight", "8:0 10"};
    write_text(group.file("io.weight"), "default 100\n");
    CHECK_FALSE(read_limit(group.path(), weight)->holds);
    write_text(group.file("io.bfq.weight"), "default 100\n8:0 20\n");
    CHECK_FALSE(read_limit(group.path(), weight)->holds);
    write_text(group.file("io.bfq.weight"), "default 100\n8:0 10\n");
    const std::optional<LimitFound> twin = read_limit(group.path(), weight);
    CHECK(twin->file == "io.bfq.weight");
    CHECK(twin->holds);
}
