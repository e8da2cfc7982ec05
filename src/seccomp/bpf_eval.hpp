// Runs a filter in userland: what the kernel would answer to a call, without making it.
#pragma once

#include <linux/filter.h>
#include <linux/seccomp.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

namespace pinfold {

// The SECCOMP_RET_* value with its data. A program that is not made of libseccomp's instructions, or does not come to
// an end, kills. steps, where given, receives the number of instructions that were run.
uint32_t evaluate(std::span<const sock_filter> program, const seccomp_data& call, size_t* steps = nullptr);

// Calls of one number, of which some bits are known: `known` has those set.
struct PartlyKnownCall {
    seccomp_data call{};
    seccomp_data known{};
};

// Whether all answers that there can be to such calls, by the program alone, are of that kind: a SECCOMP_RET_* without
// its data. Where it cannot be told which way a program goes, it is taken to go both.
bool always_answers(std::span<const sock_filter> program, const PartlyKnownCall& calls,
                    const std::function<bool(uint32_t action)>& is_meant);

// Calls of some architectures and numbers, from the first to the last of both.
struct CallRange {
    uint32_t first_arch = 0;
    uint32_t last_arch = ~0U;
    uint32_t first_number = 0;
    uint32_t last_number = ~0U;
};

// Where all calls of a range come to: the instruction that answers them, or the first that looks at something else.
struct RangeEnd {
    CallRange calls;
    size_t at;
};

// All calls by where they come to. Empty where that cannot be told by architecture and number, or only for very many
// ranges.
std::optional<std::vector<RangeEnd>> ends_of(std::span<const sock_filter> program, const CallRange& calls = {});

// Whether two programs answer alike to every call there can be. A proof: false where it cannot be told.
bool answer_alike(std::span<const sock_filter> one, std::span<const sock_filter> other);

}  // namespace pinfold
