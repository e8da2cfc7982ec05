// Rule by rule: load a half of an argument, compare, go on to the next rule. Rules that begin alike share their
// beginning.
#include "seccomp/argument_checks.hpp"

#include <linux/seccomp.h>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <string_view>

#include "seccomp/backward_writer.hpp"
#include "seccomp/ranges.hpp"

namespace pinfold {

namespace {

using Program = std::vector<sock_filter>;

constexpr uint32_t kAllBits = ~0U;

uint32_t high_half(uint64_t value) { return uint32_t(value >> 32); }
uint32_t low_half(uint64_t value) { return uint32_t(value); }

// Where the halves of an argument lie.
constexpr uint32_t kLowHalf = std::endian::native == std::endian::little ? 0 : 4;
uint32_t high_offset(uint32_t index) { return uint32_t(offsetof(seccomp_data, args)) + 8 * index + (4 - kLowHalf); }
uint32_t low_offset(uint32_t index) { return uint32_t(offsetof(seccomp_data, args)) + 8 * index + kLowHalf; }

enum class Width { narrow, wide };  // of the caller's registers

// A comparison of one half with a number, or of a whole argument. It is fulfilled where it comes out as meant.
struct Test {
    uint32_t index;
    bool is_whole;
    uint32_t offset;     // of the half that is loaded first
    uint32_t mask;       // of that half
    uint16_t operation;  // BPF_JEQ, BPF_JGT or BPF_JGE
    uint64_t value;
    bool meant;

    bool operator==(const Test&) const = default;
};

struct Comparison {
    std::string_view op;
    uint16_t operation;
    bool meant;
};

// BPF has no jump for "below": that is "not above or equal".
constexpr Comparison kComparisons[] = {
    {"SCMP_CMP_NE", BPF_JEQ, false}, {"SCMP_CMP_LT", BPF_JGE, false}, {"SCMP_CMP_LE", BPF_JGT, false},
    {"SCMP_CMP_EQ", BPF_JEQ, true},  {"SCMP_CMP_GE", BPF_JGE, true},  {"SCMP_CMP_GT", BPF_JGT, true},
};

// Whether these bits can be so at all. Bits that are not asked for take no test.
bool add_bits(uint32_t index, uint64_t mask, uint64_t bits, Width width, std::vector<Test>& tests) {
    if ((bits & ~mask) != 0) return false;
    if (width == Width::narrow && high_half(bits) != 0) return false;
    const auto add = [&](uint32_t offset, uint32_t half_mask, uint32_t half) {
        if (half_mask != 0) tests.push_back({index, false, offset, half_mask, BPF_JEQ, half, true});
    };
    if (width == Width::wide) add(high_offset(index), high_half(mask), high_half(bits));
    add(low_offset(index), low_half(mask), low_half(bits));
    return true;
}

// Whether the condition can hold at all, and what has to be tested for it.
bool add_tests(const SyscallArg& arg, Width width, std::vector<Test>& tests) {
    if (arg.op == "SCMP_CMP_MASKED_EQ") return add_bits(arg.index, arg.value, arg.value_two, width, tests);
    if (arg.op == "SCMP_CMP_EQ") return add_bits(arg.index, ~uint64_t{0}, arg.value, width, tests);
    const auto found = std::ranges::find(kComparisons, arg.op, &Comparison::op);
    if (found == std::end(kComparisons)) return false;
    const bool is_wide = width == Width::wide;
    // 32 bits are below any such number.
    if (!is_wide && high_half(arg.value) != 0) return !found->meant;
    tests.push_back({arg.index, is_wide, is_wide ? high_offset(arg.index) : low_offset(arg.index), kAllBits,
                     found->operation, arg.value, found->meant});
    return true;
}

struct TestedWay {
    std::vector<Test> tests;
    uint32_t answer;
};

std::vector<TestedWay> tested(const std::vector<Way>& ways, Width width) {
    std::vector<TestedWay> out;
    for (const Way& way : ways) {
        TestedWay one{{}, way.answer};
        const auto add = [&](const SyscallArg& arg) { return add_tests(arg, width, one.tests); };
        if (std::ranges::all_of(way.args, add)) out.push_back(std::move(one));
    }
    return out;
}

sock_filter load(uint32_t offset) { return BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offset); }

// Where a part of the program begins, and where it goes on for whom has loaded what it begins with.
struct Entry {
    size_t place;
    std::optional<size_t> loaded{};
    uint32_t offset = 0;
    uint32_t mask = 0;
};

class Writer : public BackwardWriter {
public:
    // Ways that begin with the same `depth` tests, which are fulfilled. Where none of them holds it goes on with
    // `rest`.
    Entry add_ways(std::span<const TestedWay> ways, size_t depth, Entry rest) {
        for (size_t end = ways.size(); end > 0;) {
            size_t begin = end - 1;
            if (ways[begin].tests.size() == depth) {
                rest = add_answer(ways[begin].answer);
                end = begin;
                continue;
            }
            const Test& test = ways[begin].tests[depth];
            const auto begins_so = [&](const TestedWay& way) {
                return way.tests.size() > depth && way.tests[depth] == test;
            };
            while (begin > 0 && begins_so(ways[begin - 1])) --begin;
            const Entry inner = add_ways(ways.subspan(begin, end - begin), depth + 1, rest);
            rest = test.is_whole ? add_whole(test, inner, rest) : add_half(test, inner, rest);
            end = begin;
        }
        return rest;
    }

