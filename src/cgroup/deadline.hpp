// A point in time that waiting for the kernel does not pass.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

#include "base/clock.hpp"

namespace pinfold {

class Deadline {
public:
    explicit Deadline(std::chrono::milliseconds patience) : end_(monotonic_ns() + patience.count() * 1'000'000) {}

    int64_t left_ms() const { return std::max<int64_t>(0, (end_ - monotonic_ns()) / 1'000'000); }

private:
    int64_t end_;
};

}  // namespace pinfold
