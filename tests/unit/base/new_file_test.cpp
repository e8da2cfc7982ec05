// New files: there when they are complete, and not before.
#include "base/fs.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <filesystem>
#include <string>

#include "support/temp_dir.hpp"
#include "support/testing.hpp"

using namespace pinfold;
namespace fs = std::filesystem;

namespace {

struct Fixture {
    Fixture() : directory(std::move(open_at(AT_FDCWD, dir.path(), O_PATH | O_DIRECTORY)).value()) {}

    size_t count() const { return size_t(std::distance(fs::directory_iterator(dir.path()), {})); }
    NewFile create() const { return std::move(NewFile::create(directory.get(), 0644)).value(); }

    testing::TempDir dir;
    UniqueFd directory;
    OwnFds own = std::move(OwnFds::open()).value();
};

}  // namespace

TEST_CASE("new file: has its name at the end, and none if it does not come to that") {
    const Fixture here;
    NewFile file = here.create();
    REQUIRE(file.append("text"));
    { const NewFile given_up = here.create(); }
    CHECK(here.count() == 0);
    REQUIRE(file.commit("name"));
    CHECK(here.count() == 1);
    CHECK(*read_file(here.dir.file("name")) == "text");
}

TEST_CASE("new file: replaces a file and a link, and is refused a directory") {
    const Fixture here;
    const auto place = [&](const std::string& name) {
        NewFile file = here.create();
        CHECK(file.append("new"));
        return file.commit(name, here.own);
    };
    REQUIRE(write_once(open_at(here.directory.get(), "victim", O_WRONLY | O_CREAT, 0600)->get(), "old", "victim"));
    fs::create_symlink("victim", here.dir.file("link"));
    fs::create_directory(here.dir.file("directory"));
    CHECK(place("link"));
    CHECK(*read_file(here.dir.file("victim")) == "old");
    CHECK_FALSE(fs::is_symlink(here.dir.file("link")));
    CHECK(place("victim"));
    CHECK(*read_file(here.dir.file("victim")) == "new");
    CHECK_FALSE(place("directory"));
    CHECK(here.count() == 3);
    CHECK(check_replaceable(here.directory.get(), "directory").error().message == "'directory' is a directory already");
}

TEST_CASE("new file: zeros become a hole, also at the end") {
    const Fixture here;
    NewFile file = here.create();
    const std::string zeros(1 << 20, '\0');
    REQUIRE(file.append("begin"));
    REQUIRE(file.append(zeros));
    REQUIRE(file.append("end"));
    REQUIRE(file.append(zeros));
    REQUIRE(file.commit("holes"));
    CHECK((*read_file(here.dir.file("holes")) == "begin" + zeros + "end" + zeros));
    struct stat info {};
    REQUIRE(::stat(here.dir.file("holes").c_str(), &info) == 0);
    CHECK(info.st_blocks * 512 < 1 << 18);
}

TEST_CASE("new link: takes the place of another one") {
    const Fixture here;
    REQUIRE(make_link(here.directory.get(), "one", "link"));
    REQUIRE(make_link(here.directory.get(), "two", "link"));
    CHECK(fs::read_symlink(here.dir.file("link")) == "two");
    CHECK(here.count() == 1);
    fs::create_directory(here.dir.file("directory"));
    CHECK_FALSE(make_link(here.directory.get(), "one", "directory"));
}

TEST_CASE("new file: in one call, in another's place or only where there is none") {
    const Fixture here;
    const int directory = here.directory.get();
    REQUIRE(make_file(directory, "name", "first", 0600));
    const Result<void> again = make_file(directory, "name", "second", 0600);
    REQUIRE_FALSE(again);
    CHECK(again.error().code == EEXIST);
    CHECK(*read_file(here.dir.file("name")) == "first");
    REQUIRE(replace_file(directory, "name", "third", 0600));
    REQUIRE(replace_file(directory, "other", "", 0600));
    CHECK(*read_file(here.dir.file("name")) == "third");
    CHECK(*read_file(here.dir.file("other")) == "");
    CHECK(here.count() == 2);
    const Result<void> impossible = replace_file(directory, "nowhere/name", "text", 0600);
    REQUIRE_FALSE(impossible);
    CHECK(impossible.error().message.find("nowhere/name") != std::string::npos);
    CHECK(here.count() == 2);
}
