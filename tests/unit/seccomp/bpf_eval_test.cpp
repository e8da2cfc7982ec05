// The evaluator: each instruction that filters are made of, and that whatever else is in a program kills.
#include "seccomp/bpf_eval.hpp"

#include <cstddef>
#include <vector>

#include "calls.hpp"

namespace pinfold::testing {

namespace {

using Program = std::vector<sock_filter>;

constexpr sock_filter kLoadNumber = BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr));
constexpr sock_filter kYes = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
constexpr sock_filter kNo = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP);

}  // namespace

TEST_CASE("bpf: jumps compare as the kernel does, without a sign") {
    struct Row {
        uint16_t operation;
        uint32_t number;
        bool taken;
    };
    const Row rows[] = {
        {BPF_JEQ, 7, true},   {BPF_JEQ, 8, false},         {BPF_JGT, 7, false}, {BPF_JGT, 8, true},
        {BPF_JGT, ~0U, true}, {BPF_JGE, 6, false},         {BPF_JGE, 7, true},  {BPF_JSET, 8, false},
        {BPF_JSET, 12, true}, {BPF_JSET, 0xfffff8, false},
    };
    for (const Row& row : rows) {
        CAPTURE(row.operation);
        CAPTURE(row.number);
        const auto code = static_cast<uint16_t>(BPF_JMP | BPF_K | row.operation);
        const Program program = {kLoadNumber, {code, 1, 0, 7}, kNo, kYes};
        const uint32_t verdict = evaluate(program, call_number(static_cast<int>(row.number)));
        CHECK(verdict == (row.taken ? SECCOMP_RET_ALLOW : SECCOMP_RET_TRAP));
    }
}

TEST_CASE("bpf: words of the call are loaded and masked") {
    const seccomp_data data = call_number(5, 0xc0de, {0x1122334455667788, 2, 3, 4, 5, 6});
    const auto equals = [&](uint32_t offset, uint32_t mask, uint32_t value) {
        const Program program = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offset), BPF_STMT(BPF_ALU | BPF_AND | BPF_K, mask),
                                 BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 1, 0), kNo, kYes};
        return evaluate(program, data) == SECCOMP_RET_ALLOW;
    };
    CHECK(equals(offsetof(seccomp_data, nr), ~0U, 5));
    CHECK(equals(offsetof(seccomp_data, arch), 0xff00, 0xc000));
    CHECK(equals(offsetof(seccomp_data, args), ~0U, 0x55667788));
    CHECK(equals(offsetof(seccomp_data, args) + 4, ~0U, 0x11223344));
    CHECK(equals(sizeof(seccomp_data) - 8, ~0U, 6));
}

TEST_CASE("bpf: a program that is at fault kills") {
    const Program programs[] = {
        {},
        {kLoadNumber},
        {BPF_STMT(BPF_JMP | BPF_JA, 1), kYes},
        {BPF_STMT(BPF_JMP | BPF_JA, ~0U), kYes},
        {BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0, 255, 255), kYes},
        {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 2), kYes},
        {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, sizeof(seccomp_data)), kYes},
        {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, ~3U), kYes},
        {BPF_STMT(BPF_LD | BPF_B | BPF_ABS, 0), kYes},
        {BPF_STMT(BPF_LD | BPF_W | BPF_IND, 0), kYes},
        {BPF_STMT(BPF_ALU | BPF_DIV | BPF_K, 0), kYes},
        {BPF_STMT(BPF_RET | BPF_A, 0)},
        {BPF_STMT(0xffff, 0), kYes},
    };
    for (size_t i = 0; i < std::size(programs); ++i) {
        CAPTURE(i);
        CHECK(evaluate(programs[i], call_number(0)) == SECCOMP_RET_KILL_PROCESS);
    }
}

TEST_CASE("bpf: of partly known calls it is told what is answered to all of them") {
    const auto always = [](const Program& program, uint64_t value, uint64_t known) {
        PartlyKnownCall calls;
        calls.call.args[1] = value;
        calls.known.args[1] = known;
        return always_answers(program, calls, [](uint32_t action) { return action == SECCOMP_RET_ALLOW; });
    };
    constexpr sock_filter kLoad = BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, args) + 8);
    const auto jump = [&](uint16_t operation, uint32_t number, bool is_taken) {
        const auto code = static_cast<uint16_t>(BPF_JMP | BPF_K | operation);
        const auto yes = static_cast<uint8_t>(is_taken ? 1 : 0);
        return Program{kLoad, {code, yes, static_cast<uint8_t>(1 - yes), number}, kNo, kYes};
    };
    struct Row {
        uint16_t operation;
        uint32_t number;
        uint64_t value, known;
        bool taken, passed;  // always
    };
    const Row rows[] = {
        {BPF_JEQ, 7, 7, ~0U, true, false}, {BPF_JEQ, 7, 8, ~0U, false, true}, {BPF_JEQ, 7, 7, 7, false, false},
        {BPF_JEQ, 7, 8, 8, false, true},   {BPF_JSET, 4, 4, 4, true, false},  {BPF_JSET, 6, 4, 4, true, false},
        {BPF_JSET, 4, 0, 4, false, true},  {BPF_JSET, 6, 0, 4, false, false}, {BPF_JGT, 7, 8, ~0U, true, false},
        {BPF_JGT, 7, 7, ~0U, false, true}, {BPF_JGT, 7, 8, 8, false, false},  {BPF_JGE, 7, 7, ~0U, true, false},
        {BPF_JGE, 7, 6, ~0U, false, true}, {BPF_JGE, 7, 0, 0, false, false},
    };
    for (const Row& row : rows) {
        CAPTURE(row.operation);
        CAPTURE(row.value);
        CHECK(always(jump(row.operation, row.number, true), row.value, row.known) == row.taken);
        CHECK(always(jump(row.operation, row.number, false), row.value, row.known) == row.passed);
    }
    constexpr sock_filter kMask = BPF_STMT(BPF_ALU | BPF_AND | BPF_K, 4);
    const Program masked = {kLoad, kMask, BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 4, 1, 0), kNo, kYes};
    CHECK(always(masked, 4, 4));
    CHECK_FALSE(always(masked, 0, 0));
    for (const Program& faulty :
         {Program{}, Program{kLoad}, Program{BPF_STMT(BPF_JMP | BPF_JA, ~0U), kYes},
          Program{BPF_STMT(BPF_LD | BPF_W | BPF_ABS, ~3U), kYes}, Program{BPF_STMT(BPF_RET | BPF_A, 0)}})
        CHECK_FALSE(always(faulty, 0, 0));
}

TEST_CASE("bpf: steps are counted") {
    size_t steps = 0;
    evaluate(Program{kLoadNumber, BPF_STMT(BPF_JMP | BPF_JA, 1), kNo, kYes}, call_number(0), &steps);
    CHECK(steps == 3);
}

}  // namespace pinfold::testing
