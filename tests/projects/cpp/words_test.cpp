// What passes.
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include "words.hpp"

#include <doctest/doctest.h>

TEST_SUITE("words") {
    TEST_CASE("words are counted") {
        CHECK(count_words("") == 0);
        CHECK(count_words(" a  stray   sheep ") == 3);
    }
}
