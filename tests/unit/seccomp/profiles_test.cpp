// Profiles by name and from files: what they extend, and the errors that name file and place.
#include "seccomp/profiles.hpp"

#include <cerrno>
#include <fstream>

#include "calls.hpp"
#include "support/temp_dir.hpp"

namespace pinfold::testing {

namespace {

class ProfileFile {
public:
    explicit ProfileFile(const std::string& text) { std::ofstream(path()) << text; }
    std::string path() const { return dir_.file("mine.json"); }

    Seccomp parsed() const {
        Result<Seccomp> result = find_profile(path());
        REQUIRE_MESSAGE(result, result.error().message);
        return std::move(result).value();
    }
    // Without the directory, which is another each time.
    std::string failure() const {
        const Result<Seccomp> result = find_profile(path());
        REQUIRE_FALSE(result);
        const std::string message = result.error().message;
        CAPTURE(message);
        REQUIRE(message.find("mine.json") != std::string::npos);
        return message.substr(message.find("mine.json"));
    }

private:
    TempDir dir_;
};

}  // namespace

TEST_CASE("profiles: those that come with pinfold have names, descriptions and reasons") {
    std::string names;
    for (const ProfileInfo& info : shipped_profiles()) {
        CHECK(!info.description.empty());
        names += std::string(info.name) + " ";
        const Result<Profile> profile = find_explained_profile(info.name);
        REQUIRE(profile);
        CHECK(profile->notes.size() == profile->seccomp.syscalls.size());
        for (const RuleNote& note : profile->notes) {
            CHECK(!note.group.empty());
            CHECK(note.reason.ends_with('.'));
        }
    }
    CHECK(names == "strict default network build learn ");
}

TEST_CASE("profiles: a name that is none") {
    const Result<Seccomp> unknown = find_profile("moderate");
    REQUIRE_FALSE(unknown);
    CHECK(unknown.error().message ==
          "there is no seccomp profile 'moderate', only strict, default, network, build, learn");
    CHECK(!unknown.error().hint.empty());
    const Result<Seccomp> no_file = find_profile("./moderate");
    REQUIRE_FALSE(no_file);
    CHECK(no_file.error().code == ENOENT);
}

TEST_CASE("profiles: a file is a section, or a config that holds one") {
    const std::string section = R"({"defaultAction": "SCMP_ACT_ERRNO", "defaultErrnoRet": 13,
        "syscalls": [{"names": ["read"], "action": "SCMP_ACT_ALLOW"}]})";
    for (const std::string& text : {section, R"({"ociVersion": "1.0.2", "linux": {"seccomp": )" + section + "}}"}) {
        const Seccomp profile = ProfileFile(text).parsed();
        CHECK(profile.default_errno_ret == 13);
        REQUIRE(profile.syscalls.size() == 1);
        CHECK(profile.syscalls[0].names == std::vector<std::string>{"read"});
    }
}

TEST_CASE("profiles: what a profile says of a call replaces what its parent says") {
    const ProfileFile file(R"({"extends": "default", "syscalls": [
        {"names": ["ptrace"], "action": "SCMP_ACT_ALLOW"},
        {"names": ["execveat", "socket"], "action": "SCMP_ACT_ERRNO"},
        {"names": ["chown"], "action": "SCMP_ACT_KILL_PROCESS"}]})");
    const Seccomp profile = file.parsed();
    CHECK(profile.default_action == "SCMP_ACT_ERRNO");
    CHECK(profile.default_errno_ret == EPERM);
    CHECK(!profile.architectures.empty());
    const SeccompFilter filter = compiled(profile);
    CHECK(verdict(filter, call("ptrace")) == kAllow);
    CHECK(verdict(filter, call("execveat")) == answers(EPERM));
    CHECK(verdict(filter, call("socket", {1})) == answers(EPERM));
    CHECK(verdict(filter, call("socketpair", {1})) == kAllow);
    CHECK(verdict(filter, call("chown")) == SECCOMP_RET_KILL_PROCESS);
    CHECK(verdict(filter, call("fchown")) == kAllow);
    CHECK(verdict(filter, call("mount")) == answers(EPERM));
}

