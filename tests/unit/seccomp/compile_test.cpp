// What compiled profiles answer: every action, operator and flag, several architectures, and what is refused.
#include <linux/seccomp.h>

#include <cerrno>

#include "calls.hpp"

namespace pinfold::testing {

namespace {

uint32_t verdict_with(const SyscallArg& arg, uint64_t value) {
    const Seccomp section = profile("SCMP_ACT_KILL", {rule({"mkdir"}, "SCMP_ACT_ALLOW", {arg})});
    Arguments args{};
    args[arg.index] = value;
    return verdict(compiled(section), call("mkdir", args));
}

}  // namespace

TEST_CASE("each action becomes the kernel's return value") {
    struct Row {
        std::string action;
        std::optional<uint32_t> errno_ret;
        uint32_t expected;
    };
    const Row rows[] = {
        {"SCMP_ACT_KILL", {}, SECCOMP_RET_KILL_THREAD},
        {"SCMP_ACT_KILL_THREAD", {}, SECCOMP_RET_KILL_THREAD},
        {"SCMP_ACT_KILL_PROCESS", {}, SECCOMP_RET_KILL_PROCESS},
        {"SCMP_ACT_TRAP", {}, SECCOMP_RET_TRAP},
        {"SCMP_ACT_ERRNO", {}, SECCOMP_RET_ERRNO | EPERM},
        {"SCMP_ACT_ERRNO", 0, SECCOMP_RET_ERRNO | 0},
        {"SCMP_ACT_ERRNO", 42, SECCOMP_RET_ERRNO | 42},
        {"SCMP_ACT_ERRNO", 4094, SECCOMP_RET_ERRNO | 4094},
        {"SCMP_ACT_TRACE", {}, SECCOMP_RET_TRACE | EPERM},
        {"SCMP_ACT_TRACE", 65535, SECCOMP_RET_TRACE | 65535},
        {"SCMP_ACT_ALLOW", {}, SECCOMP_RET_ALLOW},
        {"SCMP_ACT_LOG", {}, SECCOMP_RET_LOG},
        {"SCMP_ACT_NOTIFY", {}, SECCOMP_RET_USER_NOTIF},
    };
    for (const Row& row : rows) {
        CAPTURE(row.action);
        const bool allows = row.expected == SECCOMP_RET_ALLOW;
        Seccomp section = profile(allows ? "SCMP_ACT_TRAP" : "SCMP_ACT_ALLOW", {rule({"mkdir"}, row.action)});
        section.syscalls[0].errno_ret = row.errno_ret;
        const SeccompFilter filter = compiled(section);
        CHECK(verdict(filter, call("mkdir")) == row.expected);
        CHECK(verdict(filter, call("read")) == (allows ? SECCOMP_RET_TRAP : SECCOMP_RET_ALLOW));

        if (row.expected == SECCOMP_RET_USER_NOTIF) continue;
        Seccomp as_default = profile(row.action);
        as_default.default_errno_ret = row.errno_ret;
        CHECK(verdict(compiled(as_default), call("mkdir")) == row.expected);
    }
}

TEST_CASE("a profile that makes no sense is refused") {
    Seccomp errno_for_kill = profile("SCMP_ACT_KILL");
    errno_for_kill.default_errno_ret = 1;
    Seccomp unknown_flag = profile("SCMP_ACT_ALLOW");
    unknown_flag.flags = {"SECCOMP_FILTER_FLAG_NEW_LISTENER"};
    const SyscallRule bad_operator = rule({"read"}, "SCMP_ACT_KILL", {{0, 0, 0, "SCMP_CMP_XX"}});
    const SyscallRule bad_index = rule({"read"}, "SCMP_ACT_KILL", {{6, 0, 0, "SCMP_CMP_EQ"}});

    const SyscallArg seven{0, 7, 0, "SCMP_CMP_EQ"};
    const SyscallRule allowed = rule({"read"}, "SCMP_ACT_ALLOW", {seven});
    const SyscallRule trapped = rule({"read"}, "SCMP_ACT_TRAP", {seven});

    CHECK(compile_failure(profile("ALLOW")) == "unknown seccomp action 'ALLOW'");
    CHECK(compile_failure(profile("SCMP_ACT_NOTIFY")) == "SCMP_ACT_NOTIFY cannot be the default seccomp action");
    CHECK(compile_failure(errno_for_kill) == "seccomp action SCMP_ACT_KILL takes no errno");
    CHECK(compile_failure(unknown_flag) == "unknown seccomp flag 'SECCOMP_FILTER_FLAG_NEW_LISTENER'");
    CHECK(compile_failure(profile("SCMP_ACT_ALLOW", {rule({"read"}, "")})) == "unknown seccomp action ''");
    CHECK(compile_failure(profile("SCMP_ACT_ALLOW", {bad_operator})) == "unknown seccomp operator 'SCMP_CMP_XX'");
    CHECK(compile_failure(profile("SCMP_ACT_ALLOW", {bad_index})) == "seccomp argument index 6 is above 5");
    CHECK(compile_failure(profile("SCMP_ACT_ALLOW", {rule_errno({"read"}, "SCMP_ACT_TRAP", 1)})) ==
          "seccomp action SCMP_ACT_TRAP takes no errno");
    CHECK(compile_failure(profile("SCMP_ACT_ALLOW", {rule_errno({"read"}, "SCMP_ACT_ERRNO", 4095)})) ==
          "seccomp action SCMP_ACT_ERRNO: errno 4095 is above 4094");
    CHECK(compile_failure(profile("SCMP_ACT_ALLOW", {rule_errno({"read"}, "SCMP_ACT_TRACE", 65536)})) ==
          "seccomp action SCMP_ACT_TRACE: errno 65536 is above 65535");
    CHECK(compile_failure(profile("SCMP_ACT_KILL", {allowed, trapped})) ==
          "seccomp rule for 'read' contradicts an earlier one");
}

TEST_CASE("each operator compares all 64 bits of the argument") {
    constexpr uint64_t kBig = 0x1'0000'0005;  // its low half alone is 5
    struct Row {
        std::string op;
        uint64_t value;
        bool allowed;
    };
    const Row rows[] = {
        {"SCMP_CMP_EQ", kBig, true},  {"SCMP_CMP_EQ", 5, false},       {"SCMP_CMP_NE", kBig, false},
        {"SCMP_CMP_NE", 5, true},     {"SCMP_CMP_LT", kBig - 1, true}, {"SCMP_CMP_LT", kBig, false},
        {"SCMP_CMP_LT", 6, true},     {"SCMP_CMP_LE", kBig, true},     {"SCMP_CMP_LE", kBig + 1, false},
        {"SCMP_CMP_LE", 6, true},     {"SCMP_CMP_GE", kBig, true},     {"SCMP_CMP_GE", kBig - 1, false},
        {"SCMP_CMP_GE", 6, false},    {"SCMP_CMP_GT", kBig + 1, true}, {"SCMP_CMP_GT", kBig, false},
        {"SCMP_CMP_GT", ~0ULL, true},
    };
    for (const Row& row : rows) {
        for (const uint32_t index : {0U, 5U}) {
            CAPTURE(row.op);
            CAPTURE(row.value);
            const uint32_t expected = row.allowed ? SECCOMP_RET_ALLOW : SECCOMP_RET_KILL_THREAD;
            CHECK(verdict_with({index, kBig, 0, row.op}, row.value) == expected);
        }
    }
}

TEST_CASE("a masked comparison takes the mask first and the expected bits second") {
    const SyscallArg only_bit_one{0, 0x1'0000'0003, 2, "SCMP_CMP_MASKED_EQ"};
    CHECK(verdict_with(only_bit_one, 2) == kAllow);
    CHECK(verdict_with(only_bit_one, 0xfff6) == kAllow);
    CHECK(verdict_with(only_bit_one, 3) == SECCOMP_RET_KILL_THREAD);
    CHECK(verdict_with(only_bit_one, 0) == SECCOMP_RET_KILL_THREAD);
    CHECK(verdict_with(only_bit_one, 0x1'0000'0002) == SECCOMP_RET_KILL_THREAD);
}

TEST_CASE("conditions on different arguments must all hold, on one argument any of them") {
    const SyscallArg first{0, 7, 0, "SCMP_CMP_EQ"};
    const SyscallArg second{1, 8, 0, "SCMP_CMP_EQ"};
    const SyscallArg first_again{0, 9, 0, "SCMP_CMP_EQ"};
    const SeccompFilter both = compiled(profile("SCMP_ACT_TRAP", {rule({"mkdir"}, "SCMP_ACT_ALLOW", {first, second})}));
    CHECK(verdict(both, call("mkdir", {7, 8})) == kAllow);
    CHECK(verdict(both, call("mkdir", {7, 0})) == SECCOMP_RET_TRAP);
    CHECK(verdict(both, call("mkdir", {0, 8})) == SECCOMP_RET_TRAP);

    const SeccompFilter any =
        compiled(profile("SCMP_ACT_TRAP", {rule({"mkdir"}, "SCMP_ACT_ALLOW", {first, first_again})}));
    CHECK(verdict(any, call("mkdir", {7})) == kAllow);
    CHECK(verdict(any, call("mkdir", {9})) == kAllow);
    CHECK(verdict(any, call("mkdir", {8})) == SECCOMP_RET_TRAP);
}

TEST_CASE("rules that repeat each other or the default are no error") {
    const SyscallArg seven{0, 7, 0, "SCMP_CMP_EQ"};
    const SeccompFilter filter = compiled(profile("SCMP_ACT_ERRNO", {
                                                                        rule({"mkdir", "mkdir"}, "SCMP_ACT_ALLOW"),
                                                                        rule({"mkdir"}, "SCMP_ACT_ALLOW", {seven}),
                                                                        rule({"rmdir"}, "SCMP_ACT_ALLOW", {seven}),
                                                                        rule({"rmdir"}, "SCMP_ACT_ALLOW", {seven}),
                                                                        rule({"unlink"}, "SCMP_ACT_ERRNO"),
                                                                        rule_errno({"rename"}, "SCMP_ACT_ERRNO", EPERM),
                                                                        rule_errno({"link"}, "SCMP_ACT_ERRNO", ENOSYS),
                                                                    }));
    CHECK(verdict(filter, call("mkdir")) == kAllow);
    CHECK(verdict(filter, call("rmdir", {7})) == kAllow);
    CHECK(verdict(filter, call("rmdir", {8})) == answers(EPERM));
    CHECK(verdict(filter, call("unlink")) == answers(EPERM));
    CHECK(verdict(filter, call("rename")) == answers(EPERM));
    CHECK(verdict(filter, call("link")) == answers(ENOSYS));
}

TEST_CASE("a name that libseccomp does not know is left out") {
    const SeccompFilter filter =
        compiled(profile("SCMP_ACT_KILL", {rule({"no_such_call", "mkdir", ""}, "SCMP_ACT_ALLOW")}));
    CHECK(verdict(filter, call("mkdir")) == kAllow);
    CHECK(verdict(filter, call("rmdir")) == SECCOMP_RET_KILL_THREAD);
}

TEST_CASE("rules hold on every listed architecture, and on the native one without being listed") {
    Seccomp section = profile("SCMP_ACT_ERRNO", {rule({"mkdir", "waitpid"}, "SCMP_ACT_ALLOW")});
    section.architectures = {"SCMP_ARCH_X86", "SCMP_ARCH_X32", "SCMP_ARCH_ARM", "SCMP_ARCH_LOONGARCH64",
                             "SCMP_ARCH_S390X"};  // newer than libseccomp; of other endianness
    const SeccompFilter filter = compiled(section);
    CHECK(verdict(filter, call("mkdir")) == kAllow);
    for (const uint32_t arch : {SCMP_ARCH_X86, SCMP_ARCH_X32, SCMP_ARCH_ARM}) {
        CAPTURE(arch);
        CHECK(verdict(filter, call("mkdir", {}, arch)) == kAllow);
        CHECK(verdict(filter, call("rmdir", {}, arch)) == answers(EPERM));
    }
    CHECK(verdict(filter, call("waitpid", {}, SCMP_ARCH_X86)) == kAllow);  // x86_64 has no such call
    // Not listed, so any call there kills.
    CHECK(verdict(filter, call_number(0, SCMP_ARCH_RISCV64)) == SECCOMP_RET_KILL_THREAD);
    CHECK(verdict(compiled(profile("SCMP_ACT_ALLOW")), call("mkdir", {}, SCMP_ARCH_ARM)) == SECCOMP_RET_KILL_THREAD);
}

TEST_CASE("flags are those of the profile and no others") {
    const auto flags_of = [](std::vector<std::string> names, const char* action) {
        Seccomp section = profile("SCMP_ACT_ALLOW", {rule({"mkdir"}, action)});
        section.flags = std::move(names);
        return compiled(section).flags;
    };
    const std::vector<std::string> all = {"SECCOMP_FILTER_FLAG_TSYNC", "SECCOMP_FILTER_FLAG_LOG",
                                          "SECCOMP_FILTER_FLAG_SPEC_ALLOW", "SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV"};
    CHECK(flags_of({}, "SCMP_ACT_KILL") == 0);
    CHECK(flags_of({all[0]}, "SCMP_ACT_KILL") == SECCOMP_FILTER_FLAG_TSYNC);
    CHECK(flags_of({all[1]}, "SCMP_ACT_KILL") == SECCOMP_FILTER_FLAG_LOG);
    CHECK(flags_of({all[2]}, "SCMP_ACT_KILL") == SECCOMP_FILTER_FLAG_SPEC_ALLOW);
    CHECK(flags_of({all[3]}, "SCMP_ACT_NOTIFY") ==
          (SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV | SECCOMP_FILTER_FLAG_NEW_LISTENER));
    CHECK(flags_of({all[3]}, "SCMP_ACT_KILL") == 0);  // nobody to wait for
    CHECK(flags_of({}, "SCMP_ACT_NOTIFY") == SECCOMP_FILTER_FLAG_NEW_LISTENER);
    CHECK(flags_of(all, "SCMP_ACT_NOTIFY") == 0x3f);
}

TEST_CASE("a program that the kernel would not take is refused before the start") {
    std::vector<SyscallRule> rules;
    for (uint64_t i = 0; i < 1500; ++i) {
        rules.push_back(rule({"mkdir"}, "SCMP_ACT_ALLOW", {{0, i << 32 | i, 0, "SCMP_CMP_EQ"}}));
    }
    const std::string failure = compile_failure(profile("SCMP_ACT_KILL", rules));
    CAPTURE(failure);
    CHECK(failure.ends_with(" instructions, the kernel takes 4096"));
}

}  // namespace pinfold::testing
