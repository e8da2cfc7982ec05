// Profiles by themselves, without a compiled filter.
#include "seccomp/as_written.hpp"

#include <algorithm>
#include <set>

namespace pinfold {

namespace {

// The kernel compares actions as numbers with a sign, so that killing the process comes first and allowing last.
int32_t strictness(uint32_t answer) { return static_cast<int32_t>(answer & SECCOMP_RET_ACTION_FULL); }

uint64_t argument(const seccomp_data& call, uint32_t index) {
    const bool is_wide = (call.arch & kWideBit) != 0 && (static_cast<uint32_t>(call.nr) & kX32Bit) == 0;
    return is_wide ? call.args[index] : call.args[index] & 0xffffffff;
}

}  // namespace

bool holds(const SyscallArg& arg, const seccomp_data& call) {
    const uint64_t value = argument(call, arg.index);
    if (arg.op == "SCMP_CMP_MASKED_EQ") return (value & arg.value) == arg.value_two;
    if (arg.op == "SCMP_CMP_NE") return value != arg.value;
    if (arg.op == "SCMP_CMP_LT") return value < arg.value;
    if (arg.op == "SCMP_CMP_LE") return value <= arg.value;
    if (arg.op == "SCMP_CMP_EQ") return value == arg.value;
    if (arg.op == "SCMP_CMP_GE") return value >= arg.value;
    return arg.op == "SCMP_CMP_GT" && value > arg.value;
}

bool holds(const std::vector<SyscallArg>& args, const seccomp_data& call) {
    return std::ranges::all_of(args, [&](const SyscallArg& arg) { return holds(arg, call); });
}

std::vector<std::vector<SyscallArg>> ways_to_fulfil(const SyscallRule& rule) {
    std::set<uint32_t> indices;
    for (const SyscallArg& arg : rule.args) indices.insert(arg.index);
    if (indices.size() == rule.args.size()) return {rule.args};
    std::vector<std::vector<SyscallArg>> ways;
    for (const SyscallArg& arg : rule.args) ways.push_back({arg});
    return ways;
}

void put_in_order(std::vector<Way>& ways) {
    std::ranges::stable_sort(ways, {}, [](const Way& way) { return strictness(way.answer); });
}

uint32_t answer_as_written(const std::vector<Way>& ways_in_order, uint32_t default_action, const seccomp_data& call) {
    const auto first = std::ranges::find_if(ways_in_order, [&](const Way& way) { return holds(way.args, call); });
    return first == ways_in_order.end() ? default_action : first->answer;
}

uint32_t answer_unseen(const std::vector<Way>& ways_in_order, uint32_t default_action) {
    const bool default_counts = std::ranges::none_of(ways_in_order, [](const Way& way) { return way.args.empty(); });
    if (ways_in_order.empty()) return default_action;
    const uint32_t first = ways_in_order.front().answer;
    return default_counts && strictness(default_action) < strictness(first) ? default_action : first;
}

}  // namespace pinfold
