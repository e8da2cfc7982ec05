// How a limit that was written is told from what its control file says afterwards.
#include "process/receipt_parts.hpp"
#include "support/testing.hpp"

namespace pinfold {

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
    {"cpu.max", "50000 100000", "50000 100000\n", true},
    {"cpu.max", "50000 100000", "max 100000\n", false},
    {"cpuset.cpus", "0,1", "0-1\n", true},
    {"cpuset.cpus", "0", "0-1\n", false},
    {"io.max", "8:0 rbps=1048576", "8:0 rbps=1048576 wbps=max riops=max wiops=max\n", true},
    {"io.max", "8:0 rbps=1048576", "8:0 rbps=max wbps=max riops=max wiops=max\n", false},
    {"io.max", "8:0 rbps=1048576", "", false},
    {"io.weight", "default 50", "default 50\n8:0 20\n", true},
    {"blkio.throttle.read_bps_device", "8:0 1024", "8:16 5\n8:0 1024\n", true},
};

}  // namespace

TEST_CASE("receipt: limits as control files show them") {
    for (const Written& one : kWritten) {
        CAPTURE(one.file);
        CAPTURE(one.planned);
        CAPTURE(one.found);
        CHECK(has_taken(one.file, one.planned, one.found) == one.taken);
    }
}

}  // namespace pinfold
