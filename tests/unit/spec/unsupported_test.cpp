// What is not supported yet is refused where it is really used, and README.md lists it.
#include "spec/parse.hpp"

#include <set>
#include <string>
#include <vector>

#include "base/fs.hpp"
#include "base/strings.hpp"
#include "documents.hpp"
#include "support/testing.hpp"

using namespace pinfold;

namespace {

std::vector<std::string> refused(std::string_view path, std::string_view value) {
    Problems problems;
    refuse_unsupported(testing::edited(testing::good_config(), {{path, value}}), problems);
    std::vector<std::string> paths;
    for (const Problem& problem : problems.items()) paths.push_back(problem.path);
    return paths;
}

}  // namespace

TEST_CASE("unsupported: null, zero, false and empty values ask for nothing") {
    CHECK(refused("linux.intelRdt", "null").empty());
    CHECK(refused("linux.intelRdt", R"({"closID": "", "enableMonitoring": false, "schemata": []})").empty());
}

TEST_CASE("unsupported: anything else is refused") {
    using Paths = std::vector<std::string>;
    CHECK(refused("linux.intelRdt", R"({"closID": "", "schemata": ["L3:0=f"]})") == Paths{"linux.intelRdt"});
    CHECK(refused("linux.intelRdt.enableMonitoring", "true") == Paths{"linux.intelRdt"});
    CHECK(refused("linux.intelRdt.closID", R"("x")") == Paths{"linux.intelRdt"});
}

TEST_CASE("unsupported: a document of its own is looked at from its place in config.json") {
    const Json document = testing::json(R"({"intelRdt": {"closID": "x"}, "seccomp": {"flags": ["x"]}})");
    Problems problems;
    refuse_unsupported(document, problems, "linux");
    CHECK(testing::lines(problems) ==
          std::vector<std::string>{"intelRdt: not supported yet: classes of service are not assigned"});
}

TEST_CASE("unsupported: README.md lists exactly what is not supported yet") {
    const Result<std::string> readme = read_file(testing::source_root() / "README.md");
    REQUIRE_MESSAGE(readme, readme.error().message);
    constexpr std::string_view kBegin = "<!-- unsupported:begin -->\n";
    const size_t begin = readme->find(kBegin);
    const size_t end = readme->find("<!-- unsupported:end -->");
    REQUIRE(begin != std::string::npos);
    REQUIRE(end != std::string::npos);
    const std::string list = readme->substr(begin + kBegin.size(), end - begin - kBegin.size());
    std::set<std::string> listed;
    for (const std::string_view line : split(list, '\n')) {
        if (line.starts_with("- `") && line.ends_with('`')) listed.emplace(line.substr(3, line.size() - 4));
    }
    std::set<std::string> expected;
    for (const Unsupported& entry : not_yet_supported()) expected.emplace(entry.path);
    CHECK(join({listed.begin(), listed.end()}, "\n") == join({expected.begin(), expected.end()}, "\n"));
}

TEST_CASE("unsupported: a property is supported unless it, or what it is part of, is listed") {
    CHECK(is_supported("process.args"));
    CHECK(is_supported("linux"));  // parts of it are listed, not it
    for (const Unsupported& entry : not_yet_supported()) {
        CAPTURE(entry.path);
        CHECK_FALSE(is_supported(entry.path));
        CHECK_FALSE(is_supported(std::string(entry.path) + ".part"));
        CHECK(is_supported(std::string(entry.path) + "AndMore"));
    }
}