TEST_CASE("profiles: what a profile says of the whole replaces what its parent says") {
    const Seccomp profile = ProfileFile(R"({"extends": "strict", "defaultAction": "SCMP_ACT_KILL_PROCESS",
        "architectures": ["SCMP_ARCH_X86_64"], "flags": ["SECCOMP_FILTER_FLAG_LOG"]})")
                                .parsed();
    CHECK(profile.default_action == "SCMP_ACT_KILL_PROCESS");
    CHECK_FALSE(profile.default_errno_ret);
    CHECK(profile.architectures == std::vector<std::string>{"SCMP_ARCH_X86_64"});
    CHECK(profile.flags == std::vector<std::string>{"SECCOMP_FILTER_FLAG_LOG"});
    CHECK(!profile.syscalls.empty());
}

TEST_CASE("profiles: errors name the file and the place in it") {
    CHECK(ProfileFile("[]").failure() == "mine.json: found an array, allowed: an object");
    CHECK(ProfileFile("{}").failure() == "mine.json: defaultAction: missing, required: a string");
    CHECK(ProfileFile(R"({"linux": {}})").failure() == "mine.json: linux.seccomp: missing, required: an object");
    CHECK(ProfileFile(R"({"linux": {"seccomp": {}}})").failure() ==
          "mine.json: linux.seccomp.defaultAction: missing, required: a string");
    CHECK(ProfileFile(R"({"extends": 7})").failure().starts_with("mine.json: extends: found 7, allowed: "));
    CHECK(ProfileFile(R"({"extends": "mine"})")
              .failure()
              .starts_with("mine.json: extends: there is no seccomp profile 'mine', only strict"));
    CHECK(ProfileFile(R"({"extends": "default", "syscalls": [{"names": ["read"], "action": "ALLOW"}]})")
              .failure()
              .starts_with("mine.json: syscalls[0].action: found \"ALLOW\", allowed: SCMP_ACT_KILL"));
    CHECK(ProfileFile(R"({"extends": "default", "syscalls": {}})")
              .failure()
              .starts_with("mine.json: syscalls: found an object, allowed: an array"));
    CHECK(ProfileFile(R"({"defaultAction": "SCMP_ACT_NOTIFY"})").failure() ==
          "mine.json: defaultAction: SCMP_ACT_NOTIFY is for rules only");
    CHECK(ProfileFile(R"({"defaultAction": "SCMP_ACT_ALLOW", "flags": ["PINFOLD_REPORT_DENIALS"]})")
              .failure()
              .starts_with("mine.json: flags[0]: found \"PINFOLD_REPORT_DENIALS\", allowed: "));
}

// As in Docker's and Podman's files, for a program without capabilities.
TEST_CASE("profiles: a rule with conditions holds where they are met") {
    const auto with = [](const std::string& conditions) {
        const ProfileFile file(
            R"({"extends": "default", "syscalls": [{"names": ["unshare"], "action": "SCMP_ACT_ALLOW", )" + conditions +
            "}]}");
        return verdict(compiled(file.parsed()), call("unshare", {0x10000000}));
    };
    const std::string other = seccomp_arch_native() == SCMP_ARCH_X86_64 ? "arm64" : "amd64";
    const std::string own = seccomp_arch_native() == SCMP_ARCH_X86_64 ? "amd64" : "arm64";
    CHECK(with(R"("includes": {}, "excludes": null)") == kAllow);
    CHECK(with(R"("includes": {"caps": ["CAP_SYS_ADMIN"]})") == answers(EPERM));
    CHECK(with(R"("excludes": {"caps": ["CAP_SYS_ADMIN"]})") == kAllow);
    CHECK(with(R"("includes": {"arches": [")" + other + R"("]})") == answers(EPERM));
    CHECK(with(R"("includes": {"arches": [")" + other + R"(", ")" + own + R"("]})") == kAllow);
    CHECK(with(R"("excludes": {"arches": [")" + own + R"("]})") == answers(EPERM));
    CHECK(with(R"("includes": {"minKernel": "4.8"})") == kAllow);
    CHECK(with(R"("includes": {"minKernel": "4294967295.0"})") == answers(EPERM));
    CHECK(with(R"("excludes": {"minKernel": "4.8"})") == answers(EPERM));
    CHECK(with(R"("includes": {"minKernel": "4.8", "caps": ["CAP_BPF"]})") == answers(EPERM));
}

