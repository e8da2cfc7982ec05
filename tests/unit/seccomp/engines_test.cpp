// The profiles that engines really send, taken from their config.json files and tried call by call.
#include <cerrno>
#include <filesystem>
#include <random>

#include "base/fs.hpp"
#include "calls.hpp"
#include "json/json.hpp"
#include "seccomp/start_calls.hpp"
#include "spec/parse.hpp"
#include "support/source_root.hpp"

namespace pinfold::testing {

namespace {

std::string config_path(const std::string& file) { return source_root() / "tests/data/configs" / file; }

std::optional<Seccomp> profile_in(const std::string& file) {
    const Result<std::string> text = read_file(config_path(file));
    REQUIRE_MESSAGE(text, text.error().message);
    const Result<Json> json = parse_json(*text, file);
    REQUIRE_MESSAGE(json, json.error().message);
    Problems problems;
    return parse_spec(*json, problems).linux_.seccomp;
}

struct Row {
    std::string name;
    Arguments args;
    uint32_t expected;
};

void check(const SeccompFilter& filter, std::initializer_list<Row> rows) {
    for (const Row& row : rows) {
        CAPTURE(row.name);
        CHECK(verdict(filter, call(row.name, row.args)) == row.expected);
    }
}

constexpr uint32_t kEperm = SECCOMP_RET_ERRNO | EPERM;
constexpr uint32_t kEnosys = SECCOMP_RET_ERRNO | ENOSYS;
constexpr uint64_t kNewUser = 0x10000000;  // CLONE_NEWUSER
constexpr uint64_t kThread = 0x3d0f00;     // what a C library passes for a thread

}  // namespace

TEST_CASE("what is left of a start is allowed by the engines' profiles") {
    for (const char* file : {"docker-default-v2.json", "podman-rootful-v2.json", "cri-sandbox-v2.json"}) {
        CAPTURE(std::string(file));
        const std::optional<Seccomp> section = profile_in(file);
        REQUIRE(section);
        CHECK(allows_end_of_start(compiled(*section).program, {.waits = true, .hooks = true}));
        const auto allows = [&](const char* name, EndOfStart end) {
            Seccomp without = *section;
            for (SyscallRule& rule : without.syscalls) std::erase(rule.names, name);
            return allows_end_of_start(compiled(without).program, end);
        };
        CHECK_FALSE(allows("recvmsg", {}));
        CHECK(allows("accept4", {.waits = false, .hooks = true}));
        CHECK_FALSE(allows("accept4", {.waits = true}));
        CHECK(allows("memfd_create", {.waits = true, .hooks = false}));
        CHECK_FALSE(allows("memfd_create", {.hooks = true}));
        // In the place of the kernel, for what is closed and for what is taken away.
        for (const char* name : {"close_range", "capset", "prlimit64"}) {
            Seccomp answers = *section;
            for (SyscallRule& rule : answers.syscalls) std::erase(rule.names, name);
            answers.syscalls.push_back({{name}, "SCMP_ACT_ALLOW", {}, {{1, 0, 0, "SCMP_CMP_EQ"}}});
            CHECK_FALSE(allows_end_of_start(compiled(answers).program, {}));
        }
    }
}

// A thousand calls at random, each with as many of its bits known.
TEST_CASE("what is always answered by an engine's profile is answered to each call") {
    const std::optional<Seccomp> section = profile_in("docker-default-v2.json");
    REQUIRE(section);
    const SeccompFilter filter = compiled(*section);
    std::mt19937_64 random(20);  // NOLINT(cert-msc32-c,cert-msc51-cpp): the same ones each time
    size_t sure = 0;
    for (int i = 0; i < 1000; ++i) {
        PartlyKnownCall calls{call("read"), {~0, ~0U, 0, {}}};
        calls.call.nr = int(random() % 470);
        seccomp_data one = calls.call;
        for (size_t k = 0; k < 6; ++k) {
            calls.known.args[k] = random() | random();
            calls.call.args[k] = random() & random() & random();
            one.args[k] = (calls.call.args[k] & calls.known.args[k]) | (random() & ~calls.known.args[k]);
        }
        const uint32_t answer = verdict(filter, one) & SECCOMP_RET_ACTION_FULL;
        const auto always = [&](bool is_meant) {
            return always_answers(filter.program, calls,
                                  [&](uint32_t action) { return (action == answer) == is_meant; });
        };
        CHECK_FALSE(always(false));
        sure += size_t{always(true)};
    }
    CHECK(sure > 900);
}

TEST_CASE("Docker's default profile answers as Docker documents it") {
    const std::optional<Seccomp> section = profile_in("docker-default-v2.json");
    REQUIRE(section);
    const SeccompFilter filter = compiled(*section);
    CHECK(filter.flags == 0);
    check(filter, {
                      {"read", {}, kAllow},
                      {"write", {}, kAllow},
                      {"openat", {}, kAllow},
                      {"futex", {}, kAllow},
                      {"execve", {}, kAllow},
                      {"futex_waitv", {}, kAllow},
                      {"ptrace", {}, kAllow},
                      {"clone", {kThread}, kAllow},
                      {"clone", {kNewUser}, kEperm},
                      {"clone", {kThread | kNewUser}, kEperm},
                      {"clone3", {}, kEnosys},
                      {"personality", {0}, kAllow},
                      {"personality", {0xffffffff}, kAllow},
                      {"personality", {0x0040000}, kEperm},  // ADDR_NO_RANDOMIZE
                      {"mount", {}, kEperm},
                      {"umount2", {}, kEperm},
                      {"unshare", {}, kEperm},
                      {"setns", {}, kEperm},
                      {"bpf", {}, kEperm},
                      {"keyctl", {}, kEperm},
                      {"add_key", {}, kEperm},
                      {"kexec_load", {}, kEperm},
                      {"init_module", {}, kEperm},
                      {"open_by_handle_at", {}, kEperm},
                      {"perf_event_open", {}, kEperm},
                      {"userfaultfd", {}, kEperm},
                      {"reboot", {}, kEperm},
                      {"pivot_root", {}, kEperm},
                      {"move_mount", {}, kEperm},
                      {"io_uring_setup", {}, kAllow},
                  });
    CHECK(verdict(filter, call_number(seccomp_syscall_resolve_name("futex_waitv") + 1)) == kEnosys);
    for (const uint32_t arch : {SCMP_ARCH_X86, SCMP_ARCH_X32}) {
        CAPTURE(arch);
        CHECK(verdict(filter, call("read", {}, arch)) == kAllow);
        CHECK(verdict(filter, call("mount", {}, arch)) == kEperm);
        CHECK(verdict(filter, call("clone", {kNewUser}, arch)) == kEperm);
    }
}

TEST_CASE("Podman's default profile answers ENOSYS by default, EPERM for what it names, and EINVAL for audit sockets") {
    const std::optional<Seccomp> section = profile_in("podman-rootful-v2.json");
    REQUIRE(section);
    constexpr uint64_t kNetlink = 16;
    constexpr uint64_t kAudit = 9;
    check(compiled(*section), {
                                  {"read", {}, kAllow},
                                  {"clone3", {}, kAllow},
                                  {"socket", {kNetlink, 3, kAudit}, SECCOMP_RET_ERRNO | EINVAL},
                                  {"socket", {kNetlink, 3, 0}, kAllow},
                                  {"socket", {2, 1, kAudit}, kAllow},
                                  {"bpf", {}, kEperm},
                                  {"kexec_load", {}, kEperm},
                                  {"init_module", {}, kEperm},
                                  {"io_uring_setup", {}, kEnosys},
                              });
}

TEST_CASE("every profile among the engines' configurations compiles and lets a program run and end") {
    size_t profiles = 0;
    for (const auto& file : std::filesystem::directory_iterator(config_path(""))) {
        if (file.path().extension() != ".json") continue;
        const std::string name = file.path().filename();
        CAPTURE(name);
        const std::optional<Seccomp> section = profile_in(name);
        if (!section) continue;
        ++profiles;
        check(compiled(*section), {{"execve", {}, kAllow}, {"read", {}, kAllow}, {"exit_group", {}, kAllow}});
    }
    CHECK(profiles >= 14);
}

TEST_CASE("large profiles take few steps per call") {
    const std::optional<Seccomp> section = profile_in("docker-default-v2.json");
    REQUIRE(section);
    const SeccompFilter filter = compiled(*section);
    for (const char* name : {"read", "write", "openat", "futex", "clone", "statx", "mount"}) {
        CAPTURE(name);
        size_t steps = 0;
        evaluate(filter.program, call(name), &steps);
        CHECK(steps <= 25);
    }
}

}  // namespace pinfold::testing
