// Compiled filters beside what profiles say: at every border of every argument, by tables and at random.
#include "seccomp/as_written.hpp"

#include <algorithm>
#include <random>
#include <set>
#include <utility>

#include "calls.hpp"
#include "seccomp/argument_checks.hpp"

namespace pinfold::testing {

namespace {

using Random = std::mt19937_64;

constexpr const char* kOperators[] = {"SCMP_CMP_NE", "SCMP_CMP_LT", "SCMP_CMP_LE",       "SCMP_CMP_EQ",
                                      "SCMP_CMP_GE", "SCMP_CMP_GT", "SCMP_CMP_MASKED_EQ"};
constexpr const char* kAllowed = "SCMP_ACT_ALLOW";
constexpr uint64_t kHigh = uint64_t{1} << 32;

SyscallArg equal(uint32_t index, uint64_t value) { return {index, value, 0, "SCMP_CMP_EQ"}; }
SyscallArg masked(uint32_t index, uint64_t mask, uint64_t bits) { return {index, mask, bits, "SCMP_CMP_MASKED_EQ"}; }

uint32_t value_of(const std::string& action, const std::optional<uint32_t>& errno_ret) {
    const std::pair<const char*, uint32_t> values[] = {
        {"SCMP_ACT_ALLOW", SECCOMP_RET_ALLOW},       {"SCMP_ACT_LOG", SECCOMP_RET_LOG},
        {"SCMP_ACT_TRAP", SECCOMP_RET_TRAP},         {"SCMP_ACT_KILL_PROCESS", SECCOMP_RET_KILL_PROCESS},
        {"SCMP_ACT_KILL", SECCOMP_RET_KILL_THREAD},  {"SCMP_ACT_ERRNO", SECCOMP_RET_ERRNO | errno_ret.value_or(EPERM)},
        {"SCMP_ACT_NOTIFY", SECCOMP_RET_USER_NOTIF}, {"SCMP_ACT_TRACE", SECCOMP_RET_TRACE | errno_ret.value_or(EPERM)},
    };
    const auto* found = std::ranges::find(values, action, [](const auto& one) { return std::string(one.first); });
    REQUIRE(found != std::end(values));
    return found->second;
}

// Written a second time, without an order: of all that holds the strictest, by the kernel's list in seccomp(2).
uint32_t meant(const Seccomp& section, const std::string& name, const seccomp_data& data) {
    const uint32_t order[] = {SECCOMP_RET_KILL_PROCESS, SECCOMP_RET_KILL_THREAD, SECCOMP_RET_TRAP, SECCOMP_RET_ERRNO,
                              SECCOMP_RET_USER_NOTIF,   SECCOMP_RET_TRACE,       SECCOMP_RET_LOG,  SECCOMP_RET_ALLOW};
    const auto rank = [&](uint32_t answer) {
        return std::ranges::find(order, answer & SECCOMP_RET_ACTION_FULL) - std::begin(order);
    };
    const uint32_t otherwise = value_of(section.default_action, section.default_errno_ret);
    std::optional<uint32_t> best;
    bool is_free = false;
    for (const SyscallRule& one : section.syscalls) {
        if (std::ranges::find(one.names, name) == one.names.end()) continue;
        const auto ways = ways_to_fulfil(one);
        if (std::ranges::none_of(ways, [&](const auto& args) { return holds(args, data); })) continue;
        const uint32_t answer = value_of(one.action, one.errno_ret);
        if (one.args.empty() && (answer == otherwise || std::exchange(is_free, true))) continue;
        if (!best || rank(answer) < rank(*best)) best = answer;
    }
    return best.value_or(otherwise);
}

// Both sides of each number, in each half of it alone as well, and what is in no number's neighbourhood.
void add_borders(const SyscallArg& arg, std::set<uint64_t>& values) {
    constexpr uint64_t kLow = kHigh - 1;
    for (const uint64_t at : {arg.value, arg.value_two}) {
        for (const uint64_t near : {at - 1, at, at + 1})
            values.insert({near, near + kHigh, near - kHigh, near & kLow, near & ~kLow, near | kLow});
    }
    values.insert({arg.value | arg.value_two, arg.value_two | ~arg.value, 0, 0x7777'7777'7777'7777, ~0ULL});
}

using Borders = std::array<std::vector<uint64_t>, 6>;

// Of all arguments together where they are few; else as many of them, at random.
Borders borders_of(const Seccomp& section, const std::string& name, size_t most, Random& random) {
    std::array<std::set<uint64_t>, 6> all;
    for (const SyscallRule& one : section.syscalls) {
        if (std::ranges::find(one.names, name) == one.names.end()) continue;
        for (const SyscallArg& arg : one.args) add_borders(arg, all[arg.index]);
    }
    Borders borders;
    for (size_t i = 0; i < all.size(); ++i) {
        borders[i].assign(all[i].begin(), all[i].end());
        if (borders[i].empty()) borders[i] = {0};
        std::ranges::shuffle(borders[i], random);
        borders[i].resize(std::min(borders[i].size(), most));
    }
    return borders;
}

// The number of calls that were answered otherwise than written, of all with these arguments.
size_t wrong_answers(const Seccomp& section, const SeccompFilter& filter, const std::string& name,
                     const Borders& borders, seccomp_data data) {
    size_t wrong = 0;
    std::array<size_t, 6> at{};
    for (size_t i = 0; i < 6;) {
        for (size_t k = 0; k < 6; ++k) data.args[k] = borders[k][at[k]];
        wrong += size_t{verdict(filter, data) != meant(section, name, data)};
        for (i = 0; i < 6 && ++at[i] == borders[i].size(); ++i) at[i] = 0;
    }
    return wrong;
}

constexpr uint32_t kArchitectures[] = {SCMP_ARCH_X86_64, SCMP_ARCH_X86, SCMP_ARCH_X32};

void check_as_written(Seccomp section, const std::vector<std::string>& names, size_t most, Random& random) {
    section.architectures = {"SCMP_ARCH_X86_64", "SCMP_ARCH_X86", "SCMP_ARCH_X32"};
    const Result<SeccompFilter> merged = compile_seccomp(section);
    REQUIRE_MESSAGE(merged, merged.error().message);
    const Result<SeccompFilter> by_number = compile_by_number(section);
    REQUIRE(by_number);
    for (const std::string& name : names) {
        const Borders borders = borders_of(section, name, most, random);
        for (const uint32_t arch : kArchitectures) {
            CAPTURE(name);
            CAPTURE(arch);
            CHECK(wrong_answers(section, *merged, name, borders, call(name, {}, arch)) == 0);
            CHECK(wrong_answers(section, *by_number, name, borders, call(name, {}, arch)) == 0);
        }
    }
}

SyscallRule allow(std::vector<SyscallArg> args) { return rule({"keyctl"}, kAllowed, std::move(args)); }

// Of each libseccomp 2.5.4 makes a filter that answers otherwise, or they have something else that is easily mistaken.
const std::vector<std::vector<SyscallRule>>& nasty_rules() {
    static const std::vector<std::vector<SyscallRule>> all = {
        {allow({equal(0, 0)}), allow({equal(0, 1), equal(1, 6)})},
        {allow({equal(0, 1), equal(2, 6)}), allow({equal(0, 0)})},
        {allow({equal(0, 1), equal(1, 0), equal(2, 1)}), allow({equal(0, 0), equal(2, 1)}), allow({equal(1, 1)})},
        {allow({{0, 0, 0, "SCMP_CMP_LE"}}), allow({{0, 0x1ffffffff, 0, "SCMP_CMP_GT"}})},
        {allow({{0, 40, 0, "SCMP_CMP_LT"}, {0, 40, 0, "SCMP_CMP_GT"}})},
        {allow({masked(0, 1536, 1536), equal(0, 6)})},
        {allow({masked(0, 1536, 1536), masked(0, ~(kHigh - 1), 0), equal(0, 6)})},
        {allow({masked(0, 3, 4)}), allow({masked(0, 0, 0), equal(1, kHigh)})},
        {allow({masked(1, 0, 1)}), allow({masked(1, kHigh | 1, kHigh)})},
        {allow({{0, 0, 0, "SCMP_CMP_GE"}, {1, 0, 0, "SCMP_CMP_NE"}})},
        {allow({{0, 0, 0, "SCMP_CMP_LT"}}), allow({{0, ~0ULL, 0, "SCMP_CMP_GT"}})},
        {allow({{0, kHigh, 0, "SCMP_CMP_LT"}, {1, kHigh, 0, "SCMP_CMP_GE"}}), allow({{1, kHigh, 0, "SCMP_CMP_NE"}})},
        {allow({equal(0, 5)}), rule({"keyctl"}, "SCMP_ACT_TRAP", {equal(1, 5)}), rule({"keyctl"}, "SCMP_ACT_LOG")},
        {rule({"keyctl"}, "SCMP_ACT_TRACE", {equal(0, 1)}), rule({"keyctl"}, "SCMP_ACT_KILL", {masked(0, 1, 1)})},
        {rule({"keyctl"}, "SCMP_ACT_ERRNO", {equal(0, 1)}), allow({})},
        {rule({"keyctl"}, "SCMP_ACT_ERRNO", {equal(0, 1)}), allow({masked(0, 1, 1)})},
        {rule({"keyctl"}, "SCMP_ACT_ERRNO"), allow({equal(0, 1)})},
        {allow({}), rule({"keyctl"}, "SCMP_ACT_TRAP")},
        {rule({"keyctl"}, "SCMP_ACT_TRAP"), allow({})},
        {rule({"keyctl"}, "SCMP_ACT_ERRNO"), allow({}), rule({"keyctl"}, "SCMP_ACT_TRAP"),
         rule({"keyctl"}, "SCMP_ACT_LOG", {equal(0, 1)})},
    };
    return all;
}

struct Numbers {
    Random& random;
    uint64_t operator()() const {
        const uint64_t usual[] = {0,         1,     2,        5, 6, kHigh - 1, kHigh, kHigh + 1, 2 * kHigh - 1,
                                  2 * kHigh, ~0ULL, ~0ULL - 1};
        return random() % 5 == 0 ? random() >> (random() % 64) : usual[random() % std::size(usual)];
    }
};

SyscallRule random_rule(const std::string& name, Random& random) {
    const char* const actions[] = {"SCMP_ACT_ALLOW", "SCMP_ACT_ALLOW",        "SCMP_ACT_ALLOW", "SCMP_ACT_ERRNO",
                                   "SCMP_ACT_TRAP",  "SCMP_ACT_KILL_PROCESS", "SCMP_ACT_LOG",   "SCMP_ACT_TRACE"};
    const Numbers number{random};
    SyscallRule made = rule({name}, actions[random() % std::size(actions)]);
    if (made.action == "SCMP_ACT_ERRNO") made.errno_ret = uint32_t(random() % 3);
    for (size_t count = 1 + random() % 3; made.args.size() < count;) {
        SyscallArg arg{uint32_t(random() % 3), number(), number(), kOperators[random() % std::size(kOperators)]};
        if (random() % 4 != 0) arg.value_two &= arg.value;
        made.args.push_back(arg);
    }
    return made;
}

Seccomp random_profile(const std::vector<std::string>& names, Random& random) {
    Seccomp made = profile(random() % 4 == 0 ? "SCMP_ACT_ALLOW" : "SCMP_ACT_ERRNO");
    for (const std::string& name : names) {
        for (size_t count = 1 + random() % 4; count > 0; --count) made.syscalls.push_back(random_rule(name, random));
    }
    return made;
}

bool contradicts_itself(const Seccomp& section) {
    return compile_failure(section).ends_with("contradicts an earlier one");
}

}  // namespace

TEST_CASE("as written: profiles of which libseccomp makes another filter, at all borders together") {
    Random random(1);  // NOLINT(cert-msc32-c,cert-msc51-cpp): the same ones each time
    for (size_t i = 0; i < nasty_rules().size(); ++i) {
        for (const char* action : {"SCMP_ACT_ERRNO", "SCMP_ACT_ALLOW", "SCMP_ACT_KILL_PROCESS"}) {
            CAPTURE(i);
            CAPTURE(std::string(action));
            check_as_written(profile(action, nasty_rules()[i]), {"keyctl"}, 24, random);
        }
    }
}

TEST_CASE("as written: calls of several names do not disturb each other") {
    Random random(2);  // NOLINT(cert-msc32-c,cert-msc51-cpp): the same ones each time
    Seccomp section =
        profile("SCMP_ACT_ERRNO", {rule({"semget"}, kAllowed, {equal(0, 1)}), rule({"semop"}, kAllowed, {equal(0, 6)}),
                                   rule({"ptrace"}, kAllowed, {equal(0, 0)}), rule({"mincore"}, kAllowed),
                                   rule({"unshare"}, kAllowed, {equal(0, 1), equal(2, 6)}),
                                   rule({"mount"}, kAllowed, {{0, 17, 0, "SCMP_CMP_LE"}}),
                                   rule({"mount"}, kAllowed, {{0, 40, 0, "SCMP_CMP_EQ"}})});
    section.syscalls.insert(section.syscalls.end(), nasty_rules()[0].begin(), nasty_rules()[0].end());
    check_as_written(section, {"ptrace", "mincore", "unshare", "mount", "keyctl", "read"}, 24, random);
    const SeccompFilter filter = compiled(section);
    CHECK(verdict(filter, call("semget", {1})) == kAllow);
    CHECK(verdict(filter, call("semget", {6})) == answers(EPERM));
    CHECK(verdict(filter, call("semop", {6})) == kAllow);
    CHECK(verdict(filter, call("semop", {1})) == answers(EPERM));
}

// Mixed operators, actions, numbers of rules and conditions; none is refused but for rules that contradict each other.
TEST_CASE("as written: two thousand profiles at random answer as they say") {
    Random random(20240611);  // NOLINT(cert-msc32-c,cert-msc51-cpp): the same ones each time
    const std::vector<std::string> names = {"keyctl", "ptrace"};
    int compiled_ones = 0;
    for (int round = 0; round < 2000; ++round) {
        CAPTURE(round);
        const Seccomp section = random_profile(names, random);
        if (contradicts_itself(section)) continue;
        ++compiled_ones;
        check_as_written(section, names, 4, random);
    }
    CHECK(compiled_ones > 1900);
}

// With int $0x80 a 64-bit program shows a filter all 64 bits, of which the kernel then takes 32.
TEST_CASE("as written: callers with 32-bit registers hide nothing in higher bits") {
    Seccomp section = profile("SCMP_ACT_ERRNO", {rule({"keyctl"}, kAllowed, {{0, 16, 0, "SCMP_CMP_NE"}})});
    section.architectures = {"SCMP_ARCH_X86", "SCMP_ARCH_X32"};
    const SeccompFilter filter = compiled(section);
    for (const uint32_t arch : {SCMP_ARCH_X86, SCMP_ARCH_X32}) {
        CHECK(verdict(filter, call("keyctl", {17}, arch)) == kAllow);
        CHECK(verdict(filter, call("keyctl", {kHigh + 16}, arch)) == answers(EPERM));
    }
    CHECK(verdict(filter, call("keyctl", {kHigh + 16})) == kAllow);
}

TEST_CASE("as written: what a multiplexer is asked for with unseen arguments is answered by the strictest rule") {
    constexpr uint64_t kSocket = 1, kBind = 2;
    constexpr int kDirect = 359;  // the number of socket itself
    const auto socketcall = [](const SeccompFilter& filter, uint64_t which) {
        return verdict(filter, call("socketcall", {which}, SCMP_ARCH_X86));
    };
    Seccomp section = profile("SCMP_ACT_ERRNO", {rule({"socket"}, kAllowed, {equal(0, 2)}), rule({"bind"}, kAllowed)});
    section.architectures = {"SCMP_ARCH_X86"};
    const SeccompFilter denies = compiled(section);
    CHECK(socketcall(denies, kSocket) == answers(EPERM));
    CHECK(socketcall(denies, kBind) == kAllow);
    CHECK(verdict(denies, call_number(kDirect, SCMP_ARCH_X86, {2})) == kAllow);
    CHECK(verdict(denies, call_number(kDirect, SCMP_ARCH_X86, {1})) == answers(EPERM));
    section.default_action = kAllowed;
    section.syscalls[0].action = "SCMP_ACT_TRAP";
    CHECK(socketcall(compiled(section), kSocket) == SECCOMP_RET_TRAP);
    CHECK(socketcall(compiled(section), kBind) == kAllow);
    section.syscalls.push_back(rule({"socketcall"}, "SCMP_ACT_LOG"));
    CHECK(socketcall(compiled(section), kSocket) == SECCOMP_RET_LOG);  // which is named itself
}

TEST_CASE("as written: a profile's own messages to a tracer are not taken for anything else") {
    Seccomp section = profile("SCMP_ACT_TRACE", {rule({"ptrace"}, kAllowed, {equal(0, 1)})});
    section.default_errno_ret = 0;
    for (uint32_t message = 1; message < 4; ++message) {
        section.syscalls.push_back(rule({"mount"}, "SCMP_ACT_TRACE", {equal(0, message)}));
        section.syscalls.back().errno_ret = message;
    }
    section.syscalls.push_back(rule_errno({"getppid"}, "SCMP_ACT_TRACE", 1));
    section.syscalls.push_back(rule_errno({"getpgrp"}, "SCMP_ACT_TRACE", 2));
    const SeccompFilter filter = compiled(section);
    CHECK(verdict(filter, call("getppid", {1})) == (SECCOMP_RET_TRACE | 1));
    CHECK(verdict(filter, call("getpgrp", {1})) == (SECCOMP_RET_TRACE | 2));
    for (uint32_t message = 0; message < 4; ++message)
        CHECK(verdict(filter, call("mount", {message})) == (SECCOMP_RET_TRACE | message));
    CHECK(verdict(filter, call("ptrace", {1})) == kAllow);
    CHECK(verdict(filter, call("ptrace", {2})) == SECCOMP_RET_TRACE);
}

// More than a conditional jump can reach over.
TEST_CASE("as written: long lists of conditions take an instruction each") {
    Seccomp section = profile("SCMP_ACT_ERRNO");
    for (uint64_t i = 0; i < 2000; ++i) section.syscalls.push_back(rule({"ioctl"}, kAllowed, {equal(1, 3 * i)}));
    section.syscalls.push_back(rule({"ioctl"}, "SCMP_ACT_TRAP", {equal(1, 300), {0, 7, 0, "SCMP_CMP_GT"}}));
    const SeccompFilter filter = compiled(section);
    CHECK(filter.program.size() < 2100);
    size_t wrong = 0;
    for (uint64_t request = 0; request < 6010; ++request) {
        const uint32_t expected = request % 3 == 0 && request < 6000 ? kAllow : answers(EPERM);
        wrong += size_t{verdict(filter, call("ioctl", {7, request})) != expected};
        wrong += size_t{verdict(filter, call("ioctl", {8, request})) != (request == 300 ? SECCOMP_RET_TRAP : expected)};
        wrong += size_t{verdict(filter, call("ioctl", {0, request + kHigh})) != answers(EPERM)};
    }
    CHECK(wrong == 0);
}

}  // namespace pinfold::testing
