// Paths of the host against the rules: real files, links, bind mounts and races.
#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <thread>

#include "base/fs.hpp"
#include "base/strings.hpp"
#include "pinfold/mount_policy.hpp"
#include "support/temp_dir.hpp"
#include "support/testing.hpp"

using namespace pinfold;
using pinfold::testing::TempDir;
namespace fs = std::filesystem;

namespace {

// A forbidden directory with a file and a directory in it, and another place.
struct Files {
    TempDir dir;
    std::string secret = dir.file("home/ann/.ssh");
    std::string open = dir.file("open");
    MountPolicy policy;

    Files() {
        fs::create_directories(secret + "/keys");
        fs::create_directories(open + "/sub");
        std::ofstream(secret + "/id") << "key";
        std::ofstream(open + "/file") << "text";
        policy.forbidden_paths = {dir.file("home/*/.ssh")};
        policy.state_roots = {dir.file("states/not/yet")};
        policy.origin = "test.json";
    }
};

bool allowed(const MountPolicy& policy, const std::string& path, Access access = Access::read) {
    return bool(open_allowed(policy, path, access));
}

std::string refusal_of(const MountPolicy& policy, const std::string& path, Access access = Access::read) {
    const Result<UniqueFd> opened = open_allowed(policy, path, access);
    REQUIRE_FALSE(opened);
    CHECK(opened.error().code == kPolicyRefusal);
    return opened.error().message;
}

bool says(const std::string& message, const std::string& words) { return message.find(words) != std::string::npos; }

struct stat status_of(int fd) {
    struct stat info {};
    REQUIRE(::fstat(fd, &info) == 0);
    return info;
}

// This program's own mount namespace, so that what is mounted here is seen nowhere else.
bool have_own_mounts() {
    static const bool done = ::geteuid() == 0 && ::unshare(CLONE_NEWNS) == 0 &&
                             ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0;
    return done;
}

class Bind {
public:
    Bind(const std::string& source, std::string target, unsigned long flags = MS_BIND) : target_(std::move(target)) {
        REQUIRE(::mount(source.c_str(), target_.c_str(), nullptr, flags, nullptr) == 0);
    }
    Bind(const Bind&) = delete;
    Bind& operator=(const Bind&) = delete;
    ~Bind() { ::umount2(target_.c_str(), MNT_DETACH); }

private:
    std::string target_;
};

}  // namespace

TEST_CASE("paths: what no rule forbids is opened, and it is that very file") {
    const Files files;
    const Result<UniqueFd> opened = open_allowed(files.policy, files.open + "/file", Access::write);
    REQUIRE(opened);
    struct stat expected {};
    REQUIRE(::stat((files.open + "/file").c_str(), &expected) == 0);
    CHECK(status_of(opened->get()).st_ino == expected.st_ino);
    CHECK(allowed(files.policy, files.open));
    CHECK(allowed(files.policy, files.open + "/sub/.."));
    CHECK_FALSE(allowed(files.policy, files.open + "/missing"));
}

TEST_CASE("paths: the forbidden one, what is in it and what contains it are refused, by the rule's name") {
    const Files files;
    for (const std::string& path : {files.secret, files.secret + "/id", files.secret + "/keys"}) {
        CAPTURE(path);
        CHECK(says(refusal_of(files.policy, path), " is in " + files.dir.file("home/*/.ssh") + " (test.json)"));
    }
    for (const std::string& path : {files.dir.file("home/ann"), files.dir.file("home")}) {
        CAPTURE(path);
        CHECK(says(refusal_of(files.policy, path), " contains " + files.dir.file("home/*/.ssh")));
    }
}

TEST_CASE("paths: what contains only a forbidden thing that is not there is allowed") {
    const Files files;
    fs::remove_all(files.secret);
    CHECK(allowed(files.policy, files.dir.file("home/ann")));
}

TEST_CASE("paths: other names for a forbidden file lead nowhere else") {
    const Files files;
    fs::create_symlink(files.secret, files.open + "/link");
    fs::create_symlink("../home/ann/.ssh/id", files.open + "/file-link");
    fs::create_directory_symlink(files.dir.file("home"), files.open + "/home");
    CHECK(says(refusal_of(files.policy, files.open + "/link"), files.open + "/link: policy: forbidden_paths: "));
    CHECK(says(refusal_of(files.policy, files.open + "/link/keys"), "is in"));
    CHECK(says(refusal_of(files.policy, files.open + "/file-link"), "is in"));
    CHECK(says(refusal_of(files.policy, files.open + "/home/ann/.ssh"), "is in"));
    CHECK(says(refusal_of(files.policy, files.open + "/home"), "contains"));
}

