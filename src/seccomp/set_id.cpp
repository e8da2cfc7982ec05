// The mode of a new file, and the one that a file is given, are arguments of a few system calls. Where it lies in
// memory, out of a filter's sight, the call does not exist: programs know what to do without. So do they where a file
// system has no attributes, one of which would be the capabilities of a program.
#include "seccomp/set_id.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>

namespace pinfold {

namespace {

constexpr uint64_t kBits = S_ISUID | S_ISGID;
constexpr const char* kMasked = "SCMP_CMP_MASKED_EQ";

struct ModeCall {
    const char* name;
    uint32_t mode;                    // the index of the argument
    std::optional<uint32_t> flags{};  // and of the one that says whether it counts
};

constexpr ModeCall kModeCalls[] = {
    {"chmod", 1}, {"fchmod", 1},  {"fchmodat", 2}, {"creat", 1},
    {"mknod", 1}, {"mknodat", 2}, {"open", 2, 1},  {"openat", 3, 2},
};

struct HiddenCall {
    const char* name;
    uint32_t answer;
};
constexpr HiddenCall kOutOfSight[] = {
    {"openat2", ENOSYS},       {"fchmodat2", ENOSYS},     {"io_uring_setup", ENOSYS}, {"setxattr", EOPNOTSUPP},
    {"lsetxattr", EOPNOTSUPP}, {"fsetxattr", EOPNOTSUPP}, {"setxattrat", EOPNOTSUPP},
};

// Each of them: without any of these bits the mode does not count.
constexpr uint64_t kCreating[] = {O_CREAT, O_TMPFILE & ~O_DIRECTORY};

bool denies(const std::string& action) {
    return action == "SCMP_ACT_ERRNO" || action == "SCMP_ACT_TRAP" || action.starts_with("SCMP_ACT_KILL");
}

// Whether it can be met without the bits; then as one that is met by nothing else.
bool narrow(SyscallArg& condition) {
    if (condition.op == "SCMP_CMP_EQ") return (condition.value & kBits) == 0;
    if (condition.op != kMasked || (condition.value_two & kBits) != 0) return false;
    condition.value |= kBits;
    return true;
}

// A rule that allows the call under these conditions, all of which have to be met.
void allow_without_bits(const ModeCall& call, SyscallRule rule, std::vector<SyscallRule>& rules) {
    rule.names = {call.name};
    const auto about = [](uint32_t index) { return [=](const SyscallArg& one) { return one.index == index; }; };
    SyscallRule harmless = rule;
    const auto mode = std::ranges::find_if(rule.args, about(call.mode));
    const bool is_free = mode == rule.args.end();
    const bool can_be_met = is_free || narrow(*mode);
    if (is_free) rule.args.push_back({call.mode, kBits, 0, kMasked});
    if (can_be_met) rules.push_back(std::move(rule));
    if (!call.flags || std::ranges::any_of(harmless.args, about(*call.flags))) return;
    harmless.args.push_back({*call.flags, kCreating[0] | kCreating[1], 0, kMasked});
    rules.push_back(std::move(harmless));
}

bool repeats_an_index(const std::vector<SyscallArg>& args) {
    for (size_t i = 0; i < args.size(); ++i) {
        for (size_t j = 0; j < i; ++j) {
            if (args[i].index == args[j].index) return true;
        }
    }
    return false;
}

// Conditions on one and the same argument are alternatives.
void allow_without_bits(const ModeCall& call, const SyscallRule& rule, bool alternatives,
                        std::vector<SyscallRule>& rules) {
    if (!alternatives) return allow_without_bits(call, rule, rules);
    for (const SyscallArg& one : rule.args) {
        SyscallRule single = rule;
        single.args = {one};
        allow_without_bits(call, std::move(single), rules);
    }
}

void deny_bits(const ModeCall& call, std::vector<SyscallRule>& rules) {
    for (const uint64_t bit : {uint64_t{S_ISUID}, uint64_t{S_ISGID}}) {
        const SyscallArg mode{call.mode, bit, bit, kMasked};
        const SyscallRule rule{{call.name}, "SCMP_ACT_ERRNO", EPERM, {mode}};
        if (!call.flags) rules.push_back(rule);
        else {
            for (const uint64_t flag : kCreating) {
                rules.push_back(rule);
                rules.back().args.push_back({*call.flags, flag, flag, kMasked});
            }
        }
    }
}

bool names(const SyscallRule& rule, const char* call) {
    return std::ranges::find(rule.names, call) != rule.names.end();
}

// What allows a call, taken out of the rules.
std::vector<SyscallRule> take_allowing(std::vector<SyscallRule>& rules, const char* call) {
    std::vector<SyscallRule> taken;
    for (SyscallRule& rule : rules) {
        if (denies(rule.action) || !names(rule, call)) continue;
        taken.push_back(rule);
        std::erase(rule.names, call);
    }
    return taken;
}

bool is_denied(const std::vector<SyscallRule>& rules, const char* call) {
    return std::ranges::any_of(
        rules, [&](const SyscallRule& rule) { return denies(rule.action) && rule.args.empty() && names(rule, call); });
}

}  // namespace

Seccomp without_set_id_bits(Seccomp profile) {
    std::vector<SyscallRule>& rules = profile.syscalls;
    const bool is_open = !denies(profile.default_action);
    for (const ModeCall& call : kModeCalls) {
        const std::vector<SyscallRule> allowing = take_allowing(rules, call.name);
        if (is_open && !is_denied(rules, call.name)) deny_bits(call, rules);
        if (is_open) continue;
        for (const SyscallRule& rule : allowing) allow_without_bits(call, rule, repeats_an_index(rule.args), rules);
    }
    for (const HiddenCall& call : kOutOfSight) {
        const bool was_allowed = !take_allowing(rules, call.name).empty() || is_open;
        if (was_allowed && !is_denied(rules, call.name))
            rules.push_back({{call.name}, "SCMP_ACT_ERRNO", call.answer, {}});
    }
    std::erase_if(rules, [](const SyscallRule& rule) { return rule.names.empty(); });
    return profile;
}

}  // namespace pinfold
