// Under which filters no file gets a set-user-ID or set-group-ID bit, whatever profile they are made from.
#include "seccomp/set_id.hpp"

#include <fcntl.h>

#include <cerrno>

#include "calls.hpp"
#include "pinfold/seccomp_profile.hpp"

namespace pinfold::testing {

namespace {

constexpr uint64_t kCreate = O_CREAT | O_WRONLY, kTemporary = O_TMPFILE | O_WRONLY;
constexpr uint64_t kHigh = uint64_t{1} << 40;  // the kernel looks at 32 bits of a mode, and of flags

// Each way to set the bit, and the same way to make or change a plain file.
void check_bits(const Seccomp& wanted, uint32_t arch = seccomp_arch_native()) {
    const SeccompFilter filter = compiled(without_set_id_bits(wanted));
    const auto answer = [&](const char* name, const Arguments& args) {
        return verdict(filter, call(name, args, arch));
    };
    for (const uint64_t bits : {uint64_t{04755}, uint64_t{02755}, uint64_t{06000}, kHigh | 04755}) {
        CAPTURE(bits);
        CHECK(answer("chmod", {0, bits}) == answers(EPERM));
        CHECK(answer("fchmod", {0, bits}) == answers(EPERM));
        CHECK(answer("fchmodat", {0, 0, bits}) == answers(EPERM));
        CHECK(answer("creat", {0, bits}) == answers(EPERM));
        CHECK(answer("mknod", {0, 0100000 | bits}) == answers(EPERM));
        CHECK(answer("mknodat", {0, 0, 0100000 | bits}) == answers(EPERM));
        for (const uint64_t flags : {kCreate, kTemporary, kCreate | kHigh}) {
            CHECK(answer("open", {0, flags, bits}) == answers(EPERM));
            CHECK(answer("openat", {0, 0, flags, bits}) == answers(EPERM));
        }
        CHECK(answer("open", {0, O_RDWR | O_DIRECTORY, bits}) == kAllow);  // nothing is made: no mode is looked at
        CHECK(answer("openat", {0, 0, O_RDWR, bits}) == kAllow);
    }
    for (const uint64_t bits : {uint64_t{0}, uint64_t{0644}, uint64_t{01777}}) {
        CHECK(answer("chmod", {0, bits}) == kAllow);
        CHECK(answer("mknodat", {0, 0, 0010000 | bits}) == kAllow);
        CHECK(answer("openat", {0, 0, kCreate, bits}) == kAllow);
    }
    CHECK(answer("openat2", {}) == answers(ENOSYS));
    for (const char* name : {"setxattr", "lsetxattr", "fsetxattr"}) CHECK(answer(name, {}) == answers(EOPNOTSUPP));
    constexpr int kSetxattrat = 463;  // libseccomp does not know it
    CHECK(verdict(filter, call_number(kSetxattrat, arch)) != kAllow);
}

}  // namespace

TEST_CASE("set-id: no profile that comes with pinfold leaves a way") {
    for (const char* name : {"default", "network", "build"}) {
        CAPTURE(std::string(name));
        const Result<Seccomp> shipped = find_profile(name);
        REQUIRE(shipped);
        check_bits(*shipped);
#if defined(__x86_64__)
        check_bits(*shipped, SCMP_ARCH_X86);
#endif
    }
}

TEST_CASE("set-id: no profile of others leaves a way, and what it denies stays denied") {
    check_bits(profile("SCMP_ACT_ALLOW"));
    check_bits(profile("SCMP_ACT_ALLOW", {rule({"chmod"}, "SCMP_ACT_ALLOW"), rule({"mount"}, "SCMP_ACT_ERRNO")}));
    const Seccomp denying =
        without_set_id_bits(profile("SCMP_ACT_ALLOW", {rule_errno({"chmod"}, "SCMP_ACT_ERRNO", 13)}));
    CHECK(verdict(compiled(denying), call("chmod", {0, 0644})) == answers(EACCES));
    CHECK(verdict(compiled(denying), call("chmod", {0, 04755})) == answers(EACCES));
    const Seccomp empty = without_set_id_bits(profile("SCMP_ACT_ERRNO", {rule({"statx"}, "SCMP_ACT_ALLOW")}));
    CHECK(verdict(compiled(empty), call("chmod", {0, 0644})) == answers(EPERM));
}

TEST_CASE("set-id: conditions of a profile hold besides") {
    const auto answer = [](std::vector<SyscallArg> conditions, const Arguments& args) {
        const Seccomp wanted = profile("SCMP_ACT_ERRNO", {rule({"fchmodat"}, "SCMP_ACT_ALLOW", std::move(conditions))});
        return verdict(compiled(without_set_id_bits(wanted)), call("fchmodat", args));
    };
    const SyscallArg in_seven{0, 7, 0, "SCMP_CMP_EQ"};
    CHECK(answer({in_seven}, {7, 0, 0644}) == kAllow);
    CHECK(answer({in_seven}, {7, 0, 04644}) == answers(EPERM));
    CHECK(answer({in_seven}, {8, 0, 0644}) == answers(EPERM));
    const SyscallArg for_all{2, 0777, 0777, "SCMP_CMP_MASKED_EQ"}, exact{2, 04755, 0, "SCMP_CMP_EQ"};
    CHECK(answer({for_all}, {0, 0, 0777}) == kAllow);
    CHECK(answer({for_all}, {0, 0, 04777}) == answers(EPERM));
    CHECK(answer({for_all}, {0, 0, 0644}) == answers(EPERM));
    CHECK(answer({exact}, {0, 0, 04755}) == answers(EPERM));
    CHECK(answer({{2, 0644, 0, "SCMP_CMP_GE"}}, {0, 0, 04755}) == answers(EPERM));
    CHECK(answer({for_all, exact}, {0, 0, 0777}) == kAllow);  // of one argument: alternatives
    CHECK(answer({for_all, exact}, {0, 0, 04755}) == answers(EPERM));
}

}  // namespace pinfold::testing