TEST_CASE("paths: a rule that is a link forbids what it leads to") {
    Files files;
    fs::create_symlink(files.open + "/sub", files.dir.file("alias"));
    files.policy.forbidden_paths = {files.dir.file("alias")};
    CHECK(says(refusal_of(files.policy, files.open + "/sub"), "is in"));
    CHECK(says(refusal_of(files.policy, files.open), "contains"));
}

TEST_CASE("paths: a hard link to a forbidden file is that file") {
    Files files;
    files.policy.forbidden_paths = {files.secret + "/id"};
    fs::create_hard_link(files.secret + "/id", files.open + "/other");
    CHECK(says(refusal_of(files.policy, files.open + "/other"), "is in"));
}

TEST_CASE("paths: lists of allowed paths") {
    Files files;
    fs::create_directories(files.dir.file("data/out"));
    files.policy.allowed_read_paths = {files.dir.file("data")};
    files.policy.allowed_write_paths = {files.dir.file("data/out"), files.open};
    CHECK(allowed(files.policy, files.dir.file("data")));
    CHECK(allowed(files.policy, files.dir.file("data/out"), Access::write));
    CHECK(allowed(files.policy, files.open + "/sub"));  // what may be written may be read
    CHECK(says(refusal_of(files.policy, files.dir.file("data"), Access::write), "allowed_write_paths: "));
    CHECK(says(refusal_of(files.policy, "/usr"),
               "allowed_read_paths: /usr is not in " + files.dir.file("data") + " (test.json)"));
    fs::create_symlink("/usr", files.dir.file("data/usr"));
    CHECK(says(refusal_of(files.policy, files.dir.file("data/usr")), "allowed_read_paths"));

    files.policy.allowed_write_paths.reset();
    CHECK(says(refusal_of(files.policy, files.open, Access::write), "allowed_read_paths"));
    files.policy.allowed_read_paths = {files.dir.file("home")};
    CHECK(says(refusal_of(files.policy, files.secret), "forbidden_paths"));
    files.policy.allowed_read_paths = std::vector<std::string>();
    CHECK(says(refusal_of(files.policy, files.open), "an empty list"));
}

TEST_CASE("paths: of two policies both have to agree") {
    const Files files;
    std::vector<MountPolicy> policies(2, files.policy);
    policies[0].allowed_read_paths = {files.open};
    policies[1].allowed_read_paths = {files.open + "/sub"};
    CHECK(open_allowed(policies, files.open + "/sub", Access::read));
    CHECK_FALSE(open_allowed(policies, files.open, Access::read));
}

