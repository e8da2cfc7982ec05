// The receiver against a sender that lies: no name, depth or amount makes it write where it should not.
#include "files/receive_tree.hpp"

#include <fcntl.h>

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "base/fs.hpp"
#include "support/temp_dir.hpp"
#include "support/testing.hpp"

using namespace pinfold;
namespace fs = std::filesystem;

namespace {

using Items = std::vector<Item>;

Result<CopySummary> receive(const std::string& target, const Items& items, const CopyLimits& limits = {}) {
    Result<std::pair<Stream, Stream>> ends = Stream::make_pair();
    const Result<OwnFds> own = OwnFds::open();
    const Result<Place> place =
        find_place(target, [](const std::string& path, int flags) { return open_at(AT_FDCWD, path, flags); });
    REQUIRE(ends);
    REQUIRE(own);
    REQUIRE(place);
    for (const Item& item : items) REQUIRE(ends->first.send(item));
    { const Stream ended = std::move(ends->first); }
    return receive_tree(*place, "", limits, *own, ends->second);
}

// All that is below, as "name name/name ...".
std::string names_below(const std::string& path) {
    std::string names;
    for (const auto& entry : fs::recursive_directory_iterator(path)) {
        names += (names.empty() ? "" : " ") + fs::relative(entry.path(), path).string();
    }
    return names;
}

constexpr Item kTop{Word::directory, 0755, "", ""};
constexpr Item kUp{Word::up, 0, "", ""};

}  // namespace

TEST_CASE("receive: a tree, counted") {
    const testing::TempDir dir;
    const auto summary = receive(dir.file("new"), {kTop,
                                                   {Word::directory, 0700, "sub", ""},
                                                   {Word::file, 0600, "file", ""},
                                                   {Word::bytes, 0, "", "some"},
                                                   {Word::bytes, 0, "", "thing"},
                                                   kUp,
                                                   kUp,
                                                   {Word::link, 0, "link", "sub/file"},
                                                   kUp});
    REQUIRE(summary);
    CHECK(summary->files == 4);
    CHECK(summary->bytes == 9);
    CHECK(*read_file(dir.file("new/link")) == "something");
}

TEST_CASE("receive: names that are no names of files") {
    for (const std::string_view name : {"", ".", "..", "a/b", "/a", "../a", "a/", "/"}) {
        for (const Word word : {Word::directory, Word::file, Word::link}) {
            CAPTURE(name);
            const testing::TempDir dir;
            fs::create_directory(dir.file("top"));
            const auto refused = receive(dir.file("top"), {kTop, {word, 0755, name, "target"}, kUp, kUp});
            REQUIRE_FALSE(refused);
            CHECK(refused.error().message.ends_with("is not the name of a file"));
            CHECK(names_below(dir.path()) == "top");
        }
    }
    const testing::TempDir dir;
    CHECK_FALSE(receive(dir.path(), {kTop, {Word::file, 0644, std::string_view("a\0b", 3), ""}, kUp, kUp}));
    CHECK(names_below(dir.path()).empty());
}

TEST_CASE("receive: words that are out of place") {
    const Items kWrong[] = {
        {{Word::link, 0, "", "/etc/passwd"}},
        {{Word::bytes, 0, "", "x"}},
        {kUp},
        {{Word::done, 0, "", ""}},
        {kTop, {Word::bytes, 0, "name", "x"}},
        {kTop, {Word::done, 0, "name", ""}},
        {{Word::file, 0644, "", ""}, {Word::file, 0644, "name", ""}},
        {{Word::file, 0644, "", ""}, {Word::done, 0, "", ""}},
        {{Word::file, 0644, "", ""}, {Word::bytes, 0, "", "x"}},  // and then the end
        {kTop},
    };
    for (const Items& items : kWrong) {
        const testing::TempDir dir;
        CHECK_FALSE(receive(dir.file("new"), items));
        CHECK_FALSE(fs::is_regular_file(dir.file("new")));
        CHECK_FALSE(fs::is_symlink(dir.file("new")));
    }
}

TEST_CASE("receive: more than was allowed, whatever the sender has counted") {
    const testing::TempDir dir;
    const Item file{Word::file, 0644, "file", ""};
    const Item bytes{Word::bytes, 0, "", "four"};
    const CopyLimits limits{.bytes = 10, .files = 3};
    CHECK(receive(dir.file("1"), {kTop, file, bytes, bytes, kUp, kUp}, limits));
    CHECK(receive(dir.file("2"), {kTop, file, bytes, bytes, bytes, kUp, kUp}, limits).error().code == EFBIG);
    CHECK(names_below(dir.file("2")).empty());
    CHECK(receive(dir.file("3"), {kTop, file, kUp, file, kUp, kUp}, limits));
    CHECK(receive(dir.file("4"), {kTop, file, kUp, file, kUp, file, kUp, kUp}, limits).error().code == EMFILE);
    Items deep(kMaxCopyDepth + 2, {Word::directory, 0755, "d", ""});
    CHECK(receive(dir.file("5"), deep).error().message.ends_with("directories deep"));
}

TEST_CASE("receive: links that lead out, whatever the sender has looked at") {
    for (const std::string_view target : {"..", "/etc/passwd", "sub/../x"}) {
        CAPTURE(target);
        const testing::TempDir dir;
        const Items items{kTop, {Word::link, 0, "link", target}, kUp};
        const auto refused = receive(dir.file("new"), items);
        REQUIRE_FALSE(refused);
        CHECK(refused.error().message.starts_with("'link': the link leads out of the copied tree"));
        CHECK(names_below(dir.file("new")).empty());
        CHECK(receive(dir.file("new"), items, {.outward_links = true}));
    }
}

TEST_CASE("receive: no bit beyond a mode's ordinary ones") {
    const testing::TempDir dir;
    REQUIRE(receive(dir.file("tool"), {{Word::file, 07777, "", ""}, kUp}));
    CHECK((fs::status(dir.file("tool")).permissions() & fs::perms(07000)) == fs::perms::none);
    REQUIRE(receive(dir.file("dir"), {{Word::directory, 07777, "", ""}, kUp}));
    CHECK((fs::status(dir.file("dir")).permissions() & fs::perms(06000)) == fs::perms::none);
}

TEST_CASE("receive: the last name of a path") {
    const std::map<std::string, std::string> names = {{"/a/b", "b"}, {"a", "a"},   {"a/b//", "b"}, {"/", ""},
                                                      {"", ""},      {"/a/.", ""}, {"..", ""},     {"a/..", ""}};
    for (const auto& one : names) {
        CAPTURE(one.first);
        CHECK(last_name(one.first) == one.second);
    }
}
