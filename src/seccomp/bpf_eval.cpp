// The part of classic BPF that seccomp filters are made of: load a word, mask it, compare, jump, return.
#include "seccomp/bpf_eval.hpp"

#include <algorithm>
#include <bit>
#include <compare>
#include <cstring>
#include <optional>
#include <set>
#include <utility>
#include <vector>

namespace pinfold {

namespace {

std::optional<uint32_t> load_word(const seccomp_data& call, uint32_t offset) {
    uint32_t word = 0;
    if (offset % sizeof word != 0 || offset > sizeof call - sizeof word) return std::nullopt;
    std::memcpy(&word, reinterpret_cast<const char*>(&call) + offset, sizeof word);
    return word;
}

std::optional<uint32_t> jump_distance(const sock_filter& step, uint32_t accumulator) {
    const auto either = [&](bool taken) { return uint32_t{taken ? step.jt : step.jf}; };
    switch (step.code) {
        case BPF_JMP | BPF_JA: return step.k;
        case BPF_JMP | BPF_JEQ | BPF_K: return either(accumulator == step.k);
        case BPF_JMP | BPF_JGT | BPF_K: return either(accumulator > step.k);
        case BPF_JMP | BPF_JGE | BPF_K: return either(accumulator >= step.k);
        case BPF_JMP | BPF_JSET | BPF_K: return either((accumulator & step.k) != 0);
        default: return std::nullopt;
    }
}

// Empty where the program is at fault.
std::optional<uint32_t> run(std::span<const sock_filter> program, const seccomp_data& call, size_t& steps) {
    uint32_t accumulator = 0;
    // Jumps go forward only, so every program ends.
    for (size_t at = 0; at < program.size(); ++at) {
        const sock_filter& step = program[at];
        ++steps;
        if (step.code == (BPF_RET | BPF_K)) return step.k;
        if (step.code == (BPF_LD | BPF_W | BPF_ABS)) {
            const std::optional<uint32_t> word = load_word(call, step.k);
            if (!word) return std::nullopt;
            accumulator = *word;
        } else if (step.code == (BPF_ALU | BPF_AND | BPF_K)) {
            accumulator &= step.k;
        } else {
            const std::optional<uint32_t> distance = jump_distance(step, accumulator);
            if (!distance) return std::nullopt;
            at += *distance;
        }
    }
    return std::nullopt;
}

// The accumulator, as far as it is known.
struct Word {
    uint32_t value = 0;
    uint32_t known = ~0U;

