// What cp does not use of the copying library: files in memory, and host's sides that were opened before.
#include <fcntl.h>

#include "base/process.hpp"
#include "cp.hpp"
#include "files/copy.hpp"

using namespace pinfold::integration;
using pinfold::InsideOf;

namespace {

using As = Container::As;

InsideOf inside_of(const Container& container, uid_t uid, bool user_namespace) {
    return {
        container.pid(), pinfold::process_start_time(container.pid()).value(), user_namespace, {uid, uid, {}, true}};
}

}  // namespace

TEST_CASE("copy library: bytes are written and read as the container's user") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    for (const bool mapped : {false, true}) {
        CAPTURE(mapped);
        Bundle bundle;
        if (mapped) map_ids(bundle);
        fs::permissions(bundle.rootfs() / "data", fs::perms(0777));
        const Container running(waiting(bundle), As::running);
        const InsideOf container = inside_of(running, 5, mapped);
        const std::string text(200'000, 't');
        REQUIRE(pinfold::write_inside(container, "/data/file", text, 0604));
        CHECK(mode_of(bundle.rootfs() / "data/file") == 0604);
        CHECK(look_at(bundle.rootfs() / "data/file").st_uid == (mapped ? 100005 : 5));
        CHECK((*pinfold::read_inside(container, "/data/file", text.size()) == text));
        CHECK(pinfold::read_inside(container, "/data/file", text.size() - 1).error().code == EFBIG);
        CHECK(pinfold::read_inside(container, "/data", 100).error().code == EISDIR);
        CHECK(pinfold::read_inside(container, "/data/none", 100).error().code == ENOENT);
        REQUIRE(pinfold::write_inside(container, "/data/file", "", 0600));
        CHECK(pinfold::read_inside(container, "/data/file", 0)->empty());
        CHECK(pinfold::write_inside(container, "/etc/file", "x", 0600).error().code == EACCES);
    }
}

TEST_CASE("copy library: from and to what the caller has opened") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    Bundle bundle;
    const Container running(waiting(bundle), As::running);
    const InsideOf container = inside_of(running, 0, false);
    fs::create_directories(bundle.host() / "tree");
    write_text(bundle.host() / "tree/file", "text");
    const UniqueFd tree(::open((bundle.host() / "tree").c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    const UniqueFd file(::open((bundle.host() / "tree/file").c_str(), O_RDONLY | O_CLOEXEC));
    // Whatever has the names by now is not copied.
    fs::rename(bundle.host() / "tree", bundle.host() / "moved");
    REQUIRE(pinfold::copy_in(container, {tree.get(), "tree", "named"}, "/data", {}));
    CHECK(read_text(bundle.rootfs() / "data/named/file") == "text");
    const auto summary = pinfold::copy_in(container, {file.get(), "file", "named"}, "/tmp", {});
    REQUIRE(summary);
    CHECK(summary->bytes == 4);
    CHECK(summary->files == 1);
    CHECK(read_text(bundle.rootfs() / "tmp/named") == "text");
    for (int round = 0; round < 2; ++round) {  // the second time over the first
        REQUIRE(pinfold::copy_out(container, "/data/named", tree.get(), "out", {}));
        CHECK(read_text(bundle.host() / "moved/out/file") == "text");
        REQUIRE(pinfold::copy_out(container, "/tmp/named", tree.get(), "single", {}));
        CHECK(read_text(bundle.host() / "moved/single") == "text");
    }
    CHECK_FALSE(pinfold::copy_out(container, "/tmp/named", file.get(), "single", {}));
    for (const char* path : {"/tmp/named", "/data/named"}) {
        CHECK_FALSE(pinfold::copy_out(container, path, tree.get(), "../elsewhere", {}));
        CHECK_FALSE(fs::exists(bundle.host() / "elsewhere"));
    }
}

TEST_CASE("copy library: another process that has the pid is not the container") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    Bundle bundle;
    const Container running(waiting(bundle), As::running);
    InsideOf container = inside_of(running, 0, false);
    REQUIRE(pinfold::write_inside(container, "/data/file", "x", 0600));
    ++container.started;
    const auto refused = pinfold::read_inside(container, "/data/file", 100);
    REQUIRE_FALSE(refused);
    CHECK(refused.error().message == "container not running: its first process has ended");
}
