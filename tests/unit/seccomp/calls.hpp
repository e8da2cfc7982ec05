// Short ways to write a profile, a call, and the verdict on it.
#pragma once

#include <seccomp.h>

#include <array>
#include <string>
#include <vector>

#include "seccomp/bpf_eval.hpp"
#include "seccomp/compile.hpp"
#include "support/testing.hpp"

namespace pinfold::testing {

using Arguments = std::array<uint64_t, 6>;

inline SyscallRule rule(std::vector<std::string> names, std::string action, std::vector<SyscallArg> args = {}) {
    return {std::move(names), std::move(action), {}, std::move(args)};
}

inline SyscallRule rule_errno(std::vector<std::string> names, std::string action, uint32_t errno_ret) {
    return {std::move(names), std::move(action), errno_ret, {}};
}

inline Seccomp profile(std::string default_action, std::vector<SyscallRule> rules = {}) {
    Seccomp out;
    out.default_action = std::move(default_action);
    out.syscalls = std::move(rules);
    return out;
}

inline SeccompFilter compiled(const Seccomp& section) {
    Result<SeccompFilter> result = compile_seccomp(section);
    REQUIRE_MESSAGE(result, result.error().message);
    return std::move(result).value();
}

inline std::string compile_failure(const Seccomp& section) {
    const Result<SeccompFilter> result = compile_seccomp(section);
    return result ? "compiled" : result.error().message;
}

inline seccomp_data call_number(int number, uint32_t arch = seccomp_arch_native(), const Arguments& args = {}) {
    seccomp_data data{};
    data.nr = number;
    data.arch = arch;
    for (size_t i = 0; i < args.size(); ++i) data.args[i] = args[i];
    return data;
}

inline seccomp_data call(const std::string& name, const Arguments& args = {}, uint32_t arch = seccomp_arch_native()) {
    const int number = seccomp_syscall_resolve_name_arch(arch, name.c_str());
    REQUIRE_MESSAGE(number >= 0, name);
    // For libseccomp x32 is an architecture of its own; for the kernel it is x86_64 with a bit in the number.
    return call_number(number, arch == SCMP_ARCH_X32 ? SCMP_ARCH_X86_64 : arch, args);
}

inline uint32_t verdict(const SeccompFilter& filter, const seccomp_data& data) {
    return evaluate(filter.program, data);
}

inline constexpr uint32_t kAllow = SECCOMP_RET_ALLOW;
inline uint32_t answers(int code) { return SECCOMP_RET_ERRNO | uint32_t(code); }

}  // namespace pinfold::testing
