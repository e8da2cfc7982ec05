// How problems are collected and told.
#include "spec/reader.hpp"

#include "base/strings.hpp"
#include "documents.hpp"
#include "support/testing.hpp"

using namespace pinfold;

TEST_CASE("problems: one is told on one line, more on a line each") {
    Problems problems;
    CHECK(problems.empty());
    problems.add("process.cwd", "wrong");
    CHECK(to_error(problems, "b/config.json").message == "b/config.json: process.cwd: wrong");
    problems.add("mounts[1]", "also wrong");
    CHECK(to_error(problems, "config.json").message ==
          "config.json: 2 problems\n  process.cwd: wrong\n  mounts[1]: also wrong");
    CHECK(to_error(problems, "config.json").code == 0);
}

TEST_CASE("problems: the document as a whole has no path") {
    Problems problems;
    problems.add("", "found an array, allowed: an object");
    CHECK(to_error(problems, "config.json").message == "config.json: found an array, allowed: an object");
}

TEST_CASE("problems: the first of a path counts, and nothing inside of what could not be read") {
    Problems problems;
    problems.add("a", "first");
    problems.add("a", "second");
    problems.add("a.b", "inside a, which could be read");
    problems.add_unreadable("c", "no object");
    problems.add("c.d", "echo");
    problems.add("c[0]", "echo");
    problems.add("cd", "another property");
    CHECK(testing::lines(problems) == std::vector<std::string>{"a: first", "a.b: inside a, which could be read",
                                                               "c: no object", "cd: another property"});
}

TEST_CASE("problems: more than anyone would read are counted") {
    Problems problems;
    for (size_t i = 0; i < 250; ++i) problems.add(element_path("a", i), "wrong");
    const std::string message = to_error(problems, "config.json").message;
    CHECK(message.starts_with("config.json: 250 problems\n  a[0]: wrong\n"));
    CHECK(message.ends_with("\n  a[99]: wrong\n  and 150 more"));
}

TEST_CASE("problems: paths quote the keys that are not plain words") {
    CHECK(member_path("", "a") == "a");
    CHECK(member_path("a", "b-c_1") == "a.b-c_1");
    CHECK(member_path("a", "b.c") == R"(a["b.c"])");
    CHECK(member_path("a", "") == R"(a[""])");
    CHECK(member_path("a", "x\"\n") == R"(a["x\"\n"])");
    CHECK(element_path("a.b", 12) == "a.b[12]");
}

TEST_CASE("problems: a long text is cut, between characters") {
    const std::string long_text(150, 'x');
    CHECK(expected_but_found(long_text, "less") ==
          concat("found \"", long_text.substr(0, 100), "\"..., allowed: less"));
    CHECK(expected_but_found(std::string(99, 'x') + "\xc3\xa4zz", "less") ==
          concat("found \"", long_text.substr(0, 99), "\"..., allowed: less"));
}

TEST_CASE("problems: several in one configuration are told at once") {
    const Json config = testing::edited(testing::good_config(), {{"ociVersion", "3"},
                                                                 {"root", "7"},
                                                                 {"mounts[1].type", R"("tmpfs")"},
                                                                 {"process.cwd", R"("tmp")"},
                                                                 {"process.user.uid", "-1"},
                                                                 {"linux.namespaces[1].type", R"("foo")"},
                                                                 {"linux.maskedPaths", R"(["x"])"}});
    CHECK(testing::problems_of(config) ==
          std::vector<std::string>{
              "ociVersion: found 3, allowed: a string", "root: found 7, allowed: an object",
              "mounts[0]: found null, allowed: an object", "mounts[1].destination: missing, required: a string",
              "process.user.uid: found -1, allowed: a whole number from 0 to 4294967295",
              R"(linux.namespaces[1].type: found "foo", allowed: mount, pid, network, uts, ipc, user, cgroup, time)",
              R"(process.cwd: found "tmp", allowed: an absolute path)",
              R"(linux.maskedPaths[0]: found "x", allowed: an absolute path)"});
}

TEST_CASE("problems: of a document that is no object only that is said") {
    CHECK(testing::problems_of(testing::json("[]")) ==
          std::vector<std::string>{": found an array, allowed: an object"});
}
