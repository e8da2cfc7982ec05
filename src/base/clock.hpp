// Time, as logs and state files need it, and timers.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "pinfold/result.hpp"
#include "pinfold/unique_fd.hpp"

namespace pinfold {

int64_t monotonic_ns();

// "2026-01-31T12:00:00.123456789Z"
std::string rfc3339_now();

// A descriptor that can be read from once the time is over. A clock is CLOCK_MONOTONIC, or another of
// timerfd_create(2).
Result<UniqueFd> make_timer(int clock);
// Anew, also where it has run out.
Result<void> set_timer(const UniqueFd& timer, std::chrono::nanoseconds time);

}  // namespace pinfold
