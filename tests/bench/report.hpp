// The benchmark's results, as a table for people and as JSON for programs.
#pragma once

#include <string>
#include <vector>

#include "measure.hpp"
#include "variants.hpp"

namespace pinfold::bench {

struct Series {
    Variant variant;
    std::vector<Sample> samples;
};

struct Report {
    std::vector<Series> series;
    std::vector<std::string> notes;
    int rounds = 0;
};

std::string as_table(const Report& report);
std::string as_json(const Report& report);

// "%8.2f" and the like for one number.
std::string formatted(const char* format, double value);

}  // namespace pinfold::bench
