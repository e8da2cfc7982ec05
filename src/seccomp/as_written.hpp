// What a profile says of a call and its arguments. This is the one place that defines it:
//  - A condition compares the whole argument, as a number without a sign, with the number in the profile. Callers with
//    32-bit registers (of a 32-bit architecture, or of x32) have arguments of 32 bits: whatever lies in the higher
//    ones, which the kernel may show to a filter, is not looked at.
//  - All conditions of a rule have to hold; where two are on the same argument, any of them suffices.
//  - Of all rules that hold the strictest answers, by the kernel's own order of actions, in which several filters are
//    weighed; among equally strict ones the first. Where none holds, the default action answers; a rule without
//    conditions that has the default action says nothing new, and takes nothing from other rules.
//  - Of several rules without conditions only the first counts: engines' profiles are written for that.
#pragma once

#include <linux/seccomp.h>

#include <cstdint>
#include <vector>

#include "pinfold/spec.hpp"

namespace pinfold {

// A bit in the number of an x32 call, whose audit architecture is that of x86_64; and the bit in an audit architecture
// that tells of 64-bit registers.
constexpr uint32_t kX32Bit = 0x40000000;
constexpr uint32_t kWideBit = 0x80000000;

// Whether a condition of a rule holds for a call, or all of them do.
bool holds(const SyscallArg& arg, const seccomp_data& call);
bool holds(const std::vector<SyscallArg>& args, const seccomp_data& call);

// The sets of conditions of which each suffices: all of a rule's, or, where two are on the same argument, each of them.
// Other runtimes have it so, as libseccomp takes one condition for an argument, and profiles are written for that.
std::vector<std::vector<SyscallArg>> ways_to_fulfil(const SyscallRule& rule);

// One way to come to an answer, which is an action as the kernel has it.
struct Way {
    std::vector<SyscallArg> args;
    uint32_t answer;
};

// All that is said of one call: the first way that holds answers, once they are in order.
void put_in_order(std::vector<Way>& ways);
uint32_t answer_as_written(const std::vector<Way>& ways_in_order, uint32_t default_action, const seccomp_data& call);

// For a caller whose arguments cannot be seen: the strictest of all answers that there may be.
uint32_t answer_unseen(const std::vector<Way>& ways_in_order, uint32_t default_action);

}  // namespace pinfold
