// Sizes and times as people and Go programs write them.
#include "base/units.hpp"

#include "support/testing.hpp"

using namespace pinfold;
using namespace std::chrono_literals;

TEST_CASE("units: sizes") {
    CHECK(parse_size("0") == 0);
    CHECK(parse_size("1024") == 1024);
    CHECK(parse_size("9007199254740992") == 9007199254740992);
    CHECK(parse_size("100M") == 100 << 20);
    CHECK(parse_size("100m") == 100 << 20);
    CHECK(parse_size("1.5g") == 3LL << 29);
    CHECK(parse_size("64k") == 65536);
    CHECK(parse_size("64kb") == 65536);
    CHECK(parse_size("64KiB") == 65536);
    CHECK(parse_size("2T") == 2LL << 40);
    CHECK(parse_size("1P") == 1LL << 50);
    CHECK(parse_size("12b") == 12);
    for (const char* wrong : {"", "M", "-1", "+1", "1e3", "1x", "1MM", "1 M", "100000P", "0x10", "nan", "1.5.5"}) {
        CAPTURE(wrong);
        CHECK_FALSE(parse_size(wrong).has_value());
    }
}

TEST_CASE("units: times") {
    CHECK(parse_duration("5s") == 5s);
    CHECK(parse_duration("100ms") == 100ms);
    CHECK(parse_duration("1h30m") == 90min);
    CHECK(parse_duration("1m0.5s") == 60500ms);
    CHECK(parse_duration("7us") == 7us);
    CHECK(parse_duration("7\u00b5s") == 7us);
    CHECK(parse_duration("9ns") == 9ns);
    CHECK(parse_duration("0s") == 0s);
    CHECK(parse_duration("876000h") == 876000h);  // a hundred years
    for (const char* wrong : {"", "5", "s", "-5s", "5 s", "5s ", "5d", "1s5", "999999999h", "9223372036s", "876001h"}) {
        CAPTURE(wrong);
        CHECK_FALSE(parse_duration(wrong).has_value());
    }
}
