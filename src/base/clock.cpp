// Time, as logs and state files need it, and timers.
#include "base/clock.hpp"

#include <sys/timerfd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <ctime>

namespace pinfold {

int64_t monotonic_ns() {
    timespec now{};
    ::clock_gettime(CLOCK_MONOTONIC, &now);
    return int64_t(now.tv_sec) * 1'000'000'000 + now.tv_nsec;
}

// Not by gmtime(3), which reads the local time zone's file to tell the time in none.
std::string rfc3339_now() {
    timespec now{};
    ::clock_gettime(CLOCK_REALTIME, &now);
    const std::chrono::sys_seconds seconds{std::chrono::seconds(now.tv_sec)};
    const auto midnight = std::chrono::floor<std::chrono::days>(seconds);
    const std::chrono::year_month_day date(midnight);
    const std::chrono::hh_mm_ss time(seconds - midnight);
    char text[64];
    std::snprintf(text, sizeof text, "%04d-%02u-%02uT%02ld:%02ld:%02ld.%09ldZ", int(date.year()),
                  unsigned(date.month()), unsigned(date.day()), long(time.hours().count()),
                  long(time.minutes().count()), long(time.seconds().count()), now.tv_nsec);
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
