// Time, as logs and state files need it.
#pragma once

#include <cstdint>
#include <string>

namespace pinfold {

int64_t monotonic_ns();

// "2026-01-31T12:00:00.123456789Z"
std::string rfc3339_now();

}  // namespace pinfold
