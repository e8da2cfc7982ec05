// Time, as logs and state files need it, and timers.
#include "base/clock.hpp"

#include <sys/timerfd.h>

#include <algorithm>
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

Result<UniqueFd> make_timer(int clock) {
    UniqueFd timer(::timerfd_create(clock, TFD_CLOEXEC));
    if (!timer) return errno_error("make a timer");
    return timer;
}

Result<void> set_timer(const UniqueFd& timer, std::chrono::nanoseconds time) {
    constexpr int64_t kSecond = 1'000'000'000;
    const int64_t count = std::max<int64_t>(time.count(), 1);  // zero would stop it
    const itimerspec when{{}, {count / kSecond, count % kSecond}};
    if (::timerfd_settime(timer.get(), 0, &when, nullptr) != 0) return errno_error("set a timer");
    return {};
}

}  // namespace pinfold
