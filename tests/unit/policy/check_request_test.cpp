// A sandbox's wishes against policies.
#include "policy/check_request.hpp"
#include "support/testing.hpp"

using namespace pinfold;

namespace {

Policies with(const std::string& text) { return {Policy(), parse_policy(text, "p.json").value()}; }

std::vector<std::string> violations(const std::string& text, const SandboxRequest& request) {
    return find_violations(with(text), request);
}

using Lines = std::vector<std::string>;

}  // namespace

TEST_CASE("request: without rules everything goes") {
    const SandboxRequest wish{{}, "host", "/tmp/x.json"};
    CHECK(check_request({Policy()}, wish));
    CHECK(check_request(with("{}"), wish));
}

TEST_CASE("request: each limit is compared, and no limit is above all") {
    const std::string text =
        R"({"limits": {"cpu_cores": 1.5, "memory_mb": 4096, "disk_mb": 1, "max_processes": 2, "timeout_seconds": 3}})";
    CHECK(violations(text, {{1.5, 4096, 1, 2, 3}}).empty());
    CHECK(violations(text, {{2.25, 8192, 2, 3, 4}}) ==
          Lines{"limits.cpu_cores: 2.25 is above 1.5 (p.json)", "limits.memory_mb: 8192 is above 4096 (p.json)",
                "limits.disk_mb: 2 is above 1 (p.json)", "limits.max_processes: 3 is above 2 (p.json)",
                "limits.timeout_seconds: 4 is above 3 (p.json)"});
    CHECK(violations(text, {}).size() == 5);
    CHECK(violations(text, {{1, {}, 1, 1, 1}}) == Lines{"limits.memory_mb: unlimited is above 4096 (p.json)"});
}

TEST_CASE("request: ports are those that are listed, by address, and none without a list") {
    const auto wish = [](const char* address, int port) {
        SandboxRequest request;
        request.ports = {{address, static_cast<uint16_t>(port)}};
        return request;
    };
    CHECK(check_request({Policy()}, wish("0.0.0.0", 80)));
    CHECK(violations("{}", wish("127.0.0.1", 0)) == Lines{"publish: '127.0.0.1:0' is not in an empty list (p.json)"});
    const std::string listed = R"({"publish": ["127.0.0.1", "0.0.0.0:443", "[::0:1]:8000-8999"]})";
    const auto allows = [&](const char* address, int port) { return violations(listed, wish(address, port)).empty(); };
    for (const int port : {0, 1024, 65535}) CHECK(allows("127.0.0.1", port));
    CHECK_FALSE(allows("127.0.0.1", 1023));
    CHECK_FALSE(allows("127.0.0.2", 8080));
    CHECK(allows("0.0.0.0", 443));
    for (const int port : {0, 442, 444}) CHECK_FALSE(allows("0.0.0.0", port));
    CHECK(allows("::1", 8000));
    CHECK(allows("::1", 8999));
    for (const int port : {0, 7999, 9000}) CHECK_FALSE(allows("::1", port));
}

TEST_CASE("request: network, number of sandboxes") {
    CHECK(violations(R"({"network": ["none"]})", {{}, "none"}).empty());
    CHECK(violations(R"({"network": ["none"]})", {{}, "host"}) == Lines{"network: 'host' is not in none (p.json)"});
    CHECK(violations(R"({"network": []})", {}) == Lines{"network: 'none' is not in an empty list (p.json)"});
    const Policies two = with(R"({"max_sandboxes": 2})");
    CHECK(check_count(two, 1));
    CHECK(check_count(two, 2).error().message == "policy: max_sandboxes: 2 of 2 run already (p.json)");
}

TEST_CASE("request: profiles by name, files only where they are listed or allowed") {
    struct Case {
        const char* policy;
        const char* profile;
        bool allowed;
    };
    const Case cases[] = {
        {R"({"profiles": ["strict"]})", "strict", true},
        {R"({"profiles": ["strict"]})", "default", false},
        {R"({"profiles": ["strict"]})", "/tmp/own.json", false},
        {R"({"profiles": ["strict", "/tmp/own.json"]})", "/tmp/own.json", true},
        {R"({"profiles": ["strict", "/tmp/own.json"]})", "/tmp/../tmp/own.json", false},
        {R"({"profiles": ["strict"], "allow_profile_files": true})", "./own", true},
        {R"({"allow_profile_files": false})", "own.json", false},
        {R"({"allow_profile_files": false})", "default", true},
        {R"({"profiles": []})", "", true},
    };
    for (const Case& one : cases) {
        CAPTURE(one.policy);
        CAPTURE(one.profile);
        CHECK(violations(one.policy, {{}, "none", one.profile}).empty() == one.allowed);
    }
}

TEST_CASE("request: of several policies the strictest holds, and the error names all that is broken") {
    Policies policies = with(R"({"limits": {"memory_mb": 100}})");
    policies.push_back(parse_policy(R"({"limits": {"memory_mb": 50}, "network": ["none"]})", "q.json").value());
    CHECK(check_request(policies, {{{}, 50}}));
    const Result<void> one = check_request(policies, {{{}, 70}});
    REQUIRE_FALSE(one);
    CHECK(one.error().code == kPolicyRefusal);
    CHECK(one.error().message == "policy: limits.memory_mb: 70 is above 50 (q.json)");
    const Result<void> many = check_request(policies, {{{}, 200}, "host"});
    REQUIRE_FALSE(many);
    CHECK(many.error().message.starts_with(
        "policy: 3 rules are broken\n  limits.memory_mb: 200 is above 100 (p.json)\n"));
}
