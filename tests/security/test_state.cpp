// The state directory: where it is for whom, and what others can do to it, who would have pinfold run their hooks.
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "attacks.hpp"
#include "sandbox.hpp"

using namespace pinfold::integration;

namespace {

using Words = std::vector<std::string>;

const std::string kUid = std::to_string(kNobodySpecial);
const fs::path kRuntimeDir = "/run/user/" + kUid;
const fs::path kLastResort = "/tmp/.pinfold-" + kUid;

// As in a job of CI: a user without a session, and with as few variables as there can be.
Ended call(const Words& words, const std::vector<std::string>& variables = {}) {
    Words line = {"/usr/bin/env", "-i", "PATH=/usr/bin:/bin"};
    line.insert(line.end(), variables.begin(), variables.end());
    line.insert(line.end(), runtime_command().begin(), runtime_command().end());
    line.insert(line.end(), words.begin(), words.end());
    return run_program(line, {.uid = kNobodySpecial, .directory = "/"});
}

Ended hello(const std::vector<std::string>& variables = {}) {
    return call({"sandbox", "--", "echo", "hello"}, variables);
}

void give(const fs::path& directory, uid_t uid, mode_t mode) {
    fs::create_directories(directory);
    REQUIRE(::chown(directory.c_str(), uid, uid) == 0);
    REQUIRE(::chmod(directory.c_str(), mode) == 0);
}

}  // namespace

TEST_CASE("state: a normal user needs no variable for a sandbox") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    const Bundle bundle;
    const MountGuard run("tmpfs", "/run", "tmpfs", 0);
    REQUIRE(::chmod("/run", 0755) == 0);
    fs::remove_all(kLastResort);
    const Ended nothing = hello();
    CHECK_MESSAGE(nothing.out == "hello\n", nothing.err);
    struct stat info {};
    REQUIRE(::lstat(kLastResort.c_str(), &info) == 0);
    CHECK(info.st_mode == (S_IFDIR | 0700));
    CHECK(info.st_uid == kNobodySpecial);
    // A job that could write to it would say which hooks are run next.
    const Ended bound = call({"sandbox", "--bind", "/tmp:/x", "--", "true"});
    WITHSTANDS("--bind /tmp", bound.status == 125 &&
                                  bound.err.find("policy: /tmp contains " + kLastResort.string()) != std::string::npos);
    // Variables that another user's session has left, or of a session that has ended.
    give("/run/user/0", 0, 0700);
    for (const char* other : {"XDG_RUNTIME_DIR=/run/user/0", "XDG_RUNTIME_DIR=/nonexistent", "XDG_RUNTIME_DIR="}) {
        const Ended ended = hello({other});
        CHECK_MESSAGE(ended.out == "hello\n", ended.err);
    }
    fs::remove_all(kLastResort);
    // The directory of a session that nobody has told of.
    give(kRuntimeDir, kNobodySpecial, 0700);
    CHECK(hello().out == "hello\n");
    CHECK(fs::exists(kRuntimeDir / "pinfold"));
    CHECK(!fs::exists(kLastResort));
    give(bundle.host() / "own", kNobodySpecial, 0700);
    CHECK(hello({"XDG_RUNTIME_DIR=" + (bundle.host() / "own").string()}).out == "hello\n");
    CHECK(fs::exists(bundle.host() / "own/pinfold"));
}

TEST_CASE("state: root of a user namespace has a place of its own where the state is another's") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    const Bundle bundle;
    const MountGuard run("tmpfs", "/run", "tmpfs", 0);
    give("/run/pinfold", 0, 0700);
    Words words = {"/usr/bin/env", "-u", "XDG_RUNTIME_DIR", "/usr/bin/unshare", "-Ur"};
    words.insert(words.end(), runtime_command().begin(), runtime_command().end());
    words.insert(words.end(), {"sandbox", "--", "true"});
    const Ended ended = run_program(words, {.uid = kNobodySpecial, .directory = "/"});
    CHECK_MESSAGE(ended.status == 0, ended.err);
    CHECK(fs::is_empty("/run/pinfold"));
    fs::remove_all(kLastResort);
}

