// A policy's text: what it says, and all mistakes at once.
#include "policy/policy.hpp"
#include "support/testing.hpp"

using namespace pinfold;

namespace {

std::string mistakes(const char* text) {
    const Result<Policy> policy = parse_policy(text, "p.json");
    REQUIRE_FALSE(policy);
    return policy.error().message;
}

bool says(const std::string& message, const std::string& words) { return message.find(words) != std::string::npos; }

}  // namespace

TEST_CASE("policy: every member is read") {
    const Policy policy = parse_policy(R"({
        "limits": {"cpu_cores": 1.5, "memory_mb": 4096, "disk_mb": 100, "max_processes": 64, "timeout_seconds": 60},
        "network": ["none", "pasta"], "publish": ["127.0.0.1", "[::1]:80-90"], "max_sandboxes": 8,
        "profiles": ["default", "/etc/pinfold/own.json"], "allow_profile_files": false,
        "allowed_read_paths": ["/usr", "~/work/"], "allowed_write_paths": [], "forbidden_paths": ["/srv/*/keys"],
        "runtimes": ["runc"], "verbs": ["sandbox", "seccomp show"], "audit": "/var/log/pinfold/audit.log"})",
                                       "p.json")
                              .value();
    CHECK(policy.limits.cpu_cores == 1.5);
    CHECK(policy.limits.memory_mb == 4096);
    CHECK(policy.limits.disk_mb == 100);
    CHECK(policy.limits.max_processes == 64);
    CHECK(policy.limits.timeout_seconds == 60);
    CHECK(policy.networks == std::vector<std::string>{"none", "pasta"});
    CHECK(policy.publish == std::vector<std::string>{"127.0.0.1", "[::1]:80-90"});
    CHECK(policy.max_sandboxes == 8);
    CHECK(policy.profiles == std::vector<std::string>{"default", "/etc/pinfold/own.json"});
    CHECK(policy.allow_profile_files == false);
    CHECK(policy.mounts.allowed_read_paths == std::vector<std::string>{"/usr", "~/work"});
    CHECK(policy.mounts.allowed_write_paths == std::vector<std::string>{});
    CHECK(policy.mounts.forbidden_paths == std::vector<std::string>{"/srv/*/keys"});
    CHECK(policy.mounts.origin == "p.json");
    CHECK(policy.runtimes == std::vector<std::string>{"runc"});
    CHECK(policy.verbs == std::vector<std::string>{"sandbox", "seccomp show"});
    CHECK(policy.audit == "/var/log/pinfold/audit.log");
}

TEST_CASE("policy: what the caller's directory would decide is no rule") {
    const std::string told = mistakes(R"({"runtimes": ["runc", "bin/x", "", "/usr/bin/crun", "./runc"],
                                          "profiles": ["default", "", "own.json", "/etc/own.json"]})");
    for (const char* path : {"runtimes[1]: found \"bin/x\"", "runtimes[2]: ", "runtimes[4]: ", "profiles[1]: ",
                             "profiles[2]: found \"own.json\", allowed: a name, or an absolute path"}) {
        CHECK_MESSAGE(told.find(path) != std::string::npos, told);
    }
    for (const char* path : {"runtimes[0]", "runtimes[3]", "profiles[0]", "profiles[3]"})
        CHECK_MESSAGE(told.find(path) == std::string::npos, told);
}

TEST_CASE("policy: an empty one says nothing") {
    const Policy policy = parse_policy("{}", "p.json").value();
    CHECK_FALSE(policy.limits.cpu_cores);
    CHECK_FALSE(policy.networks);
    CHECK_FALSE(policy.mounts.allowed_read_paths);
    CHECK(policy.mounts.forbidden_paths.empty());
    CHECK(policy.audit.empty());
}

TEST_CASE("policy: all mistakes are told at once, with their places") {
    const std::string message = mistakes(R"({"limits": {"cpu_cores": "two", "memory": 1, "disk_mb": -1},
        "network": ["none", "bridge"], "max_sandboxes": 1.5, "profiles": "default", "allow_profile_file": true,
        "allowed_read_paths": ["usr", "/a/../b"], "forbidden_paths": [7], "audit": "log"})");
    for (const char* words :
         {"p.json: 11 problems", "limits.cpu_cores: found \"two\", allowed: a number", "limits.memory: unknown",
          "limits.disk_mb: found -1", "network[1]: found \"bridge\", allowed: none, host, pasta",
          "max_sandboxes: found 1.5", "profiles: found \"default\", allowed: an array", "allow_profile_file: unknown",
          "allowed_read_paths[0]: found \"usr\"", "allowed_read_paths[1]", "forbidden_paths[0]: found 7", "audit"}) {
        CAPTURE(words);
        CAPTURE(message);
        CHECK(says(message, words));
    }
}

TEST_CASE("policy: what is no object, no JSON, or a limit of nothing is refused") {
    CHECK(says(mistakes("[]"), "an object"));
    CHECK(says(mistakes("{"), "p.json"));
    CHECK(says(mistakes(R"({"audit": "/a", "audit": "/b"})"), "audit"));
    CHECK(says(mistakes(R"({"limits": {"cpu_cores": 0}})"), "above 0"));
    CHECK(says(mistakes(R"({"limits": null})"), "limits: null"));
    CHECK(says(mistakes(R"({"verbs": ["sandbox", "seccomp"]})"), "verbs[1]: found \"seccomp\""));
}

TEST_CASE("policy: a port that makes no sense is a mistake") {
    for (const char* wrong : {"8080", "localhost", "127.0.0.1:", "127.0.0.1:0", "127.0.0.1:9-8", "127.0.0.1:1-",
                              "127.0.0.1:70000", "::1", "*", ""}) {
        CAPTURE(wrong);
        const std::string text = std::string(R"({"publish": ["127.0.0.1", ")") + wrong + "\"]}";
        CHECK(says(mistakes(text.c_str()), "publish[1]"));
    }
}
