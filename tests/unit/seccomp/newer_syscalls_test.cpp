// Calls above the highest one that an allow list names answer ENOSYS, and nothing else changes.
#include <cerrno>

#include "calls.hpp"

namespace pinfold::testing {

namespace {

int number_of(const char* name) { return seccomp_syscall_resolve_name(name); }

}  // namespace

TEST_CASE("calls newer than an allow list answer ENOSYS") {
    Seccomp section = profile("SCMP_ACT_ERRNO", {rule({"read", "statx", "no_such_call"}, "SCMP_ACT_ALLOW")});
    const int statx = number_of("statx");
    for (const std::optional<uint32_t> default_errno : {std::optional<uint32_t>(), std::optional<uint32_t>(EPERM)}) {
        section.default_errno_ret = default_errno;
        const SeccompFilter filter = compiled(section);
        CHECK(verdict(filter, call("read")) == kAllow);
        CHECK(verdict(filter, call_number(statx)) == kAllow);
        CHECK(verdict(filter, call_number(statx - 1)) == answers(EPERM));
        CHECK(verdict(filter, call_number(statx + 1)) == answers(ENOSYS));
        CHECK(verdict(filter, call("clone3")) == answers(ENOSYS));
        CHECK(verdict(filter, call_number(100'000)) == answers(ENOSYS));
    }
}

TEST_CASE("a call that the profile names is not newer than the profile, whatever its rule says") {
    const SeccompFilter filter = compiled(profile("SCMP_ACT_ERRNO", {
                                                                        rule({"read"}, "SCMP_ACT_ALLOW"),
                                                                        rule({"clone3"}, "SCMP_ACT_ERRNO"),
                                                                    }));
    CHECK(verdict(filter, call("clone3")) == answers(EPERM));
    CHECK(verdict(filter, call_number(number_of("clone3") + 1)) == answers(ENOSYS));
}

TEST_CASE("other architectures, and x32, keep the profile's own answer") {
    Seccomp section = profile("SCMP_ACT_ERRNO", {rule({"read"}, "SCMP_ACT_ALLOW")});
    section.architectures = {"SCMP_ARCH_X86_64", "SCMP_ARCH_X86", "SCMP_ARCH_X32", "SCMP_ARCH_AARCH64"};
    const SeccompFilter filter = compiled(section);
    const uint32_t tokens[] = {SCMP_ARCH_X86_64, SCMP_ARCH_X86, SCMP_ARCH_X32, SCMP_ARCH_AARCH64};
    for (const uint32_t arch : tokens) {
        CAPTURE(arch);
        CHECK(verdict(filter, call("read", {}, arch)) == kAllow);
        CHECK(verdict(filter, call("clone3", {}, arch)) == answers(arch == seccomp_arch_native() ? ENOSYS : EPERM));
    }
}

TEST_CASE("a default other than EPERM is the author's answer for newer calls too") {
    struct Row {
        std::string action;
        std::optional<uint32_t> errno_ret;
        uint32_t expected;
    };
    const Row rows[] = {
        {"SCMP_ACT_ERRNO", EACCES, SECCOMP_RET_ERRNO | EACCES},
        {"SCMP_ACT_KILL_PROCESS", {}, SECCOMP_RET_KILL_PROCESS},
        {"SCMP_ACT_TRACE", {}, SECCOMP_RET_TRACE | EPERM},
        {"SCMP_ACT_TRAP", {}, SECCOMP_RET_TRAP},
        {"SCMP_ACT_LOG", {}, SECCOMP_RET_LOG},
    };
    for (const Row& row : rows) {
        CAPTURE(row.action);
        Seccomp section = profile(row.action, {rule({"read"}, "SCMP_ACT_ALLOW")});
        section.default_errno_ret = row.errno_ret;
        CHECK(verdict(compiled(section), call("clone3")) == row.expected);
    }
}

TEST_CASE("a profile that names nothing has no newer calls") {
    CHECK(verdict(compiled(profile("SCMP_ACT_ERRNO")), call("clone3")) == answers(EPERM));
    CHECK(verdict(compiled(profile("SCMP_ACT_ERRNO", {rule({"no_such_call"}, "SCMP_ACT_ALLOW")})), call("clone3")) ==
          answers(EPERM));
}

}  // namespace pinfold::testing