TEST_CASE("state: a directory of the name that somebody else has taken is refused") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    const Bundle bundle;
    const MountGuard run("tmpfs", "/run", "tmpfs", 0);
    constexpr uid_t kAttacker = kNobodySpecial + 1;
    fs::remove_all(kLastResort);
    const auto refused = [&](const std::string& words) {
        const Ended ended = hello();
        fs::remove_all(kLastResort);
        return ended.status == 125 && ended.err.find(words) != std::string::npos &&
               ended.err.find("hint: ") != std::string::npos;
    };
    give(kLastResort, kAttacker, 0777);
    WITHSTANDS("another's directory", refused("belongs to user " + std::to_string(kAttacker)));
    give(kLastResort, kNobodySpecial, 0777);
    WITHSTANDS("a directory open to all", refused("can be changed by others"));
    give(bundle.host() / "own", kNobodySpecial, 0700);
    fs::create_symlink(bundle.host() / "own", kLastResort);
    REQUIRE(::lchown(kLastResort.c_str(), kAttacker, kAttacker) == 0);
    WITHSTANDS("another's link", refused(""));
    CHECK(fs::is_empty(bundle.host() / "own"));
    write_text(kLastResort, "");
    WITHSTANDS("a file", hello().status == 125);
    fs::remove_all(kLastResort);
    REQUIRE(::mkfifo(kLastResort.c_str(), 0666) == 0);
    WITHSTANDS("a named pipe", hello().status == 125);
    fs::remove_all(kLastResort);
    // A session's directory that is not the user's alone is not taken.
    give(kRuntimeDir, kAttacker, 0777);
    CHECK(hello().out == "hello\n");
    CHECK(!fs::exists(kRuntimeDir / "pinfold"));
    fs::remove_all(kLastResort);
}

