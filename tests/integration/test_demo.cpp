// What README shows is what a newcomer gets.
#include "harness.hpp"

using namespace pinfold::integration;

TEST_CASE("demo: prints what README says, word for word") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    const char* source = std::getenv("PINFOLD_SOURCE_ROOT");
    REQUIRE(source != nullptr);
    const std::string root = source;
    const Ended demo = run_program({root + "/bundles/demo/run"}, {.env = {"PINFOLD_BIN=" + runtime_command()[0]}});
    CAPTURE(demo.err);
    CHECK(demo.status == 0);
    CHECK(demo.err == "");
    CHECK(demo.out.size() > 100);
    CHECK(read_text(root + "/README.md").find("```\n" + demo.out + "```\n") != std::string::npos);
}
