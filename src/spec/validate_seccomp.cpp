// The rules for seccomp: known words, and combinations that mean something.
#include <algorithm>
#include <array>

#include "spec/validate.hpp"
#include "spec/words.hpp"

namespace pinfold {

namespace {

constexpr auto kActions = std::to_array<std::string_view>(
    {"SCMP_ACT_KILL", "SCMP_ACT_KILL_PROCESS", "SCMP_ACT_KILL_THREAD", "SCMP_ACT_TRAP", "SCMP_ACT_ERRNO",
     "SCMP_ACT_TRACE", "SCMP_ACT_ALLOW", "SCMP_ACT_LOG", "SCMP_ACT_NOTIFY"});

constexpr auto kArchitectures = std::to_array<std::string_view>(
    {"SCMP_ARCH_X86",         "SCMP_ARCH_X86_64",   "SCMP_ARCH_X32",         "SCMP_ARCH_ARM",    "SCMP_ARCH_AARCH64",
     "SCMP_ARCH_LOONGARCH64", "SCMP_ARCH_M68K",     "SCMP_ARCH_MIPS",        "SCMP_ARCH_MIPS64", "SCMP_ARCH_MIPS64N32",
     "SCMP_ARCH_MIPSEL",      "SCMP_ARCH_MIPSEL64", "SCMP_ARCH_MIPSEL64N32", "SCMP_ARCH_PPC",    "SCMP_ARCH_PPC64",
     "SCMP_ARCH_PPC64LE",     "SCMP_ARCH_S390",     "SCMP_ARCH_S390X",       "SCMP_ARCH_SH",     "SCMP_ARCH_SHEB",
     "SCMP_ARCH_PARISC",      "SCMP_ARCH_PARISC64", "SCMP_ARCH_RISCV64"});

constexpr auto kFlags =
    std::to_array<std::string_view>({"SECCOMP_FILTER_FLAG_TSYNC", "SECCOMP_FILTER_FLAG_LOG",
                                     "SECCOMP_FILTER_FLAG_SPEC_ALLOW", "SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV"});

constexpr auto kOperators = std::to_array<std::string_view>(
    {"SCMP_CMP_NE", "SCMP_CMP_LT", "SCMP_CMP_LE", "SCMP_CMP_EQ", "SCMP_CMP_GE", "SCMP_CMP_GT", "SCMP_CMP_MASKED_EQ"});

constexpr std::string_view kNotify = "SCMP_ACT_NOTIFY";
constexpr std::string_view kRulesAt = "linux.seccomp.syscalls";

// The specification has it an error where the action cannot return a number.
void validate_errno(std::string path, const std::optional<uint32_t>& value, std::string_view action,
                    Problems& problems) {
    if (value && action != "SCMP_ACT_ERRNO" && action != "SCMP_ACT_TRACE") {
        problems.add(std::move(path), concat("not for ", action, ", only for SCMP_ACT_ERRNO and SCMP_ACT_TRACE"));
    }
}

void validate_rule(const SyscallRule& rule, std::string_view at, Problems& problems) {
    if (rule.names.empty()) problems.add(member_path(at, "names"), "missing, required: at least one system call");
    for (size_t i = 0; i < rule.names.size(); ++i) {
        if (rule.names[i].empty()) {
            problems.add(element_path(member_path(at, "names"), i),
                         expected_but_found("", "the name of a system call"));
        }
    }
    require_known(member_path(at, "action"), rule.action, kActions, problems);
    validate_errno(member_path(at, "errnoRet"), rule.errno_ret, rule.action, problems);
    for (size_t i = 0; i < rule.args.size(); ++i) {
        const std::string arg = element_path(member_path(at, "args"), i);
        require_range(member_path(arg, "index"), rule.args[i].index, 0, 5, problems);
        require_known(member_path(arg, "op"), rule.args[i].op, kOperators, problems);
    }
}

void validate_listener(const Seccomp& seccomp, Problems& problems) {
    const bool notifies = std::any_of(seccomp.syscalls.begin(), seccomp.syscalls.end(),
                                      [](const SyscallRule& rule) { return rule.action == kNotify; });
    if (notifies && seccomp.listener_path.empty()) {
        problems.add("linux.seccomp.listenerPath", "missing, required: a socket, since a rule has SCMP_ACT_NOTIFY");
    }
    if (!seccomp.listener_metadata.empty() && seccomp.listener_path.empty()) {
        problems.add("linux.seccomp.listenerMetadata", "needs listenerPath");
    }
}

}  // namespace

Words seccomp_architectures() { return kArchitectures; }

void validate_seccomp(const Seccomp& seccomp, Problems& problems) {
    require_known("linux.seccomp.defaultAction", seccomp.default_action, kActions, problems);
    if (seccomp.default_action == kNotify) {
        // The process that is to hand over the listener would wait for the listener's leave to do so.
        problems.add("linux.seccomp.defaultAction", "SCMP_ACT_NOTIFY is for rules only");
    }
    validate_errno("linux.seccomp.defaultErrnoRet", seccomp.default_errno_ret, seccomp.default_action, problems);
    require_all_known("linux.seccomp.flags", seccomp.flags, kFlags, problems);
    require_all_known("linux.seccomp.architectures", seccomp.architectures, kArchitectures, problems);
    for (size_t i = 0; i < seccomp.syscalls.size(); ++i) {
        validate_rule(seccomp.syscalls[i], element_path(kRulesAt, i), problems);
    }
    validate_listener(seccomp, problems);
}

}  // namespace pinfold
