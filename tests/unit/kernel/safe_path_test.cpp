// Paths inside a root: whatever is planted there, nothing outside is reached or made.
#include "kernel/safe_path.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <thread>

#include "base/fs.hpp"
#include "support/temp_dir.hpp"
#include "support/testing.hpp"

using namespace pinfold;
using pinfold::testing::TempDir;
namespace fs = std::filesystem;

namespace {

struct Tree {
    TempDir dir;
    std::string inside = dir.file("root");
    std::string outside = dir.file("outside");

    Tree() {
        fs::create_directory(inside);
        fs::create_directory(outside);
        std::ofstream(outside + "/secret") << "host";
    }
    RootFd root() const { return RootFd(open_at(AT_FDCWD, inside, O_PATH | O_DIRECTORY).value()); }
};

bool is_empty_but_for_the_secret(const std::string& path) {
    size_t entries = 0;
    for ([[maybe_unused]] const auto& entry : fs::directory_iterator(path)) ++entries;
    return entries == 1;
}

}  // namespace

TEST_CASE("safe path: plain paths are opened, missing ones are ENOENT") {
    Tree tree;
    fs::create_directories(tree.inside + "/a/b");
    CHECK(tree.root().open("/a/b", O_PATH | O_DIRECTORY));
    CHECK(tree.root().open("a//b/.", O_PATH));
    const auto missing = tree.root().open("/a/c", O_PATH);
    REQUIRE_FALSE(missing);
    CHECK(missing.error().code == ENOENT);
}

TEST_CASE("safe path: dots and links end at the root") {
    Tree tree;
    fs::create_symlink("/../../../../outside", tree.inside + "/absolute");
    fs::create_symlink("../../outside", tree.inside + "/relative");
    for (const char* path : {"/../outside/secret", "/absolute/secret", "/relative/secret", "/../../../etc/passwd"}) {
        CAPTURE(path);
        CHECK_FALSE(tree.root().open(path, O_RDONLY));
    }
}

TEST_CASE("safe path: magic links are refused") {
    Tree tree;
    fs::create_symlink("/proc/self/root", tree.inside + "/way-out");
    const RootFd root(open_at(AT_FDCWD, "/", O_PATH | O_DIRECTORY).value());
    const auto opened = root.open("/proc/self/root/etc", O_PATH);
    REQUIRE_FALSE(opened);
    CHECK(opened.error().code == ELOOP);
}

TEST_CASE("safe path: directories and files are made with their parents") {
    Tree tree;
    CHECK(tree.root().make_directory("/x/y/z"));
    CHECK(tree.root().make_file("/x/f/g.txt"));
    CHECK(fs::is_directory(tree.inside + "/x/y/z"));
    CHECK(fs::is_regular_file(tree.inside + "/x/f/g.txt"));
    CHECK(tree.root().make_directory("/x/y/z"));  // a second time it is just opened
    CHECK_FALSE(tree.root().make_directory("/x/f/g.txt"));
}

TEST_CASE("safe path: through a dangling link, its target inside is made") {
    Tree tree;
    fs::create_directory(tree.inside + "/var");
    fs::create_symlink("/run", tree.inside + "/var/run");
    fs::create_symlink("../../../outside/new", tree.inside + "/var/up");
    CHECK(tree.root().make_directory("/var/run/secrets"));
    CHECK(fs::is_directory(tree.inside + "/run/secrets"));
    CHECK(tree.root().make_directory("/var/up"));
    CHECK(fs::is_directory(tree.inside + "/outside/new"));
    CHECK(is_empty_but_for_the_secret(tree.outside));
}

TEST_CASE("safe path: links in a circle end") {
    Tree tree;
    fs::create_symlink("b", tree.inside + "/a");
    fs::create_symlink("a", tree.inside + "/b");
    CHECK_FALSE(tree.root().make_directory("/a"));
    CHECK_FALSE(tree.root().make_file("/a/c"));
}

TEST_CASE("safe path: a name that is swapped for a link during the walk leads nowhere else") {
    Tree tree;
    fs::create_directory(tree.inside + "/swap");
    fs::create_symlink(tree.outside, tree.inside + "/link");
    std::atomic<bool> done = false;
    std::thread attacker([&] {
        const std::string one = tree.inside + "/swap";
        const std::string other = tree.inside + "/link";
        while (!done) ::renameat2(AT_FDCWD, one.c_str(), AT_FDCWD, other.c_str(), RENAME_EXCHANGE);
    });
    const RootFd root = tree.root();
    for (int i = 0; i < 2000; ++i) {
        // It may work or fail, as the moment has it.
        [[maybe_unused]] const auto directory = root.make_directory("/swap/made/" + std::to_string(i));
        [[maybe_unused]] const auto file = root.make_file("/swap/file" + std::to_string(i));
    }
    done = true;
    attacker.join();
    CHECK(is_empty_but_for_the_secret(tree.outside));
}

TEST_CASE("safe path: the place of a file") {
    Tree tree;
    const auto place = tree.root().place_of("/dev/pts/0");
    REQUIRE(place);
    CHECK(place->name == "0");
    CHECK(fs::is_directory(tree.inside + "/dev/pts"));
    for (const char* path : {"/", "/dev/..", "/dev/."}) {
        CAPTURE(path);
        CHECK_FALSE(tree.root().place_of(path));
    }
}