TEST_CASE("paths: only files and directories, and none of the kernel's") {
    Files files;
    REQUIRE(::mkfifo((files.open + "/fifo").c_str(), 0600) == 0);
    const UniqueFd listener(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_un address{AF_UNIX, {}};
    std::strcpy(address.sun_path, (files.open + "/socket").c_str());
    REQUIRE(::bind(listener.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
    CHECK(says(refusal_of(files.policy, files.open + "/fifo"), "neither a file nor a directory"));
    CHECK(says(refusal_of(files.policy, files.open + "/socket"), "neither a file nor a directory"));
    CHECK(says(refusal_of(files.policy, "/proc/self/status"), "an interface of the kernel"));
    CHECK(says(refusal_of(files.policy, "/"), "contains"));
}

TEST_CASE("paths: what states are kept in is refused, there or not, and each link to it") {
    const Files files;
    const std::string states = files.dir.file("states");
    const auto refused = [&](const std::string& path) {
        return says(refusal_of(files.policy, path), ", where the states of containers are kept");
    };
    CHECK(refused("/"));
    CHECK(refused(files.dir.path()));
    fs::create_directories(states + "/not");
    CHECK(refused(states));
    CHECK(refused(states + "/not"));
    fs::create_directories(states + "/not/yet/box");
    CHECK(refused(states + "/not/yet"));
    CHECK(refused(states + "/not/yet/box"));
    fs::remove_all(states);
    fs::create_directories(files.open + "/sub/elsewhere");
    fs::create_directory_symlink("open/sub", states);
    fs::create_directory_symlink("elsewhere", files.open + "/sub/not");
    CHECK(refused(files.open + "/sub"));
    CHECK(refused(files.open + "/sub/elsewhere"));
    CHECK(allowed(files.policy, files.open + "/file"));
}

TEST_CASE("paths: the built-in rules") {
    for (const char* path : {"/etc", "/etc/shadow", "/root", "/proc", "/proc/self", "/sys", "/dev/null", "/dev/shm"}) {
        CAPTURE(path);
        if (fs::exists(path)) CHECK(says(refusal_of(MountPolicy(), path), "(built in)"));
    }
    CHECK(allowed(MountPolicy(), "/usr/bin"));
    CHECK(allowed(MountPolicy(), "/etc/passwd"));
}

TEST_CASE("paths: a bind mount is no way around") {
    if (!have_own_mounts()) SKIP_TEST("needs root");
    const Files files;
    fs::create_directories(files.dir.file("mnt/below"));
    const std::string target = files.dir.file("mnt");
    struct Case {
        std::string source;
        std::string path;  // that is asked for
        std::string words;
    };
    const Case cases[] = {
        {files.secret, target, "is in"},
        {files.secret, target + "/keys", "is in"},
        {files.secret + "/keys", target, "is in"},  // nothing above it is forbidden by name or inode
        {files.dir.file("home/ann"), target, "contains"},
        {files.dir.file("home"), target + "/ann/.ssh", "is in"},
        {files.dir.path(), target, "contains"},
        {"/proc", target, "an interface of the kernel"},
        {files.open, files.open, ""},
    };
    for (const Case& one : cases) {
        CAPTURE(one.source);
        CAPTURE(one.path);
        const Bind bind(one.source, one.words.empty() ? files.open : target);
        if (one.words.empty()) CHECK(allowed(files.policy, one.path));
        else CHECK(says(refusal_of(files.policy, one.path), one.words));
    }
}

TEST_CASE("paths: mounts below count, since they would come along") {
    if (!have_own_mounts()) SKIP_TEST("needs root");
    const Files files;
    CHECK(allowed(files.policy, files.open));
    for (const std::string& source :
         {files.secret, files.secret + "/keys", files.dir.file("home"), std::string("/proc")}) {
        CAPTURE(source);
        const Bind bind(source, files.open + "/sub");
        CHECK(says(refusal_of(files.policy, files.open), "contains"));
    }
}

TEST_CASE("paths: a directory that is mounted on its own entry hides nothing above it") {
    if (!have_own_mounts()) SKIP_TEST("needs root");
    Files files;
    fs::create_directories(files.open + "/sub/deep");
    const Bind bind(files.open + "/sub", files.open + "/sub/deep");
    files.policy.allowed_read_paths = {files.open};
    CHECK(allowed(files.policy, files.open + "/sub/deep"));
}

TEST_CASE("paths: an entry to be made needs its own place allowed, not that of its neighbours") {
    Files files;
    const std::vector<MountPolicy> policies = {files.policy};
    const std::string home = files.dir.file("home/ann");
    const auto parent_of = [&](const std::string& path) { return open_parent_allowed(policies, path, Access::write); };
    const Result<UniqueFd> parent = parent_of(home + "/new");
    REQUIRE(parent);
    struct stat expected {};
    REQUIRE(::stat(home.c_str(), &expected) == 0);
    CHECK(status_of(parent->get()).st_ino == expected.st_ino);
    CHECK(parent_of(files.open + "/file"));
    CHECK_FALSE(parent_of(home + "/.ssh"));
    CHECK_FALSE(parent_of(home + "/.ssh/new"));
    CHECK_FALSE(parent_of(home));
    for (const char* name : {"/", "/.", "/.."}) CHECK_FALSE(parent_of(files.open + name));
    fs::create_directory_symlink(files.secret, files.open + "/link");
    CHECK_FALSE(parent_of(files.open + "/link/new"));
    CHECK(parent_of(files.open + "/link"));  // the link itself is what would be replaced
    fs::remove_all(files.secret);
    CHECK_FALSE(parent_of(home + "/.ssh"));
}

TEST_CASE("paths: a link that changes all the time never yields a forbidden file") {
    const Files files;
    const std::string link = files.open + "/link";
    std::atomic<bool> done = false;
    fs::create_directory_symlink(files.open + "/sub", link);
    fs::create_directory_symlink(files.secret, link + ".b");
    std::thread swapper([&] {
        while (!done) ::renameat2(AT_FDCWD, link.c_str(), AT_FDCWD, (link + ".b").c_str(), RENAME_EXCHANGE);
    });
    struct stat secret {};
    REQUIRE(::stat(files.secret.c_str(), &secret) == 0);
    size_t opened_times = 0;
    size_t refused_times = 0;
    // On a loaded machine the other thread may not get its turn for a while.
    constexpr int kEnough = 2000, kPatience = 1000000;
    for (int i = 0; i < kPatience && (i < kEnough || opened_times == 0 || refused_times == 0); ++i) {
        const Result<UniqueFd> opened = open_allowed(files.policy, link, Access::read);
        if (opened && status_of(opened->get()).st_ino == secret.st_ino) FAIL_CHECK("a forbidden file was opened");
        ++(opened ? opened_times : refused_times);
    }
    done = true;
    swapper.join();
    CHECK(opened_times > 0);
    CHECK(refused_times > 0);
}
