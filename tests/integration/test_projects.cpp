// Whole projects, built and tested in sandboxes as a CI service does it: tests/projects has them.
#include <sys/stat.h>
#include <unistd.h>

#include <memory>

#include "sandbox.hpp"
#include "support/source_root.hpp"
#include "support/temp_dir.hpp"

using namespace pinfold::integration;
using pinfold::testing::TempDir;

namespace {

struct Project {
    std::string name;
    Command test;
    std::string reports;  // a pattern
    std::string first;    // of them: that of the tests that pass
};

const std::vector<Project>& projects() {
    static const std::vector<Project> all = {
        {"cpp", {"meson", "test", "-C", "build", "--no-rebuild"}, "build/*.xml", "words.xml"},
        {"python", {"python3", "run_tests.py"}, "reports/*.xml", "counter.xml"},
        {"node", {"sh", "run-tests"}, "reports/*.xml", "words.xml"}};
    return all;
}

struct End {
    const char* name;
    std::vector<std::string> options;
    int code;
    const char* status;
    json stopped_by;
};

std::string long_enough() { return pinfold::testing::slow_machine() ? "60s" : "6s"; }

// The one that takes the longest comes first: the others run meanwhile.
std::vector<End> all_ends() {
    return {{"hang", {"--timeout", long_enough()}, 124, "timed_out", "timeout_seconds"},
            {"pass", {}, 0, "exited", nullptr},
            {"fail", {}, 1, "exited", nullptr},
            {"memory", {"--memory", "256m"}, 137, "oom_killed", "memory_mb"}};
}

void give(const fs::path& tree, uid_t owner) {
    REQUIRE(::lchown(tree.c_str(), owner, owner) == 0);
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(tree))
        REQUIRE(::lchown(entry.path().c_str(), owner, owner) == 0);
}

// The projects and a directory for what comes out of them, in a new one of the owner's.
class Checkout {
public:
    Checkout(const std::string& below, uid_t owner) : directory_(below) {
        fs::copy(pinfold::testing::source_root() / "tests/projects", path(), fs::copy_options::recursive);
        fs::create_directory(path() / "out");
        give(path(), owner);
    }

    fs::path path() const { return directory_.path(); }
    fs::path out() const { return path() / "out"; }

private:
    TempDir directory_;
};

// The checkout as it is, so that what is built stays there.
void build(const Bundle& bundle, const fs::path& directory, SpawnOptions spawn) {
    spawn.directory = directory;
    const Ended built =
        run_job(bundle, {{"--bind", ".:/workspace", "--memory", "1g"},
                         {"sh", "-c", "if ! [ -e build ]; then meson setup build; fi && meson compile -C build"},
                         spawn});
    REQUIRE_MESSAGE(built.status == 0, built.out << built.err);
}

std::string name_of(const Bundle& bundle, const Project& project, const End& end) {
    return bundle.id() + "-" + project.name + "-" + end.name;
}

// A copy of the checkout, as a job from outside should have it.
std::unique_ptr<Process> start_tests(const Bundle& bundle, const Checkout& checkout, const Project& project,
                                     const End& end, SpawnOptions spawn) {
    const std::string name = name_of(bundle, project, end);
    std::vector<std::string> words =
        bundle.verb({"sandbox", "--name", name, "--result", "-", "--copy-in", ".:.", "--copy-out",
                     project.reports + ":../out/" + name, "-e", std::string("END=") + end.name});
    words.insert(words.end(), end.options.begin(), end.options.end());
    words.emplace_back("--");
    words.insert(words.end(), project.test.begin(), project.test.end());
    spawn.directory = checkout.path() / project.name;
    return std::make_unique<Process>(words, spawn);
}

bool contains(const fs::path& file, const std::string& text) { return read_text(file).find(text) != std::string::npos; }

