// How much was tried, beside how many tests passed: the attacks, fault points and inputs of the tests on security.
#pragma once

#include <string>

namespace pinfold::testing {

// One more of this kind ("attacks", "points", "inputs"). Counted by the process that the test program began as.
void count_tried(const std::string& kind, bool withstood);

// Prints the counts, and appends them as "KIND TRIED FAILED" to the file that PINFOLD_TRIED names.
void report_tried();

}  // namespace pinfold::testing

// An attack and what must be so after it.
#define WITHSTANDS(attack, ...)                                            \
    do {                                                                   \
        const bool withstood_ = static_cast<bool>(__VA_ARGS__);            \
        ::pinfold::testing::count_tried("attacks", withstood_);            \
        CHECK_MESSAGE(withstood_, std::string(attack), ": " #__VA_ARGS__); \
    } while (false)