TEST_CASE("profiles: a condition that is not understood is refused by its place") {
    const auto with = [](const std::string& conditions) {
        return ProfileFile(R"({"extends": "default", "syscalls": [{"names": ["bpf"], "action": "SCMP_ACT_ALLOW", )" +
                           conditions + "}]}")
            .failure();
    };
    CHECK(with(R"("includes": {"caps": ["CAP_SYS_ADMN"]})")
              .starts_with("mine.json: syscalls[0].includes.caps[0]: found \"CAP_SYS_ADMN\", allowed: a capability"));
    CHECK(with(R"("excludes": {"arches": ["x86_64"]})")
              .starts_with("mine.json: syscalls[0].excludes.arches[0]: found \"x86_64\", allowed: amd64, "));
    CHECK(with(R"("excludes": {"minKernel": "4"})")
              .starts_with("mine.json: syscalls[0].excludes.minKernel: found \"4\", allowed: a version"));
    CHECK(with(R"("includes": {"maxKernel": "4.8"})") == "mine.json: syscalls[0].includes.maxKernel: unknown");
    CHECK(with(R"("includes": ["CAP_BPF"])").starts_with("mine.json: syscalls[0].includes: found an array, allowed: "));
}

TEST_CASE("profiles: what files of Docker and Podman say otherwise than the specification") {
    const Seccomp profile =
        ProfileFile(R"({"defaultAction": "SCMP_ACT_ERRNO", "defaultErrnoRet": 38, "defaultErrno": "ENOSYS",
        "comment": "", "archMap": [{"architecture": "SCMP_ARCH_X86_64", "subArchitectures": ["SCMP_ARCH_X86"]},
                                   {"architecture": "SCMP_ARCH_AARCH64", "subArchitectures": ["SCMP_ARCH_ARM"]}],
        "syscalls": [{"name": "getpid", "action": "SCMP_ACT_ALLOW", "args": null, "comment": "mine"},
                     {"names": ["getppid"], "action": "SCMP_ACT_ERRNO", "errno": "EACCES", "args": []},
                     {"names": ["gettid"], "action": "SCMP_ACT_ERRNO", "errnoRet": 1, "errno": "EPERM"}]})")
            .parsed();
    CHECK(profile.architectures.size() == 2);
    const SeccompFilter filter = compiled(profile);
    CHECK(verdict(filter, call("getpid")) == kAllow);
    CHECK(verdict(filter, call("getppid")) == answers(EACCES));
    CHECK(verdict(filter, call("gettid")) == answers(EPERM));
    CHECK(verdict(filter, call("unshare")) == answers(ENOSYS));
    const auto failure = [](const std::string& more) {
        return ProfileFile(R"({"defaultAction": "SCMP_ACT_ERRNO", )" + more + "}").failure();
    };
    CHECK(failure(R"("defaultErrnoRet": 1, "defaultErrno": "ENOSYS")") ==
          "mine.json: defaultErrno: ENOSYS is 38, not 1");
    CHECK(failure(R"("defaultErrno": "ENOSUCH")").starts_with("mine.json: defaultErrno: found \"ENOSUCH\", allowed: "));
    CHECK(failure(R"("architectures": ["SCMP_ARCH_X86"], "archMap": [{"architecture": "SCMP_ARCH_X86_64"}])")
              .starts_with("mine.json: archMap: excludes architectures"));
}

TEST_CASE("profiles: a misspelt property is refused, wherever it is") {
    CHECK(ProfileFile(R"({"extends": "default", "syscals": []})").failure() == "mine.json: syscals: unknown");
    CHECK(ProfileFile(R"({"linux": {"seccomp": {"defaultAction": "SCMP_ACT_ERRNO", "Syscalls": []}}})").failure() ==
          "mine.json: linux.seccomp.Syscalls: unknown");
    CHECK(ProfileFile(R"({"extends": "default", "syscalls": [
              {"names": ["read"], "action": "SCMP_ACT_ERRNO", "arg": [], "args": [
                  {"index": 0, "value": 1, "op": "SCMP_CMP_EQ", "valuetwo": 7}]}]})")
              .failure() ==
          "mine.json: 2 problems\n  syscalls[0].arg: unknown\n  syscalls[0].args[0].valuetwo: unknown");
    const ProfileFile file(R"({"extends": "./mine.json"})");
    const Result<Seccomp> other = find_profile(file.path());
    REQUIRE_FALSE(other);
    CHECK(other.error().hint.find("no other file") != std::string::npos);
}

}  // namespace pinfold::testing
