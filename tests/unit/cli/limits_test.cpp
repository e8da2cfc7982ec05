// Limits of the command line: what a file says, what options say on top, and what neither can mean.
#include "cli/limits.hpp"

#include <fstream>

#include "support/temp_dir.hpp"
#include "support/testing.hpp"

using namespace pinfold;
using pinfold::testing::TempDir;

namespace {

WantedLimits resolved(const LimitOptions& options) {
    const Result<WantedLimits> wanted = resolve_limits(options);
    REQUIRE_MESSAGE(wanted, wanted.error().message);
    return *wanted;
}

void check_refused(const LimitOptions& options, const char* words) {
    const Result<WantedLimits> wanted = resolve_limits(options);
    REQUIRE_FALSE(wanted);
    CHECK_MESSAGE(wanted.error().message.find(words) != std::string::npos, wanted.error().message);
}

}  // namespace

TEST_CASE("limits: an option has the last word over the file, and only over what it names") {
    const TempDir dir;
    std::ofstream(dir.file("limits.json")) << R"({"memory_mb": 64, "cpu_cores": 2, "timeout_seconds": 5})";
    LimitOptions options;
    CHECK_FALSE(options.any());
    options.file = dir.file("limits.json");
    options.memory = "1g";
    options.timeout = "1500ms";
    CHECK(options.any());
    const WantedLimits wanted = resolved(options);
    CHECK(wanted.limits.memory_mb == 1024);
    CHECK(wanted.limits.cpu_cores == 2);
    CHECK(wanted.asked == std::vector<std::string>{"cpu_cores"});
    CHECK(wanted.limits.timeout_seconds == doctest::Approx(1.5));
    CHECK(wanted.limits.disk_mb == ResourceLimits().disk_mb);
}

TEST_CASE("limits: sizes are rounded up to whole megabytes, never down") {
    for (const auto& row : {std::pair{"1m", 1}, {"1048576", 1}, {"1048577", 2}, {"1.5m", 2}, {"1g", 1024}}) {
        CAPTURE(row.first);
        LimitOptions options;
        options.disk = row.first;
        CHECK(resolved(options).limits.disk_mb == uint64_t(row.second));
    }
}

TEST_CASE("limits: a network that was only switched on is the one that keeps the host's services out of reach") {
    const TempDir dir;
    std::ofstream(dir.file("limits.json")) << R"({"network_enabled": true})";
    LimitOptions options;
    CHECK(resolved(options).network == Network::none);
    CHECK_FALSE(resolved(options).limits.network_enabled);
    options.file = dir.file("limits.json");
    CHECK(resolved(options).network == Network::pasta);
    CHECK(resolved(options).limits.network_enabled);
    options.network = "none";
    CHECK(resolved(options).network == Network::none);
    CHECK_FALSE(resolved(options).limits.network_enabled);
    options.network = "host";
    CHECK(resolved(options).network == Network::host);
}

TEST_CASE("limits: what is no limit is refused with the option's name") {
    LimitOptions options;
    options.memory = "lots";
    check_refused(options, "--memory 'lots'");
    options.memory = "-1";
    check_refused(options, "--memory '-1'");
    for (const char* size : {"512", "64", "0", "1048575", "900k"}) {
        options.memory = size;
        check_refused(options, "at least 1m");
        options.memory.clear();
        options.disk = size;
        check_refused(options, "at least 1m");
        options.disk.clear();
    }
    options = {};
    options.timeout = "soon";
    check_refused(options, "--timeout 'soon'");
    options = {};
    options.cpus = 0;
    check_refused(options, "cpu_cores");
    options = {};
    options.processes = 0;
    check_refused(options, "max_processes");
    options = {};
    options.file = "/not/there";
    check_refused(options, "--limits");
}
