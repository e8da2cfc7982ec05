// Time, as logs and state files need it.
#include "base/clock.hpp"

#include <cstdio>
#include <ctime>

namespace pinfold {

int64_t monotonic_ns() {
    timespec now{};
    ::clock_gettime(CLOCK_MONOTONIC, &now);
    return int64_t(now.tv_sec) * 1'000'000'000 + now.tv_nsec;
}

std::string rfc3339_now() {
    timespec now{};
    ::clock_gettime(CLOCK_REALTIME, &now);
    tm utc{};
    ::gmtime_r(&now.tv_sec, &utc);
    char date[32];
    char text[64];
    std::strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%S", &utc);
    std::snprintf(text, sizeof text, "%s.%09ldZ", date, now.tv_nsec);
    return text;
}

}  // namespace pinfold
