// The device program's verdicts, evaluated in userland, and the kernel's consent to it.
#include "cgroup/device_program.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <random>

#include "base/strings.hpp"
#include "device_eval.hpp"
#include "real_group.hpp"
#include "support/testing.hpp"

using namespace pinfold;
using namespace pinfold::testing;

namespace {

const DeviceRule kDenyAll{false, 'a', {}, {}, "rwm"};
const DeviceRule kAllowAll{true, 'a', {}, {}, "rwm"};

struct Case {
    const char* what;
    std::vector<DeviceRule> rules;
    DeviceRequest request;
    bool allowed;
};

const Case kCases[] = {
    {"empty: a device that is not standard", {}, {'c', 1, 11, "r"}, false},
    {"empty: a disk", {}, {'b', 8, 0, "r"}, false},
    {"empty: null", {}, {'c', 1, 3, "rw"}, true},
    {"empty: zero", {}, {'c', 1, 5, "r"}, true},
    {"empty: full", {}, {'c', 1, 7, "rw"}, true},
    {"empty: random", {}, {'c', 1, 8, "rw"}, true},
    {"empty: urandom", {}, {'c', 1, 9, "r"}, true},
    {"empty: tty", {}, {'c', 5, 0, "rw"}, true},
    {"empty: console", {}, {'c', 5, 1, "rw"}, true},
    {"empty: ptmx", {}, {'c', 5, 2, "rw"}, true},
    {"empty: any pts", {}, {'c', 136, 1'000'000, "rw"}, true},
    {"empty: mem is no null", {}, {'c', 1, 1, "r"}, false},
    {"empty: a block device with null's numbers", {}, {'b', 1, 3, "r"}, false},
    {"empty: making a character node", {}, {'c', 10, 200, "m"}, true},
    {"empty: making a block node", {}, {'b', 8, 0, "m"}, true},
    {"empty: making a node and reading it", {}, {'b', 8, 0, "mr"}, false},
    {"deny all leaves the standard devices", {kDenyAll}, {'c', 1, 3, "rw"}, true},
    {"deny all denies the rest", {kDenyAll}, {'c', 10, 229, "rw"}, false},
    {"allow all", {kAllowAll}, {'b', 8, 0, "rwm"}, true},
    {"the later rule wins: allow after deny", {kDenyAll, {true, 'c', 10, 229, ""}}, {'c', 10, 229, "rw"}, true},
    {"the later rule wins: deny after allow", {kAllowAll, {false, 'c', 10, 229, ""}}, {'c', 10, 229, "r"}, false},
    {"deny after allow leaves the neighbours", {kAllowAll, {false, 'c', 10, 229, ""}}, {'c', 10, 228, "rw"}, true},
    {"deny all after an allow", {{true, 'c', 10, 229, ""}, kDenyAll}, {'c', 10, 229, "r"}, false},
    {"any minor", {{true, 'c', 10, {}, "rw"}}, {'c', 10, 77, "rw"}, true},
    {"any minor is not any major", {{true, 'c', 10, {}, "rw"}}, {'c', 11, 77, "r"}, false},
    {"-1 is any, as engines write it", {{true, 'c', 10, -1, "rw"}}, {'c', 10, 77, "rw"}, true},
    {"any major", {{true, 'c', {}, 7, "rw"}}, {'c', 99, 7, "rw"}, true},
    {"any major is not any minor", {{true, 'c', {}, 7, "rw"}}, {'c', 99, 8, "rw"}, false},
    {"any block device", {{true, 'b', {}, {}, "rw"}}, {'b', 8, 1, "rw"}, true},
    {"any block device is no character device", {{true, 'b', {}, {}, "rw"}}, {'c', 8, 1, "rw"}, false},
    {"any type, one number: block", {{true, 'a', 8, 1, "rw"}}, {'b', 8, 1, "rw"}, true},
    {"any type, one number: character", {{true, 'a', 8, 1, "rw"}}, {'c', 8, 1, "rw"}, true},
    {"any type, one number: no other", {{true, 'a', 8, 1, "rw"}}, {'b', 8, 2, "rw"}, false},
    {"read allowed, read asked", {{true, 'b', 8, 0, "r"}}, {'b', 8, 0, "r"}, true},
    {"read allowed, write asked", {{true, 'b', 8, 0, "r"}}, {'b', 8, 0, "w"}, false},
    {"read allowed, both asked", {{true, 'b', 8, 0, "r"}}, {'b', 8, 0, "rw"}, false},
    {"read and write allowed apart, both asked",
     {{true, 'b', 8, 0, "r"}, {true, 'b', {}, {}, "w"}},
     {'b', 8, 0, "rw"},
     true},
    {"write denied, read asked", {kAllowAll, {false, 'b', 8, 0, "w"}}, {'b', 8, 0, "r"}, true},
    {"write denied, both asked", {kAllowAll, {false, 'b', 8, 0, "w"}}, {'b', 8, 0, "rw"}, false},
    {"write denied, then allowed again",
     {kAllowAll, {false, 'b', 8, 0, "w"}, {true, 'b', 8, 0, "w"}},
     {'b', 8, 0, "rw"},
     true},
    {"making alone is no use", {{true, 'b', 8, 0, "m"}}, {'b', 8, 0, "r"}, false},
    {"no letter that means anything", {{true, 'b', 8, 0, "x"}}, {'b', 8, 0, "r"}, false},
    {"large numbers", {{true, 'c', 4095, 1'048'575, "rw"}}, {'c', 4095, 1'048'575, "rw"}, true},
    {"large numbers do not alias", {{true, 'c', 511, 1'048'575, "rw"}}, {'c', 2559, 1'048'575, "rw"}, false},
    {"numbers beyond dev_t do not alias", {{true, 'c', 4'294'967'306, 229, "rw"}}, {'c', 10, 229, "r"}, false},
    {"a minor beyond dev_t does not alias", {{true, 'c', 10, 4'294'967'525, "rw"}}, {'c', 10, 229, "r"}, false},
};

// The rules' meaning, in the plainest way: each access is decided by the last rule that speaks of it. Of the standard
// devices, only null is among the requests.
bool plainly_allowed(const std::vector<DeviceRule>& rules, const DeviceRequest& request) {
    const bool standard = request.type == 'c' && request.major == 1 && request.minor == 3;
    for (const char access : request.access) {
        bool allowed = standard || access == 'm';
        const bool fixed = allowed;
        for (const DeviceRule& rule : rules) {
            const bool about = (rule.type == 'a' || rule.type == request.type) &&
                               rule.major.value_or(request.major) == request.major &&
                               rule.minor.value_or(request.minor) == request.minor &&
                               (rule.access.empty() || rule.access.find(access) != std::string::npos);
            if (about && !fixed) allowed = rule.allow;
        }
        if (!allowed) return false;
    }
    return true;
}

template <class T, size_t N>
const T& pick(const T (&values)[N], std::mt19937& random) {
    return values[random() % N];
}

DeviceRule random_rule(std::mt19937& random) {
    static const std::optional<int64_t> kNumbers[] = {std::nullopt, 1, 3, 8, 600};
    static const char* const kAccess[] = {"", "r", "w", "rw", "m", "rwm"};
    static const char kTypes[] = {'a', 'b', 'c'};
    DeviceRule rule;
    rule.allow = random() % 2 == 0;
    rule.type = pick(kTypes, random);
    rule.major = pick(kNumbers, random);
    rule.minor = pick(kNumbers, random);
    rule.access = pick(kAccess, random);
    return rule;
}

}  // namespace

TEST_CASE("device program: verdicts") {
    for (const Case& test : kCases) {
        CAPTURE(test.what);
        CHECK(device_allowed(device_program(test.rules), test.request) == test.allowed);
    }
}

TEST_CASE("device program: random rules mean what they say") {
    std::mt19937 random(20240607);
    int disagreements = 0;
    int allowed = 0;
    for (int round = 0; round < 2000; ++round) {
        std::vector<DeviceRule> rules(random() % 8);
        for (DeviceRule& rule : rules) rule = random_rule(random);
        const auto program = device_program(rules);
        for (const char type : {'b', 'c'}) {
            for (const uint32_t major : {1U, 8U, 600U, 2U}) {
                for (const uint32_t minor : {1U, 3U, 600U, 2U}) {
                    for (const char* access : {"r", "w", "rw", "m", "rwm"}) {
                        const DeviceRequest request{type, major, minor, access};
                        const bool verdict = device_allowed(program, request);
                        disagreements += verdict != plainly_allowed(rules, request);
                        allowed += verdict;
                    }
                }
            }
        }
    }
    CHECK(disagreements == 0);
    CHECK(allowed > 50'000);
}

TEST_CASE("device program: what engines send is no longer than the standard devices") {
    const std::vector<DeviceRule> docker = {kDenyAll,
                                            {true, 'c', 1, 5, "rwm"},
                                            {true, 'c', 1, 3, "rwm"},
                                            {true, 'c', 5, 0, "rwm"},
                                            {false, 'c', 10, 229, "rwm"}};
    CHECK(device_program(docker).size() == device_program({}).size());
}

TEST_CASE("device program: none is needed where nothing is denied") {
    CHECK(allows_every_device(std::vector{kAllowAll}));
    CHECK(allows_every_device(std::vector{kDenyAll, kAllowAll}));
    CHECK(allows_every_device(std::vector{kAllowAll, {true, 'c', 10, 229, "rw"}}));
    CHECK_FALSE(allows_every_device({}));
    CHECK_FALSE(allows_every_device(std::vector{kAllowAll, kDenyAll}));
    CHECK_FALSE(allows_every_device(std::vector{kAllowAll, {false, 'c', 10, 229, "w"}}));
    CHECK_FALSE(allows_every_device(std::vector{DeviceRule{true, 'a', {}, {}, "r"}}));
    CHECK(allows_every_device(std::vector{DeviceRule{true, 'a', {}, {}, "rw"}}));  // making a node is free
}

TEST_CASE("device program: the kernel takes every one of them") {
    RealGroup place;
    if (!place.usable()) SKIP_TEST(place.why_not());
    REQUIRE(place.make());
    for (const Case& test : kCases) {
        CAPTURE(test.what);
        const auto attached = attach_device_program(place.open().get(), device_program(test.rules));
        CHECK_MESSAGE(attached.has_value(), (attached ? "" : attached.error().message));
        place.clear();  // a group takes 64 programs at most
    }
    std::vector<DeviceRule> many;
    for (int64_t i = 0; i < 300; ++i) many.push_back({i % 2 == 0, 'c', 200 + i, i, i % 3 == 0 ? "r" : "rw"});
    const auto attached = attach_device_program(place.open().get(), device_program(many));
    CHECK_MESSAGE(attached.has_value(), (attached ? "" : attached.error().message));
}

TEST_CASE("device program: a bad one is refused with its name") {
    RealGroup place;
    if (!place.usable()) SKIP_TEST(place.why_not());
    REQUIRE(place.make());
    const auto attached = attach_device_program(place.open().get(), std::vector<bpf_insn>(1));
    REQUIRE_FALSE(attached.has_value());
    CHECK(attached.error().message.starts_with("linux.resources.devices: load the device program: "));
    const auto nowhere = attach_device_program(-1, device_program({}));
    REQUIRE_FALSE(nowhere.has_value());
    CHECK(nowhere.error().message.starts_with("linux.resources.devices: attach the device program: "));
}
