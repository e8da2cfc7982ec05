// Which files are policies, and which could have been changed by others.
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>

#include "policy/policy.hpp"
#include "support/temp_dir.hpp"
#include "support/testing.hpp"

using namespace pinfold;
using pinfold::testing::TempDir;

namespace {

struct File {
    TempDir dir;
    std::string path = dir.file("p.json");

    explicit File(const std::string& text = R"({"audit": "/a", "forbidden_paths": ["/srv"]})") {
        std::ofstream(path) << text;
        REQUIRE(::chmod(path.c_str(), 0644) == 0);
    }
    std::string refusal() const {
        const Result<Policies> policies = load_policies(path);
        REQUIRE_FALSE(policies);
        return policies.error().message + " hint: " + policies.error().hint;
    }
};

}  // namespace

TEST_CASE("policies: an added one comes on top of what holds anyway") {
    const File file;
    const Policies policies = load_policies(file.path).value();
    REQUIRE(policies.size() >= 2);
    CHECK(policies.front().mounts.forbidden_paths == default_forbidden_paths());
    CHECK(policies.back().mounts.origin == file.path);
    CHECK(policies.back().mounts.forbidden_paths == std::vector<std::string>{"/srv"});
    CHECK_FALSE(open_allowed(policies, "/srv", Access::read));
    CHECK_FALSE(open_allowed(policies, "/etc/shadow", Access::read));
    CHECK(audit_files(policies).back() == "/a");
}

TEST_CASE("policies: a file that others could have changed is refused, with the remedy") {
    const File file;
    for (const mode_t mode : {mode_t(0664), mode_t(0646)}) {
        REQUIRE(::chmod(file.path.c_str(), mode) == 0);
        CHECK(file.refusal() ==
              "policy: " + file.path + " can be changed by others than its owner hint: chmod go-w " + file.path);
    }
    REQUIRE(::chmod(file.path.c_str(), 0644) == 0);
    if (::geteuid() != 0) SKIP_TEST("needs root");
    REQUIRE(::chown(file.path.c_str(), 65000, 0) == 0);
    CHECK(file.refusal() ==
          "policy: " + file.path + " belongs to user 65000, who could change it hint: chown root:root " + file.path);
}

TEST_CASE("policies: a missing or mistaken added file is an error") {
    CHECK(File("{").refusal().find("p.json") != std::string::npos);
    CHECK_FALSE(load_policies("/nonexistent/p.json"));
}
