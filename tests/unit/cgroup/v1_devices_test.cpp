// Device rules in the words of cgroup v1: they mean what the device program means.
#include "cgroup/v1_limits.hpp"

#include <algorithm>
#include <random>

#include "base/strings.hpp"
#include "cgroup/device_program.hpp"
#include "device_eval.hpp"
#include "support/testing.hpp"

using namespace pinfold;
using namespace pinfold::testing;

namespace {

std::string written(std::initializer_list<DeviceRule> rules) {
    const auto writes = v1_device_writes(std::vector<DeviceRule>(rules));
    if (!writes) return concat("error: ", writes.error().message);
    std::vector<std::string> items;
    for (const CgroupWrite& write : *writes) items.push_back(concat(write.file.substr(8), ' ', write.value));
    return join(items, "; ");
}

const char* const kStandard =
    "allow c 1:3 rw; allow c 1:5 rw; allow c 1:7 rw; allow c 1:8 rw; allow c 1:9 rw; allow c 5:0 rw; allow c 5:1 rw; "
    "allow c 5:2 rw; allow c 136:* rw; allow c *:* m; allow b *:* m";

bool matches(std::string_view pattern, uint32_t number) { return pattern == "*" || pattern == std::to_string(number); }

// What the kernel makes of the writes: a verdict for all, and exceptions that all count alike.
bool kernel_allows(const std::vector<CgroupWrite>& writes, const DeviceRequest& request) {
    const bool otherwise = writes[0].file == "devices.allow";
    for (const char access : request.access) {
        const bool excepted = std::any_of(writes.begin() + 1, writes.end(), [&](const CgroupWrite& write) {
            const auto words = split(write.value, ' ');
            const auto numbers = split(words[1], ':');
            return words[0][0] == request.type && matches(numbers[0], request.major) &&
                   matches(numbers[1], request.minor) && words[2].find(access) != std::string_view::npos;
        });
        if (excepted == otherwise) return false;
    }
    return true;
}

DeviceRule random_rule(std::mt19937& random) {
    const auto number = [&]() -> std::optional<int64_t> {
        const int64_t choices[] = {-1, 1, 3, 10};
        return choices[random() % 4];
    };
    const char* accesses[] = {"", "r", "w", "rw", "m", "rwm"};
    return {random() % 2 == 0, "abc"[random() % 3], number(), number(), accesses[random() % 6]};
}

}  // namespace

TEST_CASE("v1 devices: what engines send") {
    const DeviceRule deny_all;
    const DeviceRule allow_all{true, 'a', {}, {}, "rwm"};
    CHECK(written({}) == concat("deny a; ", kStandard));
    CHECK(written({deny_all, {true, 'c', -1, -1, "m"}, {true, 'c', 1, 5, "rwm"}, {true, 'c', 1, 3, "rwm"}}) ==
          "deny a; allow c 1:5 rw; allow c 1:3 rw; allow c 1:7 rw; allow c 1:8 rw; allow c 1:9 rw; allow c 5:0 rw; "
          "allow c 5:1 rw; allow c 5:2 rw; allow c 136:* rw; allow c *:* m; allow b *:* m");
    CHECK(written({allow_all}) == "allow a");
    CHECK(written({allow_all, {false, 'b', 8, {}, "w"}}) == "allow a; deny b 8:* w");
    CHECK(written({allow_all, {true, 'c', 1, 3, "r"}, deny_all}) == concat("deny a; ", kStandard));
}

TEST_CASE("v1 devices: what is taken back, and what cannot be") {
    CHECK(written({{true, 'c', 10, 229, "rw"}, {false, 'c', 10, 229, "w"}}) ==
          concat("deny a; allow c 10:229 r; ", kStandard));
    CHECK(written({{true, 'c', 10, 229, "rw"}, {false, 'c', 10, {}, "rw"}}) == concat("deny a; ", kStandard));
    CHECK(written({{true, 'c', 10, {}, "rw"}, {false, 'c', 10, 229, "w"}}) ==
          "error: linux.resources.devices: cgroup v1 cannot deny 'c 10:229 w' and allow the rest of 'c 10:* rw'");
    CHECK(written({{true, 'c', 10, {}, "r"}, {false, 'c', 10, 229, "w"}}) ==
          concat("deny a; allow c 10:* r; ", kStandard));
}

TEST_CASE("v1 devices: random rules mean what the device program means") {
    std::mt19937 random(20250731);
    int compared = 0;
    int disagreements = 0;
    for (int round = 0; round < 800; ++round) {
        std::vector<DeviceRule> rules(random() % 6);
        for (DeviceRule& rule : rules) rule = random_rule(random);
        const auto writes = v1_device_writes(rules);
        if (!writes) continue;
        const auto program = device_program(rules);
        for (const char type : {'b', 'c'}) {
            for (const uint32_t major : {1U, 10U, 2U}) {
                for (const uint32_t minor : {1U, 3U, 2U}) {
                    for (const char* access : {"r", "w", "rw", "m", "rwm"}) {
                        const DeviceRequest request{type, major, minor, access};
                        disagreements += device_allowed(program, request) != kernel_allows(*writes, request);
                        ++compared;
                    }
                }
            }
        }
    }
    CHECK(disagreements == 0);
    CHECK(compared > 20'000);
}
