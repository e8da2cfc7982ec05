// The recorder: what it lets a program do, and that the profile it learns lets it do the same and no more.
#include "seccomp/recorder.hpp"

#include <algorithm>
#include <cerrno>
#include <climits>

#include "calls.hpp"
#include "json/json.hpp"
#include "seccomp/access.hpp"
#include "seccomp/shipped.hpp"

namespace pinfold::testing {

namespace {

constexpr uint64_t kThread = 0x3d0f00;
constexpr uint64_t kForked = 0x1200011;
constexpr uint64_t kNewUser = 0x1000'0000;
constexpr uint64_t kTcgets = 0x5401;
constexpr uint64_t kHigh = 0x1'0000'0000;

Profile learn(const std::vector<seccomp_data>& calls, const std::optional<Profile>& earlier = {}) {
    Recorder recorder;
    for (const seccomp_data& data : calls) recorder.record(data);
    return recorder.learned("a test", earlier);
}

std::string text_of(const Profile& profile) { return json_text(to_json(profile)); }

// The notes of a rule that allows the call; fails the test if there is none.
RuleNote note_of(const Profile& profile, const std::string& call) {
    for (size_t i = 0; i < profile.notes.size(); ++i) {
        const SyscallRule& rule = profile.seccomp.syscalls[i];
        if (std::ranges::find(rule.names, call) != rule.names.end()) return profile.notes[i];
    }
    FAIL("no rule for " << call);
    return {};
}

bool some_profile_allows(const seccomp_data& data) {
    return std::ranges::any_of(shipped_table(), [&](const ShippedProfile& profile) {
        return profile.name != "learn" && evaluate(profile.program, data) == kAllow;
    });
}

}  // namespace

TEST_CASE("recorder: while it is recorded, a program may do what some profile allows, whatever the call") {
    if (seccomp_arch_native() != SCMP_ARCH_X86_64) SKIP_TEST("other machines have other pairs of architectures");
    const SeccompFilter watched = compiled(Recorder().watched());
    size_t told = 0;
    for (const uint32_t arch : {uint32_t{SCMP_ARCH_X86_64}, uint32_t{SCMP_ARCH_X86}}) {
        for (int number = 0; number < 520; ++number) {
            for (const uint64_t value : {uint64_t{0}, uint64_t{1}, uint64_t{2}, uint64_t{10}, uint64_t{16}, kTcgets,
                                         uint64_t{0x5412}, kForked, kThread, kThread | kNewUser, uint64_t{0x40000},
                                         uint64_t{0x400000}, uint64_t{0x8912}, kHigh, uint64_t{ULLONG_MAX}}) {
                for (const uint64_t other : {uint64_t{0}, uint64_t{2}, uint64_t{59}}) {
                    const seccomp_data data = call_number(number, arch, {value, value == 2 ? 1 : value, other});
                    const uint32_t answer = verdict(watched, data) & SECCOMP_RET_ACTION_FULL;
                    const bool goes_on = answer == kAllow || answer == SECCOMP_RET_TRACE;
                    if (goes_on != some_profile_allows(data))
                        FAIL_CHECK(number << " of " << arch << " with " << value << " and " << other);
                    told += answer == SECCOMP_RET_TRACE ? 1 : 0;
                }
            }
        }
    }
    CHECK(told > 10000);
}

TEST_CASE("recorder: the learned profile allows what was seen, and only that") {
    struct Row {
        seccomp_data seen;
        seccomp_data other;  // of the same kind, and not seen
    };
    const Row rows[] = {
        {call("openat"), call("open")},
        {call("clone", {kThread}), call("clone", {kForked})},
        {call("clone", {kForked}), call("clone", {kForked | kNewUser})},
        {call("socket", {1, 1, 0}), call("socket", {2, 1, 0})},
        {call("socket", {2, 0x80801, 6}), call("socket", {2, 2, 17})},
        {call("socket", {16, 3, 0}), call("socket", {1, 1, 0})},
        {call("ioctl", {0, kTcgets}), call("ioctl", {0, 0x5402})},
        {call("ioctl", {0, 0xffffffff80045430}), call("ioctl", {0, 0x40049409})},
        {call("personality", {0x40000}), call("personality", {0})},
        {call("mknodat", {0, 0, 0010644}), call("mknodat", {0, 0, 0644})},
        {call("shmget"), call("msgget")},
    };
    for (const Row& row : rows) {
        CAPTURE(row.seen.nr);
        CAPTURE(row.seen.args[0]);
        const SeccompFilter filter = compiled(learn({row.seen}).seccomp);
        CHECK(verdict(filter, row.seen) == kAllow);
        CHECK(verdict(filter, row.other) != kAllow);
        for (const char* always : {"execve", "exit_group", "read", "mmap", "futex", "rt_sigreturn"}) {
            CHECK(verdict(filter, call(always)) == kAllow);
        }
        CHECK(verdict(filter, call("clone3")) == answers(ENOSYS));
        CHECK(verdict(filter, call("mount")) == answers(EPERM));
    }
}

TEST_CASE("recorder: a tracer is told of all but what every program does, and denials stay denials") {
    const SeccompFilter watched = compiled(Recorder().watched());
    for (const char* unseen : {"execve", "read", "mmap", "futex", "exit_group", "rt_sigreturn"}) {
        CHECK(verdict(watched, call(unseen)) == kAllow);
    }
    for (const char* told : {"openat", "execveat", "shmget", "connect"}) {
        CHECK((verdict(watched, call(told)) & SECCOMP_RET_ACTION_FULL) == SECCOMP_RET_TRACE);
    }
    CHECK(verdict(watched, call("mount")) == answers(EPERM));
    CHECK(verdict(watched, call("clone", {kForked | kNewUser})) == answers(EPERM));
    CHECK(verdict(watched, call("ioctl", {0, 0x5412})) == answers(EPERM));
    CHECK(verdict(watched, call("clone3")) == answers(ENOSYS));
    CHECK(verdict(watched, call_number(5000)) == answers(ENOSYS));
}

TEST_CASE("recorder: what no profile allows is not learned, even if it is recorded") {
    const Profile profile = learn({call("mount"), call("clone", {kForked | kNewUser}), call("ioctl", {0, 0x5412}),
                                   call("clone3"), call_number(5000)});
    CHECK(text_of(profile) == text_of(learn({})));
}

TEST_CASE("recorder: rules come with the group and the reason of the profile that they are from") {
    const Profile profile = learn({call("openat"), call("shmget"), call("ioctl", {0, kTcgets})});
    CHECK(profile.description == "a test");
    CHECK(note_of(profile, "openat").group == "files");
    CHECK(note_of(profile, "shmget").reason.starts_with("fakeroot, databases"));
    CHECK(note_of(profile, "read").group == "reading and writing");
    CHECK(note_of(profile, "ioctl").reason == "The program made this request.");
}

TEST_CASE("recorder: the order of calls makes no difference, nor does learning the same again") {
    const std::vector<seccomp_data> calls = {call("openat"), call("socket", {1}), call("clone", {kThread}),
                                             call("ioctl", {0, kTcgets}), call("ioctl", {0, 0x5413})};
    const Profile once = learn(calls);
    CHECK(text_of(learn({calls.rbegin(), calls.rend()})) == text_of(once));
    CHECK(text_of(learn(calls, once)) == text_of(once));
    const Profile both = learn({call("unlink")}, learn({call("openat")}));
    CHECK(text_of(both) == text_of(learn({call("openat")}, learn({call("unlink")}))));
    CHECK(text_of(both) == text_of(learn({call("openat"), call("unlink")})));
}

TEST_CASE("recorder: an earlier profile keeps its rules, its words and its denials") {
    Profile earlier{"mine", profile("SCMP_ACT_ERRNO", {}), {}};
    earlier.seccomp.default_errno_ret = EACCES;
    earlier.seccomp.syscalls = {rule({"ptrace", "ioctl"}, "SCMP_ACT_ALLOW"),
                                rule_errno({"unlink"}, "SCMP_ACT_ERRNO", EROFS)};
    earlier.notes = {{"debugging", "It is a debugger."}, {"", ""}};
    const Profile merged = learn({call("unlink"), call("ioctl", {0, kTcgets}), call("openat")}, earlier);
    const SeccompFilter filter = compiled(merged.seccomp);
    CHECK(merged.description == "mine");
    CHECK(verdict(filter, call("ptrace")) == kAllow);
    CHECK(verdict(filter, call("ioctl", {0, 0x5412})) == kAllow);
    CHECK(verdict(filter, call("openat")) == kAllow);
    CHECK(verdict(filter, call("unlink")) == answers(EROFS));
    CHECK(verdict(filter, call("mkdir")) == answers(EACCES));
    CHECK(note_of(merged, "ptrace").reason == "It is a debugger.");
    CHECK(note_of(merged, "ioctl").group == "debugging");
    const auto names_unlink = [](const SyscallRule& one) {
        return std::ranges::find(one.names, "unlink") != one.names.end();
    };
    CHECK(std::ranges::count_if(merged.seccomp.syscalls, names_unlink) == 1);
}

TEST_CASE("recorder: programs of another architecture are let in only where one was seen") {
    const seccomp_data foreign = call("getuid32", {}, SCMP_ARCH_X86);
    const seccomp_data native = call("getuid");
    if (seccomp_arch_native() != SCMP_ARCH_X86_64) SKIP_TEST("other machines have other pairs of architectures");
    CHECK(verdict(compiled(learn({native}).seccomp), foreign) == SECCOMP_RET_KILL_THREAD);
    const SeccompFilter both = compiled(learn({native, foreign}).seccomp);
    CHECK(verdict(both, foreign) == kAllow);
    CHECK(verdict(both, call("socketcall", {1}, SCMP_ARCH_X86)) == answers(ENOSYS));
}

TEST_CASE("recorder: what a program can make it remember is bounded") {
    Recorder recorder;
    for (int i = 0; i < 100000; ++i) {
        recorder.record(call("ioctl", {0, 0x8000 + uint64_t(i) * 0x10000}));
        recorder.record(call_number(1000 + i));
    }
    CHECK(text_of(recorder.learned("a test", {})).size() < 1'000'000);
    recorder.record(call("ioctl", {0, 0xffff8000}));
    CHECK(verdict(compiled(recorder.learned("a test", {}).seccomp), call("ioctl", {0, 0xffff8000})) == kAllow);
}

}  // namespace pinfold::testing
