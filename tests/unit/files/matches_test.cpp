// What a pattern stands for, in a root that somebody else has filled.
#include "files/matches.hpp"

#include <fcntl.h>

#include <filesystem>

#include "base/fs.hpp"
#include "base/strings.hpp"
#include "support/temp_dir.hpp"
#include "support/testing.hpp"

namespace pinfold::testing {

namespace fs = std::filesystem;

TEST_CASE("matches: as of a shell, and no link is followed that was not named") {
    const TempDir dir;
    for (const char* path : {"a/one", "a/two", "a/.hidden", "b/one"}) fs::create_directories(dir.file(path));
    fs::create_directory_symlink(".", dir.file("loop"));
    fs::create_directory_symlink("/a", dir.file("named"));  // in this root
    const RootFd root(open_at(AT_FDCWD, dir.path(), O_PATH | O_DIRECTORY).value());
    const auto found = [&](std::string_view pattern) {
        const Result<std::vector<std::string>> paths = find_matches(root, pattern);
        return paths ? join(*paths, " ") : paths.error().message;
    };
    CHECK(found("/a/*") == "/a/one /a/two");
    CHECK(found("/a/.h*") == "/a/.hidden");
    CHECK(found("/*/one") == "/a/one /b/one");
    CHECK(found("/*/*") == "/a/one /a/two /b/one");
    CHECK(found("//./[ab]/t?o/") == "/a/two");
    CHECK(found("/named/*") == "/named/one /named/two");
    CHECK(found("/*") == "/a /b /loop /named");
    CHECK(found("/none/*") == "");
    CHECK(found("/../../*/two") == "/../../a/two");
    CHECK(is_pattern("/a/[b]"));
    CHECK_FALSE(is_pattern("/a/b"));
}

TEST_CASE("matches: who has filled the root with circles is stopped at a number") {
    const TempDir dir;
    for (int i = 0; i < 350; ++i) {
        const std::string directory = dir.file("d" + std::to_string(i));
        fs::create_directory(directory);
        fs::create_directory_symlink("..", directory + "/up");
    }
    const RootFd root(open_at(AT_FDCWD, dir.path(), O_PATH | O_DIRECTORY).value());
    CHECK(find_matches(root, "/*/*/*/*/*/*")->empty());
    CHECK(find_matches(root, "/d*/up/d1*")->size() == 350 * 111);
    const Result<std::vector<std::string>> circles = find_matches(root, "/d*/up/d*/up/d*/up/d*");
    REQUIRE_FALSE(circles);
    CHECK(circles.error().message == "too many names to find those that match");
}

}  // namespace pinfold::testing
