// The part of classic BPF that seccomp filters are made of: load a word, mask it, compare, jump, return.
#include "seccomp/bpf_eval.hpp"

#include <cstring>
#include <optional>

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

}  // namespace

uint32_t evaluate(std::span<const sock_filter> program, const seccomp_data& call, size_t* steps) {
    size_t count = 0;
    const std::optional<uint32_t> verdict = run(program, call, count);
    if (steps) *steps = count;
    return verdict.value_or(SECCOMP_RET_KILL_PROCESS);
}

}  // namespace pinfold
