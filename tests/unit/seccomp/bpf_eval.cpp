// The part of classic BPF that seccomp filters are made of: load a word, mask it, compare, jump, return.
#include "bpf_eval.hpp"

#include <cstring>

#include "base/strings.hpp"

namespace pinfold::testing {

namespace {

struct Outcome {
    uint32_t verdict = 0;
    size_t steps = 0;
};

Result<uint32_t> load_word(const seccomp_data& call, uint32_t offset) {
    uint32_t word = 0;
    if (offset % sizeof word != 0 || offset > sizeof call - sizeof word) {
        return plain_error(concat("load from offset ", offset));
    }
    std::memcpy(&word, reinterpret_cast<const char*>(&call) + offset, sizeof word);
    return word;
}

Result<uint32_t> jump_distance(const sock_filter& step, uint32_t accumulator) {
    const auto either = [&](bool taken) { return uint32_t{taken ? step.jt : step.jf}; };
    switch (step.code) {
        case BPF_JMP | BPF_JA: return step.k;
        case BPF_JMP | BPF_JEQ | BPF_K: return either(accumulator == step.k);
        case BPF_JMP | BPF_JGT | BPF_K: return either(accumulator > step.k);
        case BPF_JMP | BPF_JGE | BPF_K: return either(accumulator >= step.k);
        case BPF_JMP | BPF_JSET | BPF_K: return either((accumulator & step.k) != 0);
        default: return plain_error(concat("unknown instruction ", step.code));
    }
}

Result<Outcome> run(std::span<const sock_filter> program, const seccomp_data& call) {
    uint32_t accumulator = 0;
    size_t steps = 0;
    // Jumps go forward only, so every program ends.
    for (size_t at = 0; at < program.size(); ++at) {
        const sock_filter& step = program[at];
        ++steps;
        switch (step.code) {
            case BPF_LD | BPF_W | BPF_ABS: accumulator = TRY(load_word(call, step.k)); break;
            case BPF_ALU | BPF_AND | BPF_K: accumulator &= step.k; break;
            case BPF_RET | BPF_K: return Outcome{step.k, steps};
            default: at += TRY(jump_distance(step, accumulator));
        }
    }
    return plain_error("the program ends without a return");
}

}  // namespace

Result<uint32_t> evaluate_bpf(std::span<const sock_filter> program, const seccomp_data& call) {
    return TRY(run(program, call)).verdict;
}

Result<size_t> count_bpf_steps(std::span<const sock_filter> program, const seccomp_data& call) {
    return TRY(run(program, call)).steps;
}

}  // namespace pinfold::testing
