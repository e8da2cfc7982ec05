// Time as logs and state files write it.
#include "base/clock.hpp"

#include <sys/inotify.h>
#include <unistd.h>

#include <cstdlib>
#include <ctime>
#include <fstream>
#include <regex>

#include "pinfold/unique_fd.hpp"
#include "support/temp_dir.hpp"
#include "support/testing.hpp"

using namespace pinfold;

TEST_CASE("clock: the monotonic clock never goes back") {
    int64_t last = monotonic_ns();
    for (int i = 0; i < 1000; ++i) {
        const int64_t now = monotonic_ns();
        REQUIRE(now >= last);
        last = now;
    }
}

TEST_CASE("clock: a time stamp is RFC 3339, in UTC, and of now") {
    const std::time_t before = std::time(nullptr);
    const std::string text = rfc3339_now();
    REQUIRE(std::regex_match(text, std::regex(R"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{9}Z)")));
    std::tm parts{};
    REQUIRE(::strptime(text.c_str(), "%Y-%m-%dT%H:%M:%S", &parts) != nullptr);
    const std::time_t written = ::timegm(&parts);
    CHECK(written >= before);
    CHECK(written <= std::time(nullptr));
}

TEST_CASE("clock: a time stamp takes no file of a time zone") {
    const testing::TempDir dir;
    const std::string zone = dir.file("zone");
    std::ofstream(zone) << "TZif";
    const UniqueFd opened(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
    REQUIRE(::inotify_add_watch(opened.get(), zone.c_str(), IN_OPEN) >= 0);
    ::setenv("TZ", (":" + zone).c_str(), 1);
    CHECK_FALSE(rfc3339_now().empty());
    ::unsetenv("TZ");
    char event[4096];
    CHECK(::read(opened.get(), event, sizeof event) < 0);
}