// Whoever writes there names the hooks that the next delete or prune runs on the host.
TEST_CASE("state: no sandbox is given a directory where states are kept, there or not") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    const Bundle bundle;
    const MountGuard run("tmpfs", "/run", "tmpfs", 0);
    REQUIRE(::chmod("/run", 0755) == 0);
    const fs::path own = bundle.host() / "own", home = bundle.host() / "home", apart = bundle.host() / "apart";
    for (const fs::path& directory : {own, home, apart}) give(directory, kNobodySpecial, 0700);
    const std::string session = "XDG_RUNTIME_DIR=" + own.string();
    const auto refused = [](const Ended& ended, const std::string& option) {
        INFO(ended.err);
        return ended.status == 125 && ended.err.find(option) != std::string::npos &&
               ended.err.find("where the states of containers are kept") != std::string::npos &&
               ended.err.find("\nhint: ") != std::string::npos;
    };
    const auto is_refused = [&](const Words& options, const Words& global = {}) {
        Words words = global;
        words.push_back("sandbox");
        words.insert(words.end(), options.begin(), options.end());
        words.insert(words.end(), {"--", "true"});
        return refused(call(words, {session}), options[0]);
    };
    const std::string states = own / "pinfold";
    WITHSTANDS("before it was made", is_refused({"--bind", own.string() + ":/r"}));
    REQUIRE(hello({session}).out == "hello\n");
    write_text(bundle.host() / "template.json", R"({"description": "x", "show": ["/usr", ")" + own.string() + R"("]})");
    fs::create_symlink(own, bundle.host() / "innocent");
    for (const Words& options : std::vector<Words>{{"--bind", own.string() + ":/r"},
                                                   {"--bind", states + ":/r"},
                                                   {"--bind", states + "/.seccomp:/r"},
                                                   {"--bind", (bundle.host() / "innocent").string() + ":/r"},
                                                   {"--ro-bind", own.string() + ":/r"},
                                                   {"--rootfs", own},
                                                   {"--rootfs", states},
                                                   {"--bundle", own},
                                                   {"--template", bundle.host() / "template.json"},
                                                   {"--copy-in", own.string() + ":/workspace/x"},
                                                   {"--copy-in", states + ":/workspace/x"},
                                                   {"--copy-out", "/workspace:" + own.string()},
                                                   {"--copy-out", "/workspace:" + states + "/new"}}) {
        WITHSTANDS(options[0] + " " + options[1], is_refused(options));
    }
    // By --root, by a link to it, and where the default is not in use now.
    const std::string at_home = home.string() + ":/r";
    WITHSTANDS("--root", is_refused({"--bind", at_home}, {"--root", home / "not/yet"}));
    fs::create_symlink(apart, home / "link");
    REQUIRE(::lchown((home / "link").c_str(), kNobodySpecial, kNobodySpecial) == 0);
    WITHSTANDS("a link in it", is_refused({"--bind", at_home}, {"--root", home / "link"}));
    WITHSTANDS("where it leads", is_refused({"--bind", apart.string() + ":/r"}, {"--root", home / "link"}));
    WITHSTANDS("the default one", is_refused({"--bind", own.string() + ":/r"}, {"--root", home / "other"}));
    fs::remove_all(kLastResort);
    WITHSTANDS("the last resort", is_refused({"--bind", "/tmp:/r"}));
    WITHSTANDS("and without a session", refused(call({"sandbox", "--bind", "/tmp:/r", "--", "true"}), "--bind"));
    CHECK(!fs::exists(kLastResort));
    CHECK(call({"--root", home / "other", "sandbox", "--bind", apart.string() + ":/r", "--", "touch", "/r/x"}).status ==
          0);
    // Root is no exception, nor is what every sandbox is shown.
    const std::string of_root = bundle.state_root().string() + ":/r";
    WITHSTANDS("root's", refused(run_job(bundle, {{"--ro-bind", of_root}, {"true"}, {}}), "--ro-bind"));
    Words words = runtime_command();
    words.insert(words.end(), {"--root", "/usr/local/pinfold-states", "sandbox", "--", "true"});
    WITHSTANDS("shown to all", refused(run_program(words), "root: "));
    CHECK(!fs::exists("/usr/local/pinfold-states"));
}

// Its owner writes what a container is: its first process, its group, its hooks.
TEST_CASE("state: root does not work on containers that another user describes") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    Bundle bundle;
    bundle.probe({"wait-signal"});
    const fs::path proof = bundle.host() / "proof";
    bundle.config["hooks"]["poststop"] = {{{"path", "/usr/bin/touch"}, {"args", {"touch", proof.string()}}}};
    const Container container(bundle, Container::As::running);
    const fs::path root = bundle.state_root();
    const Words verbs[] = {{"list"},
                           {"state", bundle.id()},
                           {"exec", bundle.id(), "/probe", "report"},
                           {"kill", bundle.id(), "KILL"},
                           {"delete", "--force", bundle.id()},
                           {"ps", bundle.id()},
                           {"prune"},
                           {"cp", bundle.id() + ":/probe", bundle.host() / "x"},
                           {"sandbox", "--", "true"}};
    REQUIRE(::chown(root.c_str(), kNobodySpecial, kNobodySpecial) == 0);
    for (const Words& words : verbs) {
        const Ended ended = run_program(bundle.verb(words));
        WITHSTANDS(words[0], ended.status != 0 && ended.err.find("belongs to user " + kUid) != std::string::npos);
    }
    REQUIRE(::chown(root.c_str(), 0, 0) == 0);
    REQUIRE(::chmod(root.c_str(), 01777) == 0);
    for (const Words& words : verbs) {
        const Ended ended = run_program(bundle.verb(words));
        WITHSTANDS(words[0], ended.status != 0 && ended.err.find("can be changed by others") != std::string::npos);
    }
    CHECK(!fs::exists(proof));
    REQUIRE(::chmod(root.c_str(), 0700) == 0);
    CHECK(container.status() == "running");
}
