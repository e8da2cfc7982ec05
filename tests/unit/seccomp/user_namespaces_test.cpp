// Which filters keep a program from a new user namespace, whichever way it asks for one.
#include "seccomp/user_namespaces.hpp"

#include <sched.h>

#include <cerrno>

#include "calls.hpp"
#include "pinfold/seccomp_profile.hpp"

namespace pinfold::testing {

namespace {

bool denies(const Seccomp& wanted) { return denies_user_namespaces(compiled(wanted).program); }

SyscallArg new_user(const char* op) { return {0, CLONE_NEWUSER, CLONE_NEWUSER, op}; }

}  // namespace

TEST_CASE("user namespaces: the profile that denies nothing else, and those that come with pinfold") {
    CHECK(denies(profile_without_user_namespaces()));
    const SeccompFilter filter = compiled(profile_without_user_namespaces());
    CHECK(evaluate(filter.program, call("unshare", {CLONE_NEWNS})) == kAllow);
    CHECK(evaluate(filter.program, call("clone", {CLONE_VM})) == kAllow);
    CHECK(evaluate(filter.program, call("mount")) == kAllow);
    for (const char* name : {"strict", "default", "network"}) {
        CAPTURE(std::string(name));
        const Result<Seccomp> shipped = find_profile(name);
        REQUIRE(shipped);
        CHECK(denies(*shipped));
    }
}

TEST_CASE("user namespaces: a way that is left, or left to others, is no denial") {
    const Seccomp whole = profile_without_user_namespaces();
    CHECK_FALSE(denies(profile("SCMP_ACT_ALLOW", {})));
    for (size_t left_out = 0; left_out < 2; ++left_out) {
        Seccomp part = whole;
        part.syscalls.erase(part.syscalls.begin() + std::ptrdiff_t(left_out));
        CHECK_FALSE(denies(part));
    }
    Seccomp exact = whole;
    exact.syscalls[0].args = {new_user("SCMP_CMP_EQ")};
    CHECK_FALSE(denies(exact));
    Seccomp with_another = whole;  // together with a flag that programs may well ask for
    with_another.syscalls[0].args = {{0, CLONE_NEWUSER | CLONE_SYSVSEM, CLONE_NEWUSER, "SCMP_CMP_MASKED_EQ"}};
    CHECK_FALSE(denies(with_another));
    Seccomp told = whole;
    told.syscalls[0].action = "SCMP_ACT_LOG";
    told.syscalls[0].errno_ret.reset();
    CHECK_FALSE(denies(told));
    Seccomp asked = whole;
    asked.syscalls[0].action = "SCMP_ACT_NOTIFY";
    asked.syscalls[0].errno_ret.reset();
    CHECK_FALSE(denies(asked));
    Seccomp killed = whole;
    killed.syscalls[0].action = "SCMP_ACT_KILL_PROCESS";
    killed.syscalls[0].errno_ret.reset();
    CHECK(denies(killed));
}

}  // namespace pinfold::testing
