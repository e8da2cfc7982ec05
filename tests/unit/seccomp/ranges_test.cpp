// Programs over ranges answer as libseccomp's do: by proof, and call by call. And a proof can fail.
#include "seccomp/ranges.hpp"

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <random>
#include <set>

#include "base/fs.hpp"
#include "calls.hpp"
#include "json/json.hpp"
#include "seccomp/profiles.hpp"
#include "seccomp/set_id.hpp"
#include "seccomp/user_namespaces.hpp"
#include "spec/parse.hpp"
#include "support/source_root.hpp"

namespace pinfold::testing {

namespace {

using Program = std::vector<sock_filter>;
using Random = std::mt19937_64;

constexpr uint32_t kArchitectures[] = {
    SCMP_ARCH_X86_64, SCMP_ARCH_X86, SCMP_ARCH_AARCH64, SCMP_ARCH_ARM, SCMP_ARCH_S390X, 0, 1, ~0U};

Seccomp section_of(const std::string& file) {
    const std::string path = source_root() / "tests/data/configs" / file;
    const Result<std::string> text = read_file(path);
    REQUIRE_MESSAGE(text, text.error().message);
    const Result<Json> json = parse_json(*text, file);
    REQUIRE_MESSAGE(json, json.error().message);
    Problems problems;
    const std::optional<Seccomp> section = parse_spec(*json, problems).linux_.seccomp;
    REQUIRE(section);
    return *section;
}

Program by_number(const Seccomp& section) {
    Result<SeccompFilter> filter = compile_by_number(section);
    REQUIRE_MESSAGE(filter, filter.error().message);
    return std::move(filter).value().program;
}

// All there are or may be, those of x32, and what lies around every value that a program compares with.
std::vector<uint32_t> numbers_for(const Program& program) {
    std::set<uint32_t> numbers = {0x7fffffff, 0x80000000, ~0U, 0xf0000, 0xf0005};
    for (const uint32_t base : {0U, 0x40000000U}) {
        for (uint32_t number = 0; number < 1024; ++number) numbers.insert(base + number);
    }
    for (const sock_filter& step : program) {
        if (BPF_CLASS(step.code) == BPF_JMP) numbers.insert({step.k - 1, step.k, step.k + 1});
    }
    return {numbers.begin(), numbers.end()};
}

// Halves of arguments that a program knows, their neighbours, and others.
uint32_t half(const std::vector<uint32_t>& known, Random& random) {
    if (random() % 4 == 0) return uint32_t(random());
    return known[random() % known.size()] + uint32_t(random() % 3) - 1;
}

void check_call_by_call(const Program& one, const Program& other, int tries) {
    Random random(7);  // NOLINT(cert-msc32-c,cert-msc51-cpp): the same ones each time
    std::vector<uint32_t> known = {0, ~0U};
    for (const sock_filter& step : one) known.push_back(step.k);
    size_t different = 0;
    for (const uint32_t arch : kArchitectures) {
        for (const uint32_t number : numbers_for(one)) {
            seccomp_data data = call_number(int(number), arch);
            for (int i = 0; i < tries; ++i) {
                different += size_t{evaluate(one, data) != evaluate(other, data)};
                for (auto& arg : data.args) arg = uint64_t{half(known, random)} << 32 | half(known, random);
                if (random() % 2) {
                    for (auto& arg : data.args) arg &= 0xffffffff;
                }
            }
        }
    }
    CHECK(different == 0);
}

void check_merged(const Seccomp& section, int tries = 4) {
    const Program original = by_number(section);
    const std::optional<Program> merged = merge_ranges(original);
    if (!merged) return;
    CHECK(merged->size() < original.size());
    CHECK(answer_alike(original, *merged));
    CHECK(answer_alike(*merged, original));
    check_call_by_call(original, *merged, tries);
}

const char* const kEngineConfigs[] = {"docker-default-v2.json", "podman-rootful-v2.json", "podman-rootless-v2.json",
                                      "cri-container-v2.json",  "cri-sandbox-v2.json",    "buildah-run-v1.json"};

SyscallArg random_condition(Random& random) {
    const char* const operators[] = {"SCMP_CMP_NE", "SCMP_CMP_LT", "SCMP_CMP_LE",       "SCMP_CMP_EQ",
                                     "SCMP_CMP_GE", "SCMP_CMP_GT", "SCMP_CMP_MASKED_EQ"};
    const auto value = [&] { return random() >> (random() % 64); };
    return {uint32_t(random() % 6), value(), value(), operators[random() % 7]};
}

std::string name_of(int number) {
    char* const name = seccomp_syscall_resolve_num_arch(SCMP_ARCH_X86_64, number);
    const std::string text = name ? name : "read";
    std::free(name);
    return text;
}

Seccomp random_profile(Random& random) {
    const char* const actions[] = {"SCMP_ACT_ALLOW", "SCMP_ACT_ERRNO", "SCMP_ACT_KILL_PROCESS", "SCMP_ACT_TRAP",
                                   "SCMP_ACT_LOG",   "SCMP_ACT_TRACE", "SCMP_ACT_NOTIFY"};
    Seccomp section = profile(actions[random() % 6]);
    for (const char* arch : {"SCMP_ARCH_X86", "SCMP_ARCH_X32", "SCMP_ARCH_AARCH64", "SCMP_ARCH_ARM"}) {
        if (random() % 2) section.architectures.emplace_back(arch);
    }
    // Each call in one rule: libseccomp refuses those that contradict each other.
    for (int number = 0; number < 450;) {
        SyscallRule added = rule({}, actions[random() % 7]);
        for (int end = number + 1 + int(random() % 40); number < end; number += 1 + int(random() % 20 == 0)) {
            added.names.push_back(name_of(number));
        }
        if (random() % 3 == 0) added.args = {random_condition(random)};
        if (random() % 9 == 0) added.args.push_back(random_condition(random));
        section.syscalls.push_back(std::move(added));
    }
    return section;
}

}  // namespace

TEST_CASE("ranges: shipped profiles answer as before, with and without what sandboxes change in them") {
    for (const ProfileInfo& info : shipped_profiles()) {
        CAPTURE(std::string(info.name));
        const Result<Seccomp> section = find_profile(info.name);
        REQUIRE(section);
        CHECK(merge_ranges(by_number(*section)));
        check_merged(*section);
        check_merged(without_set_id_bits(*section));
    }
    check_merged(profile_without_user_namespaces());
}

TEST_CASE("ranges: engines' profiles answer as before, and are a third as long") {
    for (const char* file : kEngineConfigs) {
        CAPTURE(std::string(file));
        const Seccomp section = section_of(file);
        const Program original = by_number(section);
        const size_t size = compiled(section).program.size();
        CHECK(size * 5 < original.size() * 2);
        check_merged(section);
    }
}

TEST_CASE("ranges: profiles at random answer as before") {
    Random random(11);  // NOLINT(cert-msc32-c,cert-msc51-cpp): the same ones each time
    int merged = 0;
    for (int i = 0; i < 20; ++i) {
        CAPTURE(i);
        const Seccomp section = random_profile(random);
        const Result<SeccompFilter> original = compile_by_number(section);
        if (!original) continue;  // rules that contradict each other
        merged += int{merge_ranges(original->program).has_value()};
        check_merged(section, 2);
    }
    CHECK(merged > 10);
}

// A limit that moves by one may change nothing: the number that it was at is answered alike on both sides.
TEST_CASE("ranges: a proof fails where one answer, one number or one condition differs") {
    const Program original = by_number(section_of("docker-default-v2.json"));
    const Program merged = compiled(section_of("docker-default-v2.json")).program;
    REQUIRE(answer_alike(original, merged));
    size_t unchanged = 0;
    for (size_t i = 0; i < merged.size(); ++i) {
        CAPTURE(i);
        Program changed = merged;
        changed[i].k ^= 1;
        const bool is_limit = changed[i].code == (BPF_JMP | BPF_JGE | BPF_K);
        const bool is_same = answer_alike(original, changed);
        CHECK((!is_same || is_limit));
        if (is_same && ++unchanged < 4) check_call_by_call(original, changed, 1);
        changed[i] = merged[i];
        if (BPF_CLASS(changed[i].code) != BPF_JMP || merged[i].jt == merged[i].jf) continue;
        std::swap(changed[i].jt, changed[i].jf);
        CHECK_FALSE(answer_alike(original, changed));
    }
    CHECK(unchanged * 5 < merged.size());
    for (const Program& part : {Program(merged.begin(), merged.end() - 1), Program{}}) {
        CHECK_FALSE(answer_alike(original, part));
    }
}

TEST_CASE("ranges: what cannot be told is not merged") {
    const sock_filter load = BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr));
    const sock_filter allow = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    const sock_filter deny = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM);
    const sock_filter by_bit = BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, 1, 0, 1);
    const sock_filter mask = BPF_STMT(BPF_ALU | BPF_AND | BPF_K, 1);
    const sock_filter is_one = BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 1, 0, 1);
    const Program odd = {load, by_bit, allow, deny};
    const Program masked = {load, mask, is_one, allow, deny};
    const Program without_load = {is_one, allow, deny};
    const Program unfinished = {load, is_one, allow};
    for (const Program& program : {odd, masked, without_load, unfinished, Program{}}) {
        CHECK_FALSE(ends_of(program));
        CHECK_FALSE(answer_alike(program, program));
        CHECK_FALSE(merge_ranges(program));
    }
}

// Architectures above a limit are no names: one of those below it would stand for all.
TEST_CASE("ranges: what cannot be proven is not used") {
    Program program = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, arch)),
                       BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, 5, 10, 0),
                       BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr))};
    for (uint32_t left = 8; left > 0; --left) {
        program.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, left, uint8_t(left), 0));
    }
    program.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM));
    program.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
    REQUIRE(evaluate(program, call_number(3, 5)) == kAllow);
    REQUIRE(evaluate(program, call_number(9, 5)) == answers(EPERM));
    REQUIRE(evaluate(program, call_number(9, 6)) == kAllow);
    CHECK(ends_of(program));
    CHECK_FALSE(merge_ranges(program));
}

}  // namespace pinfold::testing
