// What profiles allow in words, and in what they differ.
#include "seccomp/access.hpp"

#include "calls.hpp"
#include "seccomp/cache_key.hpp"
#include "seccomp/profiles.hpp"
#include "spec/parse.hpp"
#include "spec/write_seccomp.hpp"

namespace pinfold::testing {

namespace {

Profile unexplained(std::string default_action, std::vector<SyscallRule> rules) {
    Profile out{"", profile(std::move(default_action), std::move(rules)), {}};
    out.notes.resize(out.seccomp.syscalls.size());
    return out;
}

Profile shipped(std::string_view name) {
    Result<Profile> found = find_explained_profile(name);
    REQUIRE_MESSAGE(found, found.error().message);
    return std::move(found).value();
}

// "group: call, call; group: ..."
std::string text_of(const CallsByGroup& calls) {
    std::string out;
    for (const auto& [group, lines] : calls) {
        out += (out.empty() ? "" : "; ") + group + ":";
        for (const std::string& line : lines) out += (line == lines.front() ? " " : ", ") + line;
    }
    return out;
}

const SyscallArg kOne{0, 1, 0, "SCMP_CMP_EQ"};
const SyscallArg kTwo{0, 2, 0, "SCMP_CMP_EQ"};
const char* const kAllowed = "SCMP_ACT_ALLOW";
const char* const kDenied = "SCMP_ACT_ERRNO";

}  // namespace

TEST_CASE("access: conditions in words") {
    const auto words = [](std::vector<SyscallArg> args) {
        return conditions_of(rule({"read"}, kAllowed, std::move(args)));
    };
    using Texts = std::vector<std::string>;
    CHECK(words({}).empty());
    CHECK(words({kOne}) == Texts{"argument 0 = 1"});
    CHECK(words({kOne, {2, 58, 0, "SCMP_CMP_LE"}}) == Texts{"argument 0 = 1 and argument 2 <= 58"});
    CHECK(words({kOne, kTwo}) == Texts{"argument 0 = 1", "argument 0 = 2"});
    CHECK(words({{1, 0xf000, 0x2000, "SCMP_CMP_MASKED_EQ"}}) == Texts{"argument 1 & 0xf000 = 0x2000"});
    CHECK(words({{1, 0x200, 0x200, "SCMP_CMP_MASKED_EQ"}}) == Texts{"argument 1 & 0x200 = 0x200"});
    CHECK(words({{1, 0xffffffff, 40, "SCMP_CMP_MASKED_EQ"}}) == Texts{"argument 1 = 40"});
    CHECK(words({{5, 0x10000, 0, "SCMP_CMP_NE"}}) == Texts{"argument 5 != 0x10000"});
}

TEST_CASE("access: answers in words") {
    CHECK(answer_in_words("SCMP_ACT_ALLOW", {}) == "allowed");
    CHECK(answer_in_words("SCMP_ACT_ERRNO", {}) == "denied with EPERM");
    CHECK(answer_in_words("SCMP_ACT_ERRNO", 38) == "denied with ENOSYS");
    CHECK(answer_in_words("SCMP_ACT_ERRNO", 4000) == "denied with 4000");
    CHECK(answer_in_words("SCMP_ACT_KILL_PROCESS", {}) == "killing the process");
}

TEST_CASE("access: calls have groups, also those that no profile of the two explains") {
    CHECK(group_of_call("mount") == "mounts");
    CHECK(group_of_call("chown") == "owners and attributes");
    CHECK(group_of_call("no_such_call") == "other calls");
}

TEST_CASE("access: differences of lists of what is allowed") {
    const Profile base = unexplained(kDenied, {rule({"read"}, kAllowed), rule({"socket"}, kAllowed, {kOne})});
    const Profile more =
        unexplained(kDenied, {rule({"read", "mount", "odd_call"}, kAllowed), rule({"socket"}, kAllowed, {kOne, kTwo})});
    CHECK(text_of(allowed_only_by(base, base)).empty());
    CHECK(text_of(allowed_only_by(more, base)) ==
          "mounts: mount; other calls: odd_call; sockets: socket if argument 0 = 2");
    CHECK(text_of(allowed_only_by(base, more)).empty());

    const Profile any_socket = unexplained(kDenied, {rule({"read", "socket"}, kAllowed)});
    CHECK(text_of(allowed_only_by(any_socket, base)) == "sockets: socket except if argument 0 = 1");
    CHECK(text_of(allowed_only_by(base, any_socket)).empty());
}

TEST_CASE("access: differences of lists of what is denied") {
    const Profile denies_one = unexplained(kAllowed, {rule({"socket"}, kDenied, {kOne}), rule({"mount"}, kDenied)});
    const Profile denies_two = unexplained(kAllowed, {rule({"socket"}, kDenied, {kOne, kTwo})});
    CHECK(text_of(allowed_only_by(denies_one, denies_two)) == "sockets: socket if argument 0 = 2");
    CHECK(text_of(allowed_only_by(denies_two, denies_one)) == "mounts: mount");

    const Profile allows_one = unexplained(kDenied, {rule({"socket"}, kAllowed, {kOne})});
    CHECK(text_of(allowed_only_by(allows_one, denies_one)) == "sockets: socket if argument 0 = 1");
    const CallsByGroup far_more = allowed_only_by(denies_one, allows_one);
    CHECK(far_more.at("sockets").back() == "socketpair");
    CHECK(far_more.at("threads").front().starts_with("clone"));
    CHECK_FALSE(text_of(far_more).find(" mount,") != std::string::npos);
}

TEST_CASE("access: rules that say nothing new make no difference") {
    const Profile plain = unexplained(kDenied, {rule({"read"}, kAllowed)});
    const Profile wordy = unexplained(kDenied, {rule({"read"}, kAllowed, {kOne}), rule({"read"}, "SCMP_ACT_LOG"),
                                                rule({"read"}, kDenied, {kTwo}), rule({"mount"}, kDenied)});
    CHECK(text_of(allowed_only_by(plain, wordy)).empty());
    CHECK(text_of(allowed_only_by(wordy, plain)).empty());
}

TEST_CASE("access: an architecture that only one has is a difference, unless it is the machine's own") {
    Profile several = unexplained(kDenied, {});
    const Profile own_alone = several;
    several.seccomp.architectures = {"SCMP_ARCH_X86_64", "SCMP_ARCH_AARCH64", "SCMP_ARCH_MIPS"};
    const std::string text = text_of(allowed_only_by(several, own_alone));
    CHECK(text.starts_with("programs of other architectures: "));
    CHECK(text.ends_with("SCMP_ARCH_MIPS"));
    CHECK((text.find("X86_64") == std::string::npos || text.find("AARCH64") == std::string::npos));
    CHECK(allowed_only_by(own_alone, several).empty());
}

TEST_CASE("access: the profiles that come with pinfold differ as their descriptions say") {
    CHECK(allowed_only_by(shipped("strict"), shipped("default")).size() == 1);  // threads are a case of processes
    CHECK(allowed_only_by(shipped("default"), shipped("network")).empty());
    CHECK(allowed_only_by(shipped("default"), shipped("build")).empty());
    const CallsByGroup network = allowed_only_by(shipped("network"), shipped("default"));
    CHECK(network.size() == 1);
    CHECK(network.at("list of interfaces") == std::vector<std::string>{"socket if argument 0 = 16 and argument 2 = 0"});
    CHECK(allowed_only_by(shipped("build"), shipped("default")).at("interprocess communication").size() == 22);
}

TEST_CASE("access: a profile as JSON is the same profile again") {
    for (const ProfileInfo& info : shipped_profiles()) {
        CAPTURE(info.name);
        const Seccomp section = shipped(info.name).seccomp;
        Problems problems;
        const Json config{Json::Object{{"linux", Json{Json::Object{{"seccomp", to_json(section)}}}}}};
        const std::optional<Seccomp> again = parse_spec(config, problems).linux_.seccomp;
        REQUIRE(again);
        CHECK(seccomp_cache_key(*again) == seccomp_cache_key(section));
    }
}

}  // namespace pinfold::testing