    // NOLINTNEXTLINE(modernize-use-nullptr): it takes the zero of the comparison for one
    friend auto operator<=>(const Word&, const Word&) = default;
};

// Whether the jump can be taken, and whether it can be passed by.
struct Ways {
    bool taken;
    bool passed;
};

std::optional<Ways> ways_on(const sock_filter& step, const Word& word) {
    const bool is_known = word.known == ~0U;
    switch (step.code) {
        case BPF_JMP | BPF_JEQ | BPF_K: {
            const bool differs = ((word.value ^ step.k) & word.known) != 0;
            return Ways{!differs, !is_known || differs};
        }
        case BPF_JMP | BPF_JGT | BPF_K:
            return Ways{!is_known || word.value > step.k, !is_known || word.value <= step.k};
        case BPF_JMP | BPF_JGE | BPF_K:
            return Ways{!is_known || word.value >= step.k, !is_known || word.value < step.k};
        case BPF_JMP | BPF_JSET | BPF_K: {
            const bool is_set = (word.value & word.known & step.k) != 0;
            return Ways{is_set || (~word.known & step.k) != 0, !is_set};
        }
        default: return std::nullopt;
    }
}

enum class Field { none, number, arch };

// A program on its way: all of these calls have come here, with this field in the accumulator.
struct Position {
    size_t at = 0;
    Field field = Field::none;
    CallRange calls;
};

constexpr size_t kMostRanges = 1 << 16;

// The first value of a range, behind its beginning, for which a jump may go another way. Empty: all go one way.
std::optional<uint32_t> next_way(const sock_filter& step, uint32_t first, uint32_t last) {
    uint64_t cut = step.k;
    if (step.code == (BPF_JMP | BPF_JGT | BPF_K) || (step.code == (BPF_JMP | BPF_JEQ | BPF_K) && first == step.k)) {
        cut = uint64_t{step.k} + 1;
    } else if (step.code == (BPF_JMP | BPF_JSET | BPF_K)) {
        if (step.k == 0) return std::nullopt;
        const int lowest = std::countr_zero(step.k);  // whatever bits are asked for, this one changes first
        cut = ((uint64_t{first} >> lowest) + 1) << lowest;
    }
    if (cut <= first || cut > last) return std::nullopt;
    return uint32_t(cut);
}

// A jump by architecture or number: on with those that go the first one's way, the others wait.
bool take_jump(const sock_filter& step, Position& now, std::vector<Position>& waiting) {
    const bool by_number = now.field == Field::number;
    uint32_t& first = by_number ? now.calls.first_number : now.calls.first_arch;
    uint32_t& last = by_number ? now.calls.last_number : now.calls.last_arch;
    const std::optional<uint32_t> distance = jump_distance(step, first);
    if (!distance) return false;
    if (const std::optional<uint32_t> cut = next_way(step, first, last)) {
        const uint32_t end = std::exchange(last, *cut - 1);
        waiting.push_back(now);
        Position& others = waiting.back();
        (by_number ? others.calls.first_number : others.calls.first_arch) = *cut;
        (by_number ? others.calls.last_number : others.calls.last_arch) = end;
    }
    now.at += *distance + 1;
    return true;
}

// One after the other where two programs come to, over jumps that only lead on.
size_t skip_jumps(std::span<const sock_filter> program, size_t at) {
    while (at < program.size() && program[at].code == (BPF_JMP | BPF_JA)) at += size_t{program[at].k} + 1;
    return at;
}

using Places = std::pair<size_t, size_t>;

// From two instructions on, before which nothing that matters was loaded: step by step they do the same.
bool go_on_alike(std::span<const sock_filter> one, std::span<const sock_filter> other, const Places& from,
                 std::set<Places>& known) {
    std::vector<Places> left = {from};
    while (!left.empty()) {
        const Places at(skip_jumps(one, left.back().first), skip_jumps(other, left.back().second));
        left.pop_back();
        if (at.first >= one.size() || at.second >= other.size()) return false;
        if (!known.insert(at).second) continue;
        const sock_filter& step = one[at.first];
        const sock_filter& same = other[at.second];
        if (step.code != same.code || step.k != same.k) return false;
        if (step.code == (BPF_RET | BPF_K)) continue;
        const bool is_plain = step.code == (BPF_LD | BPF_W | BPF_ABS) || step.code == (BPF_ALU | BPF_AND | BPF_K);
        if (!is_plain && !jump_distance(step, 0)) return false;
        left.emplace_back(at.first + 1 + (is_plain ? 0 : step.jt), at.second + 1 + (is_plain ? 0 : same.jt));
        if (!is_plain) left.emplace_back(at.first + 1 + step.jf, at.second + 1 + same.jf);
    }
    return true;
}

}  // namespace

uint32_t evaluate(std::span<const sock_filter> program, const seccomp_data& call, size_t* steps) {
    size_t count = 0;
    const std::optional<uint32_t> verdict = run(program, call, count);
    if (steps) *steps = count;
    return verdict.value_or(SECCOMP_RET_KILL_PROCESS);
}

bool always_answers(std::span<const sock_filter> program, const PartlyKnownCall& calls,
                    const std::function<bool(uint32_t action)>& is_meant) {
    // Where it can come to, and with what. Jumps go forward only, so it ends.
    std::set<std::pair<size_t, Word>> left = {{0, Word{}}};
    while (!left.empty()) {
        const auto [at, word] = left.extract(left.begin()).value();
        if (at >= program.size()) return false;
        const sock_filter& step = program[at];
        const auto go_on = [&, from = at + 1](size_t distance, const Word& with) {
            left.emplace(from + distance, with);
        };
        if (step.code == (BPF_RET | BPF_K)) {
            if (!is_meant(step.k & SECCOMP_RET_ACTION_FULL)) return false;
        } else if (step.code == (BPF_LD | BPF_W | BPF_ABS)) {
            const std::optional<uint32_t> value = load_word(calls.call, step.k);
            if (!value) return false;
            go_on(0, {*value, *load_word(calls.known, step.k)});
        } else if (step.code == (BPF_ALU | BPF_AND | BPF_K)) {
            go_on(0, {word.value & step.k, word.known | ~step.k});
        } else if (step.code == (BPF_JMP | BPF_JA)) {
            go_on(step.k, word);
        } else {
            const std::optional<Ways> ways = ways_on(step, word);
            if (!ways) return false;
            if (ways->taken) go_on(step.jt, word);
            if (ways->passed) go_on(step.jf, word);
        }
    }
    return true;
}

std::optional<std::vector<RangeEnd>> ends_of(std::span<const sock_filter> program, const CallRange& calls) {
    std::vector<RangeEnd> ends;
    std::vector<Position> waiting = {{0, Field::none, calls}};
    while (!waiting.empty()) {
        Position& now = waiting.back();
        if (now.at >= program.size() || ends.size() == kMostRanges) return std::nullopt;
        const sock_filter& step = program[now.at];
        const bool loads = step.code == (BPF_LD | BPF_W | BPF_ABS);
        if (loads && step.k == offsetof(seccomp_data, nr)) {
            now.field = Field::number;
            ++now.at;
        } else if (loads && step.k == offsetof(seccomp_data, arch)) {
            now.field = Field::arch;
            ++now.at;
        } else if (loads || step.code == (BPF_RET | BPF_K)) {
            ends.push_back({now.calls, now.at});
            waiting.pop_back();
        } else if (step.code == (BPF_JMP | BPF_JA)) {
            now.at += size_t{step.k} + 1;
        } else {
            Position on = now;
            waiting.pop_back();
            if (on.field == Field::none || !take_jump(step, on, waiting)) return std::nullopt;
            waiting.push_back(on);
        }
    }
    return ends;
}

bool answer_alike(std::span<const sock_filter> one, std::span<const sock_filter> other) {
    const std::optional<std::vector<RangeEnd>> ends = ends_of(one);
    if (!ends) return false;
    std::set<Places> known;
    return std::ranges::all_of(*ends, [&](const RangeEnd& end) {
        const std::optional<std::vector<RangeEnd>> others = ends_of(other, end.calls);
        return others && std::ranges::all_of(*others, [&](const RangeEnd& there) {
                   return go_on_alike(one, other, {end.at, there.at}, known);
               });
    });
}

}  // namespace pinfold
