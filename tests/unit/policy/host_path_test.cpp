// Where an opened file is, and how rules name it.
#include "policy/host_path.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "base/fs.hpp"
#include "policy/path_rules.hpp"
#include "support/temp_dir.hpp"
#include "support/testing.hpp"

using namespace pinfold;
using pinfold::testing::TempDir;
namespace fs = std::filesystem;

TEST_CASE("host path: the kernel's mount table is read, escapes and optional fields included") {
    const MountTable table = parse_mount_table(
        "22 1 8:1 / / rw,relatime - ext4 /dev/sda1 rw\n"
        "40 22 8:1 /home/al\\040ice /mnt/a\\134b rw shared:1 master:2 - ext4 /dev/sda1 rw\n"
        "nonsense\n");
    REQUIRE(table.size() == 2);
    CHECK(table[0].point == "/");
    CHECK(table[1].id == 40);
    CHECK(table[1].root.device == "8:1");
    CHECK(table[1].root.path == "/home/al ice");
    CHECK(table[1].point == "/mnt/a\\b");
    CHECK(table[1].type == "ext4");
}

TEST_CASE("host path: within is by whole names") {
    CHECK(is_within("/root", "/root"));
    CHECK(is_within("/root/x", "/root"));
    CHECK(is_within("/root", "/"));
    CHECK_FALSE(is_within("/rootless", "/root"));
    CHECK_FALSE(is_within("/", "/root"));
    CHECK_FALSE(is_within(DevicePath{"8:1", "/x"}, DevicePath{"8:2", "/"}));
    CHECK_FALSE(is_within(DevicePath{}, DevicePath{}));
}

TEST_CASE("host path: a file knows its directories, up to the root") {
    const TempDir dir;
    fs::create_directories(dir.file("a/b"));
    REQUIRE(write_once(open_at(AT_FDCWD, dir.file("a/b/f"), O_CREAT | O_WRONLY, 0600).value().get(), "x", "f"));
    const MountTable mounts = read_mount_table().value();
    const UniqueFd file = open_at(AT_FDCWD, dir.file("a/b/f"), O_PATH).value();
    const HostPath found = locate_with_parents(file.get(), mounts).value();
    CHECK(found.path == dir.file("a/b/f"));
    CHECK(found.place.path.ends_with("/a/b/f"));
    CHECK(found.around.size() == 6);  // f, b, a, the directory, /tmp, /
    struct stat root {};
    REQUIRE(::stat("/", &root) == 0);
    CHECK(found.around.back() == Inode{root.st_dev, root.st_ino});
}

TEST_CASE("host path: what is gone has no place") {
    const TempDir dir;
    const UniqueFd file = open_at(AT_FDCWD, dir.file("f"), O_CREAT | O_RDWR, 0600).value();
    fs::remove(dir.file("f"));
    CHECK_FALSE(locate_with_parents(file.get(), read_mount_table().value()));
}

TEST_CASE("rules: a star stands for one name or a part of it, and nothing else is special") {
    const TempDir dir;
    for (const char* name : {"ann/.ssh", "bob/.ssh", ".eve/.ssh", "[x]"}) fs::create_directories(dir.file(name));
    CHECK(expand_stars(dir.file("*/.ssh")).size() == 4);  // "[x]/.ssh" may come to exist
    CHECK(expand_stars(dir.file("b*/.ssh")) == std::vector{dir.file("bob/.ssh")});
    CHECK(expand_stars(dir.file("[x]")) == std::vector{dir.file("[x]")});
    CHECK(is_within_pattern("/home/ann/.ssh/id", "/home/*/.ssh"));
    CHECK(is_within_pattern("/home/.eve/.ssh", "/home/*/.ssh"));
    CHECK_FALSE(is_within_pattern("/home/ann/x/.ssh", "/home/*/.ssh"));
    CHECK_FALSE(is_within_pattern("/home/ann", "/home/*/.ssh"));
    CHECK(is_within_pattern("/a/[x]1", "/a/[x]*"));
    CHECK_FALSE(is_within_pattern("/a/x1", "/a/[x]*"));
}

TEST_CASE("rules: the caller's home is that of the environment and that of the password file") {
    const char* before = std::getenv("HOME");
    const std::string saved = before ? before : "";
    ::setenv("HOME", "/srv/ann", 1);
    const std::vector<std::string> paths = without_tilde("~/.ssh");
    CHECK(std::ranges::find(paths, "/srv/ann/.ssh") != paths.end());
    if (::getuid() == 0) CHECK(std::ranges::find(paths, "/root/.ssh") != paths.end());
    ::setenv("HOME", "relative", 1);
    for (const std::string& path : without_tilde("~/.ssh")) CHECK(path.starts_with('/'));
    before ? ::setenv("HOME", saved.c_str(), 1) : ::unsetenv("HOME");
    CHECK(without_tilde("/x") == std::vector<std::string>{"/x"});
}