void check_reports(const fs::path& out, const Project& project, const End& end, const SpawnOptions& spawn) {
    const fs::path first = out / project.first, last = out / "end.xml";
    REQUIRE(fs::exists(first));
    CHECK(contains(first, "<testcase"));
    CHECK(!contains(first, "<failure"));
    const std::string name = end.name;
    if (name == "hang" && fs::exists(last)) CHECK(!contains(last, "<testcase"));
    if (name == "pass" || name == "fail") {
        REQUIRE(fs::exists(last));
        CHECK(contains(last, "<testcase"));
        CHECK(contains(last, "<failure") == (name == "fail"));
    }
    struct stat info {};
    REQUIRE(::stat(first.c_str(), &info) == 0);
    CHECK(info.st_uid == spawn.uid.value_or(0));
}

void check_end(const Bundle& bundle, const Checkout& checkout, const Project& project, const End& end,
               const Ended& ended, const SpawnOptions& spawn) {
    CAPTURE(project.name);
    CAPTURE(std::string(end.name));
    const Judged judged = judge(ended);
    CAPTURE(judged.result["stdout"].get<std::string>());
    CAPTURE(judged.result["stderr"].get<std::string>());
    CAPTURE(judged.err);
    CHECK(judged.status == end.code);
    CHECK(judged.result["status"] == end.status);
    CHECK(judged.result["stopped_by"] == end.stopped_by);
    CHECK(!judged.result.contains("copy_failures"));
    const std::string name = name_of(bundle, project, end);
    check_reports(checkout.out() / name, project, end, spawn);
    CHECK(cgroups_named(name).empty());
}

// All that hang wait for their time together.
void test_all(const Bundle& bundle, const Checkout& checkout, const std::vector<End>& ends, const SpawnOptions& spawn) {
    struct Waiting {
        const Project* project;
        const End* end;
        std::unique_ptr<Process> process;
    };
    std::vector<Waiting> waiting;
    for (const End& end : ends) {
        for (const Project& project : projects()) {
            auto process = start_tests(bundle, checkout, project, end, spawn);
            if (end.code == 124) waiting.push_back({&project, &end, std::move(process)});
            else check_end(bundle, checkout, project, end, process->finish(), spawn);
        }
    }
    for (const Waiting& one : waiting)
        check_end(bundle, checkout, *one.project, *one.end, one.process->finish(), spawn);
}

bool have_tools() {
    for (const char* tool : {"meson", "ninja", "g++", "python3", "node"}) {
        if (::access((std::string("/usr/bin/") + tool).c_str(), X_OK) != 0) return false;
    }
    return fs::exists("/usr/include/doctest/doctest.h");
}

}  // namespace

TEST_CASE("projects: root builds and tests what lies in its home, and has the reports however that ends") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    if (!have_tools()) SKIP_TEST("needs g++, meson, ninja, doctest, python3 and node in /usr");
    const Bundle bundle;
    const Checkout checkout("/root", 0);
    build(bundle, checkout.path() / "cpp", {});
    test_all(bundle, checkout, all_ends(), {});
}

TEST_CASE("projects: what is in a user's home is built and tested by root, and by that user, who goes on from there") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    if (!have_tools()) SKIP_TEST("needs g++, meson, ninja, doctest, python3 and node in /usr");
    Bundle bundle;
    const Checkout checkout("/home", kNobodySpecial);
    build(bundle, checkout.path() / "cpp", {});
    const std::vector<End> ends = all_ends();
    test_all(bundle, checkout, {ends.begin() + 1, ends.begin() + 3}, {});
    fs::remove_all(checkout.out());
    fs::create_directory(checkout.out());
    give(checkout.out(), kNobodySpecial);

    const SpawnOptions user = normal_user(bundle);
    fs::last_write_time(checkout.path() / "cpp/end_test.cpp", fs::file_time_type::clock::now());
    build(bundle, checkout.path() / "cpp", user);
    test_all(bundle, checkout, ends, user);
}
