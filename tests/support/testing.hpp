// What every test program includes: doctest, and a loud, counted way to skip.
// With PINFOLD_MUST_WORK=1 a skip is a failure: there the machine has all that the tests ask for.
#pragma once

#include <doctest/doctest.h>

#include <string>

namespace pinfold::testing {

// True where every test has to run (PINFOLD_MUST_WORK=1).
bool must_work();

// True where everything takes long (PINFOLD_SLOW=1, an emulated machine): widen deadlines.
bool slow_machine();

// Whether pinfold is built with sanitizers, whose own memory counts against a job's limit.
bool sanitised();

// Marks the running test case as skipped. Tests use SKIP_TEST, which also leaves the test case.
void record_skip(const std::string& reason);

}  // namespace pinfold::testing

// Leaves the test case (use it in its own body, not in a helper function): this machine cannot run it.
#define SKIP_TEST(reason)                                                                                \
    do {                                                                                                 \
        const std::string skip_reason = (reason);                                                        \
        if (::pinfold::testing::must_work()) FAIL("skipped where every test must run: " << skip_reason); \
        ::pinfold::testing::record_skip(skip_reason);                                                    \
        return;                                                                                          \
    } while (false)