    Entry add_answer(uint32_t answer) {
        const auto known = answers_.find(answer);
        if (known != answers_.end()) return {known->second};
        return {answers_[answer] = add(BPF_STMT(BPF_RET | BPF_K, answer))};
    }

private:
    Entry add_half(const Test& test, const Entry& inner, const Entry& rest) {
        const bool is_loaded = rest.loaded && rest.offset == test.offset && rest.mask == test.mask;
        const size_t otherwise = is_loaded ? *rest.loaded : rest.place;
        const size_t if_true = test.meant ? inner.place : otherwise;
        const size_t if_false = test.meant ? otherwise : inner.place;
        return add_load(test, add_jump(test.operation, low_half(test.value), if_true, if_false));
    }

    // The high half decides unless it is equal.
    Entry add_whole(const Test& test, const Entry& inner, const Entry& rest) {
        const size_t if_true = test.meant ? inner.place : rest.place;
        const size_t if_false = test.meant ? rest.place : inner.place;
        add_jump(test.operation, low_half(test.value), if_true, if_false);
        const size_t low = add(load(low_offset(test.index)));
        size_t high = add_jump(BPF_JEQ, high_half(test.value), low, if_false);
        if (test.operation != BPF_JEQ) high = add_jump(BPF_JGT, high_half(test.value), if_true, high);
        return add_load(test, high);
    }

    Entry add_load(const Test& test, size_t loaded) {
        if (test.mask != kAllBits) add(BPF_STMT(BPF_ALU | BPF_AND | BPF_K, test.mask));
        return {add(load(test.offset)), loaded, test.offset, test.mask};
    }

    std::map<uint32_t, size_t> answers_;
};

bool is_return(const sock_filter& step) { return step.code == (BPF_RET | BPF_K); }

bool loads_argument(const sock_filter& step) {
    return step.code == (BPF_LD | BPF_W | BPF_ABS) && step.k >= offsetof(seccomp_data, args);
}

sock_filter jump(size_t from, size_t to) { return BPF_STMT(BPF_JMP | BPF_JA, uint32_t(to - from - 1)); }

}  // namespace

std::vector<sock_filter> check_arguments(const std::vector<Way>& ways_in_order, uint32_t default_action) {
    Writer writer;
    const auto add = [&](Width width) {
        return writer.add_ways(tested(ways_in_order, width), 0, writer.add_answer(default_action)).place;
    };
    const size_t narrow = add(Width::narrow);
    const size_t wide = add(Width::wide);
    // Known by architecture and number: merge_ranges() leaves one of the two for each call.
    writer.add_jump(BPF_JSET, kX32Bit, narrow, wide);
    const size_t by_number = writer.add(load(offsetof(seccomp_data, nr)));
    writer.add_jump(BPF_JSET, kWideBit, by_number, narrow);
    writer.add(load(offsetof(seccomp_data, arch)));
    return writer.program();
}

// The program twice, and the checks behind it. In the first all calls are looked for by their numbers; from where it
// would load an argument it goes on in the second, where answers are those for arguments that cannot be seen.
std::optional<std::vector<sock_filter>> with_argument_checks(std::span<const sock_filter> program,
                                                             const std::map<uint32_t, Checks>& checks) {
    Program out(program.begin(), program.end());
    out.insert(out.end(), program.begin(), program.end());
    std::map<uint32_t, size_t> places;
    for (const auto& [value, one] : checks) {
        places[value] = out.size();
        out.insert(out.end(), one.program.begin(), one.program.end());
    }
    for (size_t at = 0; at < program.size(); ++at) {
        const size_t second = program.size() + at;
        if (loads_argument(program[at])) out[at] = jump(at, second);
        const auto found = is_return(program[at]) ? checks.find(program[at].k) : checks.end();
        if (found == checks.end()) continue;
        out[at] = jump(at, places[found->first]);
        out[second].k = found->second.unseen;
    }
    return without_unreachable(out);
}

}  // namespace pinfold
