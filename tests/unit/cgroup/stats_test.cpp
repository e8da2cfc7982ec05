// Statistics: the kernel's texts in, the callers' JSON out.
#include "cgroup/stats.hpp"

#include <fcntl.h>

#include "base/fs.hpp"
#include "support/temp_dir.hpp"
#include "support/testing.hpp"

using namespace pinfold;
using namespace pinfold::testing;

namespace {

struct File {
    const char* name;
    const char* text;
};

std::string stats_of(std::initializer_list<File> files) {
    const TempDir group;
    for (const File& file : files) {
        const UniqueFd fd(::open(group.file(file.name).c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
        REQUIRE(write_once(fd.get(), file.text, file.name));
    }
    const UniqueFd fd(::open(group.path().c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    return stats_to_json(fd.get());
}

bool contains(const std::string& text, const std::string& part) {
    INFO(text);
    return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("stats: nothing to read is no error") {
    CHECK(stats_of({}) ==
          R"({"cpu":{"usage":{"total":0,"percpu":[],"kernel":0,"user":0},)"
          R"("throttling":{"periods":0,"throttledPeriods":0,"throttledTime":0}},"cpuset":{},)"
          R"("memory":{"cache":0,"usage":{"limit":0,"usage":0,"max":0,"failcnt":0},)"
          R"("swap":{"limit":0,"usage":0,"max":0,"failcnt":0},"kernel":{"limit":0,"usage":0,"max":0,"failcnt":0},)"
          R"("kernelTCP":{"limit":0,"usage":0,"max":0,"failcnt":0},"raw":{},"event_count":{}},)"
          R"("pids":{"current":0,"limit":0},"blkio":{"ioServiceBytesRecursive":[],"ioServicedRecursive":[]},)"
          R"("hugetlb":{},"intel_rdt":{},"network_interfaces":null})");
}

TEST_CASE("stats: processor time in nanoseconds, and its pressure") {
    const std::string stats = stats_of({
        {"cpu.stat", "usage_usec 30\nuser_usec 20\nsystem_usec 10\nnr_periods 5\nnr_throttled 4\nthrottled_usec 3\n"},
        {"cpu.pressure",
         "some avg10=1.50 avg60=0.00 avg300=0.00 total=77\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=0\n"},
    });
    CHECK(contains(stats, R"("usage":{"total":30000,"percpu":[],"kernel":10000,"user":20000})"));
    CHECK(contains(stats, R"("throttling":{"periods":5,"throttledPeriods":4,"throttledTime":3000})"));
    CHECK(
        contains(stats, R"("psi":{"some":{"avg10":1.50,"avg60":0.00,"avg300":0.00,"total":77},"full":{"avg10":0.00,)"));
}

TEST_CASE("stats: memory, with swap that includes it") {
    const std::string limited = stats_of({{"memory.max", "4096\n"},
                                          {"memory.current", "1024\n"},
                                          {"memory.peak", "2048\n"},
                                          {"memory.swap.max", "1000\n"},
                                          {"memory.swap.current", "10\n"},
                                          {"memory.stat", "anon 1\nfile 512\n"},
                                          {"memory.events", "low 0\nmax 9\noom 2\noom_kill 1\n"}});
    CHECK(contains(limited, R"("cache":512,"usage":{"limit":4096,"usage":1024,"max":2048,"failcnt":9})"));
    CHECK(contains(limited, R"("swap":{"limit":5096,"usage":1034,"max":0,"failcnt":0})"));
    CHECK(contains(limited, R"("raw":{"anon":1,"file":512})"));
    CHECK(contains(limited, R"("event_count":{"low":0,"max":9,"oom":2,"oom_kill":1})"));
    const std::string unlimited = stats_of({{"memory.max", "max\n"}, {"memory.swap.max", "1000\n"}});
    CHECK(contains(unlimited, R"("usage":{"limit":18446744073709551615,)"));
    CHECK(contains(unlimited, R"("swap":{"limit":18446744073709551615,)"));
}

TEST_CASE("stats: processes, devices, pages") {
    const std::string stats = stats_of({{"pids.current", "3\n"},
                                        {"pids.max", "max\n"},
                                        {"io.stat", "8:0 rbytes=1 wbytes=2 rios=3 wios=4 dbytes=0 dios=0\n259:1 \n"},
                                        {"io.pressure", "some avg10=0.00 total=1\n"},
                                        {"hugetlb.2MB.current", "2097152\n"},
                                        {"hugetlb.2MB.rsvd.current", "0\n"},
                                        {"hugetlb.2MB.events", "max 6\n"}});
    CHECK(contains(stats, R"("pids":{"current":3,"limit":0})"));
    CHECK(contains(stats,
                   R"("ioServiceBytesRecursive":[{"major":8,"minor":0,"op":"Read","value":1},)"
                   R"({"major":8,"minor":0,"op":"Write","value":2}],"ioServicedRecursive":[)"
                   R"({"major":8,"minor":0,"op":"Read","value":3},{"major":8,"minor":0,"op":"Write","value":4}],)"
                   R"("psi":{"some":{"avg10":0.00,"total":1}})"));
    CHECK(contains(stats, R"("hugetlb":{"2MB":{"usage":2097152,"failcnt":6}})"));
}
