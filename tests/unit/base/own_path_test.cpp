// own_path: where the program lies, however it was called.
#include "base/process.hpp"

#include <unistd.h>

#include "support/testing.hpp"

using namespace pinfold;

TEST_CASE("own path: of a program that lies somewhere") {
    CHECK(own_path().starts_with("/"));
    CHECK(own_path().ends_with("/unit-base"));
    CHECK(::access(own_path().c_str(), X_OK) == 0);
}
