// The steps of a start, told: every config that an engine wrote can be planned and printed.
#include "process/parent_steps.hpp"

#include <filesystem>

#include "base/fs.hpp"
#include "json/json.hpp"
#include "spec/parse.hpp"
#include "support/source_root.hpp"
#include "support/testing.hpp"

using namespace pinfold;

namespace {

// The strings are copied from the document, or taken from it.
Spec spec_of(const std::string& path, bool take) {
    const std::string text = read_file(path).value();
    Json json = parse_json(text, path).value();
    Problems problems;
    return take ? parse_spec(std::move(json), problems) : parse_spec(json, problems);
}

}  // namespace

TEST_CASE("steps: engines' configs give valid JSON with the steps in order") {
    HostFacts host;
    host.capabilities = ~uint64_t{0};
    host.cgroup.mount = "/sys/fs/cgroup";
    int seen = 0;
    for (const auto& entry : std::filesystem::directory_iterator(testing::source_root() / "tests/data/configs")) {
        const std::string name = entry.path().filename();
        if (!name.ends_with("-v2.json")) continue;
        CAPTURE(name);
        const auto plan = make_plan(spec_of(entry.path(), false), {.id = "web", .bundle = "/bundle"}, host);
        const auto same = make_plan(spec_of(entry.path(), true), {.id = "web", .bundle = "/bundle"}, host);
        REQUIRE(plan);
        REQUIRE(same);
        CHECK(dump_plan(*same) == dump_plan(*plan));
        const auto json = parse_json(dump_plan(*plan), "plan");
        REQUIRE(json);
        const Json::Array* steps = json->find("steps")->array();
        REQUIRE(steps != nullptr);
        CHECK(*steps->front().find("by")->string() == "parent");
        CHECK(*steps->back().find("step")->string() == "exec");
        // A step that is taken has something to do, and says it.
        for (const Json& step : *steps) {
            CAPTURE(*step.find("step")->string());
            CHECK(!step.find("actions")->array()->empty());
        }
        ++seen;
    }
    CHECK(seen >= 10);
}
