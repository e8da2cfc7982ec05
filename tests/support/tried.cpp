// Counts of what was tried.
#include "support/tried.hpp"

#include <cstdio>
#include <cstdlib>
#include <map>

namespace pinfold::testing {

namespace {

struct Count {
    long tried = 0;
    long failed = 0;
};

std::map<std::string, Count>& counts() {
    static std::map<std::string, Count> all;
    return all;
}

}  // namespace

void count_tried(const std::string& kind, bool withstood) {
    Count& count = counts()[kind];
    ++count.tried;
    if (!withstood) ++count.failed;
}

void report_tried() {
    const char* path = std::getenv("PINFOLD_TRIED");
    std::FILE* file = path == nullptr ? nullptr : std::fopen(path, "ae");
    for (const auto& [kind, count] : counts()) {
        std::printf("%ld %s tried, %ld failed\n", count.tried, kind.c_str(), count.failed);
        if (file != nullptr) std::fprintf(file, "%s %ld %ld\n", kind.c_str(), count.tried, count.failed);
    }
    if (file != nullptr) std::fclose(file);
}

}  // namespace pinfold::testing
