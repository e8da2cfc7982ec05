// Conditions are compared by their words: two that mean the same are written the same.
#include "seccomp/access.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <optional>
#include <set>

#include "base/strings.hpp"
#include "seccomp/compile.hpp"
#include "seccomp/shipped.hpp"

namespace pinfold {

namespace {

constexpr const char* kNoGroup = "other calls";

// What happens to one call. The exceptions are conditions under which it is the other way round, and their groups.
struct Access {
    bool allowed = false;
    std::string group;
    std::map<std::string, std::string> exceptions;
};
using AccessByCall = std::map<std::string, Access>;

std::string hexadecimal(uint64_t number) {
    std::array<char, 16> digits{};
    return concat("0x", std::string_view(digits.data(), std::to_chars(digits.begin(), digits.end(), number, 16).ptr));
}

// Bits are hexadecimal to people, families and protocols are not.
std::string number_text(uint64_t number) { return number < 1000 ? std::to_string(number) : hexadecimal(number); }

std::string condition_text(const SyscallArg& arg) {
    constexpr std::pair<std::string_view, std::string_view> kSigns[] = {
        {"SCMP_CMP_NE", " != "}, {"SCMP_CMP_LT", " < "},  {"SCMP_CMP_LE", " <= "},
        {"SCMP_CMP_EQ", " = "},  {"SCMP_CMP_GE", " >= "}, {"SCMP_CMP_GT", " > "},
    };
    const std::string argument = concat("argument ", arg.index);
    for (const auto& [op, sign] : kSigns) {
        if (arg.op == op) return concat(argument, sign, number_text(arg.value));
    }
    // All bits of an int: that it is one is of no interest.
    const std::string mask = arg.value == 0xffffffff ? "" : concat(" & ", hexadecimal(arg.value));
    const bool is_bits = !mask.empty() && arg.value_two > 9;
    return concat(argument, mask, " = ", is_bits ? hexadecimal(arg.value_two) : number_text(arg.value_two));
}

bool repeats_an_index(const SyscallRule& rule) {
    std::set<uint32_t> seen;
    for (const SyscallArg& arg : rule.args) {
        if (!seen.insert(arg.index).second) return true;
    }
    return false;
}

// As compile_seccomp has it: a rule without conditions wins over those with conditions, and a rule that says what holds
// already says nothing.
void apply(const SyscallRule& rule, const std::string& group, Access& access, bool by_default) {
    const bool allows = is_allowing(rule.action);
    if (allows == by_default) return;
    const std::vector<std::string> conditions = conditions_of(rule);
    if (conditions.empty()) access = {allows, group, {}};
    if (access.allowed != by_default) return;
    for (const std::string& condition : conditions) access.exceptions.emplace(condition, group);
}

AccessByCall access_of(const Profile& profile, const std::set<std::string>& calls) {
    const bool by_default = is_allowing(profile.seccomp.default_action);
    AccessByCall out;
    for (const std::string& call : calls) out[call] = {by_default, group_of_call(call), {}};
    for (size_t i = 0; i < profile.seccomp.syscalls.size(); ++i) {
        const SyscallRule& rule = profile.seccomp.syscalls[i];
        for (const std::string& call : rule.names) {
            const std::string& group = profile.notes[i].group;
            apply(rule, group.empty() ? group_of_call(call) : group, out[call], by_default);
        }
    }
    return out;
}

void add_names(const Seccomp& profile, std::set<std::string>& calls) {
    for (const SyscallRule& rule : profile.syscalls) calls.insert(rule.names.begin(), rule.names.end());
}

std::string any_of(const std::map<std::string, std::string>& conditions) {
    std::vector<std::string> texts;
    for (const auto& [condition, group] : conditions) texts.push_back(condition);
    return join(texts, ", or ");
}

// The call's line for all that is allowed but in a few cases.
std::string call_but(const std::string& call, const Access& wide, const Access& narrow) {
    std::map<std::string, std::string> cases = wide.exceptions;
    cases.insert(narrow.exceptions.begin(), narrow.exceptions.end());
    return cases.empty() ? call : concat(call, " except if ", any_of(cases));
}

// A filter has its machine's own architecture in any case.
void add_architectures(const Seccomp& profile, const Seccomp& other, CallsByGroup& out) {
    for (const std::string& name : profile.architectures) {
        const auto& others = other.architectures;
        if (is_native_architecture(name) || std::ranges::find(others, name) != others.end()) continue;
        out["programs of other architectures"].push_back(name);
    }
}

void add_difference(const std::string& call, const Access& wide, const Access& narrow, CallsByGroup& out) {
    if (wide.allowed && !narrow.allowed) {
        out[wide.group].push_back(call_but(call, wide, narrow));
        return;
    }
    // Where both are closed, what is opened by one alone; where both are open, what is closed by the other alone; and
    // where the other is open, what is opened here and closed there.
    const auto& cases = wide.allowed ? narrow.exceptions : wide.exceptions;
    const auto& others = wide.allowed ? wide.exceptions : narrow.exceptions;
    const bool in_both = !wide.allowed && narrow.allowed;
    for (const auto& [condition, group] : cases) {
        if (others.contains(condition) == in_both) out[group].push_back(concat(call, " if ", condition));
    }
}

}  // namespace

std::vector<std::string> conditions_of(const SyscallRule& rule) {
    std::vector<std::string> texts;
    for (const SyscallArg& arg : rule.args) texts.push_back(condition_text(arg));
    if (texts.empty() || repeats_an_index(rule)) return texts;
    return {join(texts, " and ")};
}

std::string answer_in_words(std::string_view action, std::optional<uint32_t> errno_ret) {
    constexpr std::pair<std::string_view, const char*> kWords[] = {
        {"SCMP_ACT_ALLOW", "allowed"},
        {"SCMP_ACT_LOG", "allowed and logged"},
        {"SCMP_ACT_TRAP", "answered with a signal"},
        {"SCMP_ACT_TRACE", "left to a tracer"},
        {"SCMP_ACT_NOTIFY", "left to the listener"},
        {"SCMP_ACT_KILL", "killing the thread"},
        {"SCMP_ACT_KILL_THREAD", "killing the thread"},
        {"SCMP_ACT_KILL_PROCESS", "killing the process"},
    };
    for (const auto& [name, words] : kWords) {
        if (name == action) return words;
    }
    const auto code = static_cast<int>(errno_ret.value_or(EPERM));
    const char* name = ::strerrorname_np(code);
    return concat("denied with ", name ? name : std::to_string(code));
}

bool is_allowing(std::string_view action) { return action == "SCMP_ACT_ALLOW" || action == "SCMP_ACT_LOG"; }

std::string group_of_call(const std::string& call) {
    for (const ShippedProfile& profile : shipped_table()) {
        for (const ShippedRule& rule : profile.rules) {
            for (const std::string_view name : split(rule.names, ' ')) {
                if (name == call) return std::string(rule.group);
            }
        }
    }
    return kNoGroup;
}

CallsByGroup allowed_only_by(const Profile& profile, const Profile& other) {
    std::set<std::string> calls;
    for (const ShippedProfile& shipped : shipped_table()) add_names(unpack(shipped).seccomp, calls);
    add_names(profile.seccomp, calls);
    add_names(other.seccomp, calls);
    const AccessByCall here = access_of(profile, calls);
    const AccessByCall there = access_of(other, calls);
    CallsByGroup out;
    for (const auto& [call, access] : here) add_difference(call, access, there.at(call), out);
    add_architectures(profile.seccomp, other.seccomp, out);
    return out;
}

}  // namespace pinfold
