// What README shows is what a newcomer gets.
#include "sandbox.hpp"
#include "support/source_root.hpp"

using namespace pinfold::integration;

TEST_CASE("demo: prints what README says, word for word") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    const std::string root = pinfold::testing::source_root();
    const Ended demo = run_program({root + "/bundles/demo/run"}, {.env = {"PINFOLD_BIN=" + runtime_command()[0]}});
    CAPTURE(demo.err);
    CHECK(demo.status == 0);
    CHECK(demo.err == "");
    CHECK(demo.out.size() > 100);
    CHECK(read_text(root + "/README.md").find("```\n" + demo.out + "```\n") != std::string::npos);
}

TEST_CASE("demo: a normal user sees every job end as well") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    if (pinfold::testing::sanitised()) SKIP_TEST("the sanitizers take more memory than the jobs have");
    Bundle bundle;
    fs::copy(pinfold::testing::source_root() / "bundles/demo", bundle.host() / "demo");  // which that user can read
    SpawnOptions spawn = normal_user(bundle);
    spawn.env.push_back("PINFOLD_BIN=" + runtime_command()[0]);
    const Ended demo = run_program({bundle.host() / "demo/run"}, spawn);
    CAPTURE(demo.err);
    CHECK(demo.status == 0);
    // Its memory is held by rlimits: the program is told that there is no more.
    for (const char* row :
         {"a friendly script  by itself         0  nothing\n",
          "a snoop            by itself         0  denied: ", "a fork bomb        timed out       124  2 s\n",
          "a memory bomb      by itself         2  ", "an endless loop    timed out       124  1 s\n"}) {
        CHECK_MESSAGE(demo.out.find(row) != std::string::npos, demo.out);
    }
}

TEST_CASE("demo: README and manual configure the engines as the tests do") {
    PINFOLD_ONLY();
    const std::string readme = read_text(pinfold::testing::source_root() / "README.md");
    const std::string manual = read_text(pinfold::testing::source_root() / "man/pinfold-engines.7.scd");
    for (const char* file : {"docker/daemon.json", "containerd/config.toml", "containers/containers.conf"}) {
        CAPTURE(file);
        std::string text = read_text(pinfold::testing::source_root() / "tests/engines/etc" / file);
        text.resize(std::min(text.size(), text.find("\n# What only these tests need")));
        REQUIRE(text.size() > 50);
        CHECK(readme.find(text) != std::string::npos);
        CHECK(manual.find(text) != std::string::npos);
    }
}
