// The part of classic BPF that seccomp filters are made of: load a word, mask it, compare, jump, return.
#include "seccomp/bpf_eval.hpp"

#include <compare>
#include <cstring>
#include <optional>
#include <set>
#include <utility>

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

}  // namespace pinfold
