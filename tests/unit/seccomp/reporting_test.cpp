// Reporting: the same program but for denials, and the listener's answers are those that the program would have given.
#include "seccomp/reporting.hpp"

#include <cerrno>

#include "calls.hpp"
#include "seccomp/cache.hpp"
#include "seccomp/cache_key.hpp"
#include "support/temp_dir.hpp"

namespace pinfold::testing {

namespace {

constexpr uint32_t kNotify = SECCOMP_RET_USER_NOTIF;

Seccomp sample() {
    return profile("SCMP_ACT_ERRNO", {
                                         rule({"read"}, "SCMP_ACT_ALLOW"),
                                         rule({"socket"}, "SCMP_ACT_ALLOW", {{0, 1, 0, "SCMP_CMP_EQ"}}),
                                         rule_errno({"mkdir"}, "SCMP_ACT_ERRNO", EACCES),
                                         rule_errno({"clone3"}, "SCMP_ACT_ERRNO", ENOSYS),
                                         rule({"mount"}, "SCMP_ACT_KILL_PROCESS"),
                                         rule({"statx"}, "SCMP_ACT_TRAP"),
                                         rule({"chmod"}, "SCMP_ACT_LOG"),
                                     });
}

}  // namespace

TEST_CASE("reporting: denials become notifications, all else stays") {
    const SeccompFilter plain = compiled(sample());
    const SeccompFilter reporting = compiled(with_reporting(sample()));
    struct Row {
        seccomp_data data;
        uint32_t plain, reporting;
    };
    const Row rows[] = {
        {call("read"), kAllow, kAllow},
        {call("socket", {1}), kAllow, kAllow},
        {call("socket", {2}), answers(EPERM), kNotify},
        {call("mkdir"), answers(EACCES), kNotify},
        {call("ptrace"), answers(EPERM), kNotify},
        {call("clone3"), answers(ENOSYS), answers(ENOSYS)},
        {call_number(100'000), answers(ENOSYS), answers(ENOSYS)},
        {call("mount"), SECCOMP_RET_KILL_PROCESS, SECCOMP_RET_KILL_PROCESS},
        {call("statx"), SECCOMP_RET_TRAP, SECCOMP_RET_TRAP},
        {call("chmod"), SECCOMP_RET_LOG, SECCOMP_RET_LOG},
        {call_number(0, SCMP_ARCH_ARM), SECCOMP_RET_KILL_THREAD, SECCOMP_RET_KILL_THREAD},
    };
    for (const Row& row : rows) {
        CAPTURE(syscall_name(row.data.arch, row.data.nr));
        CHECK(verdict(plain, row.data) == row.plain);
        CHECK(verdict(reporting, row.data) == row.reporting);
    }
    CHECK(plain.flags == 0);
    CHECK(reporting.flags == SECCOMP_FILTER_FLAG_NEW_LISTENER);
}

TEST_CASE("reporting: flags of the profile stay, and asking twice is asking once") {
    Seccomp section = sample();
    section.flags = {"SECCOMP_FILTER_FLAG_TSYNC", "SECCOMP_FILTER_FLAG_LOG"};
    const unsigned expected = SECCOMP_FILTER_FLAG_TSYNC | SECCOMP_FILTER_FLAG_TSYNC_ESRCH | SECCOMP_FILTER_FLAG_LOG |
                              SECCOMP_FILTER_FLAG_NEW_LISTENER;
    const Seccomp twice = with_reporting(with_reporting(section));
    CHECK(compiled(twice).flags == expected);
    CHECK_FALSE(is_reporting(section));
    CHECK(is_reporting(twice));
    CHECK(without_reporting(twice).flags == section.flags);
}

TEST_CASE("reporting: the cache holds one program for both ways") {
    const TempDir dir;
    for (int round = 0; round < 2; ++round) {
        const Result<SeccompFilter> filter = compile_seccomp_cached(with_reporting(sample()), dir.path());
        REQUIRE_MESSAGE(filter, filter.error().message);
        CHECK(verdict(*filter, call("mkdir")) == kNotify);
        CHECK(filter->flags == SECCOMP_FILTER_FLAG_NEW_LISTENER);
    }
    const Result<SeccompFilter> plain = compile_seccomp_cached(sample(), dir.path());
    REQUIRE(plain);
    CHECK(verdict(*plain, call("mkdir")) == answers(EACCES));
    CHECK(plain->flags == 0);
}

TEST_CASE("reporting: the listener answers what the program would have answered, and never success") {
    const SeccompFilter plain = compiled(sample());
    CHECK(denial_errno(plain.program, call("mkdir")) == EACCES);
    CHECK(denial_errno(plain.program, call("ptrace")) == EPERM);
    CHECK(denial_errno(plain.program, call("socket", {2})) == EPERM);
    CHECK(denial_errno(plain.program, call("read")) == EPERM);
    CHECK(denial_errno({}, call("read")) == EPERM);
}

TEST_CASE("reporting: calls have names, or at least numbers") {
    CHECK(syscall_name(SCMP_ARCH_X86_64, 165) == "mount");
    CHECK(syscall_name(SCMP_ARCH_X86, 21) == "mount");
    CHECK(syscall_name(SCMP_ARCH_AARCH64, 40) == "mount");
    CHECK(syscall_name(SCMP_ARCH_X86_64, 100'000) == "100000");
    CHECK(syscall_name(0x1234, 3) == "3");
}

}  // namespace pinfold::testing
