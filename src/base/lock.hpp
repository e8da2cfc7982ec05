// Locks of open files, with a wait that ends.
#pragma once

#include <chrono>
#include <string_view>

#include "pinfold/result.hpp"

namespace pinfold {

inline constexpr std::chrono::seconds kLockPatience{10};

// flock(2) with LOCK_EX or LOCK_SH. Who does not get it in time fails with EWOULDBLOCK, and with words that name the
// holder and, as `name`, what is held.
Result<void> lock_file(int fd, int kind, std::string_view name, std::chrono::milliseconds patience = kLockPatience);

}  // namespace pinfold
