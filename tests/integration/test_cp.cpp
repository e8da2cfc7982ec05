// cp: what arrives, where, and whose it is; and what is refused before anything has arrived.
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <unistd.h>

#include <fstream>

#include "cp.hpp"

using namespace pinfold::integration;

namespace {

using As = Container::As;

// Every name below, with kind, mode and content: two trees are the same if these are.
std::string describe(const fs::path& top) {
    std::vector<std::string> lines;
    for (const auto& entry : fs::recursive_directory_iterator(top)) {
        std::string line = fs::relative(entry.path().parent_path(), top) / entry.path().filename();
        if (entry.is_symlink()) line += " -> " + fs::read_symlink(entry.path()).string();
        else line += " " + std::to_string(mode_of(entry.path()));
        if (entry.is_regular_file() && !entry.is_symlink()) line += " " + read_text(entry.path());
        lines.push_back(line);
    }
    std::sort(lines.begin(), lines.end());
    std::string out;
    for (const std::string& line : lines) out += line + "\n";
    return out;
}

void make_tree(const fs::path& top) {
    fs::create_directories(top / "deep/deeper/deepest");
    fs::create_directories(top / "empty");
    write_text(top / "plain", "text");
    write_text(top / "-dash", "leading");
    write_text(top / "new\nline", "a line break");
    write_text(top /
                   "gr\xc3\xbc\xc3\x9f"
                   "e \xe2\x82\xac",
               "UTF-8");
    write_text(top / "\xff\xfe", "not UTF-8");
    write_text(top / "nothing", "");
    write_text(top / "deep/deeper/deepest/file", "far down");
    fs::create_symlink("deep/deeper", top / "link");
    fs::create_symlink("../../plain", top / "deep/deeper/up");
    fs::create_symlink("nowhere", top / "dangling");
    fs::permissions(top / "plain", fs::perms(0640));
    fs::permissions(top / "nothing", fs::perms(0444));
    fs::permissions(top / "-dash", fs::perms(0755));
    fs::permissions(top / "deep/deeper", fs::perms(0555));
    fs::permissions(top / "empty", fs::perms(01777));
}

}  // namespace

TEST_CASE("cp: a file into a container and out again") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    Bundle bundle;
    const Container container(waiting(bundle), As::running);
    write_text(bundle.host() / "there", "and back");
    fs::permissions(bundle.host() / "there", fs::perms(0750));
    check_copied(cp(bundle, {bundle.host() / "there", inside(bundle, "/tmp/copy")}));
    CHECK(read_text(bundle.rootfs() / "tmp/copy") == "and back");
    CHECK(mode_of(bundle.rootfs() / "tmp/copy") == 0750);
    check_copied(cp(bundle, {inside(bundle, "tmp/copy"), bundle.host() / "back"}));
    CHECK(read_text(bundle.host() / "back") == "and back");
    CHECK(mode_of(bundle.host() / "back") == 0750);
    const Ended seen = container.exec({}, {"/probe", "read", "/tmp/copy"});
    CHECK(json::parse(seen.out).at("text") == "and back");
}

TEST_CASE("cp: a tree with all kinds of names, links and modes") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    Bundle bundle;
    const Container container(waiting(bundle), As::running);
    make_tree(bundle.host() / "tree");
    check_copied(cp(bundle, {bundle.host() / "tree", inside(bundle, "/data")}));
    CHECK(describe(bundle.rootfs() / "data/tree") == describe(bundle.host() / "tree"));
    check_copied(cp(bundle, {inside(bundle, "/data/tree"), bundle.host() / "back"}, {.umask = 0}));
    CHECK(describe(bundle.host() / "back") == describe(bundle.host() / "tree"));
}

TEST_CASE("cp: where things go, in both directions") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    struct Case {
        const char* source;
        const char* target;
        const char* result;  // where the text is found, below the target's side
    };
    // The side of the source holds file and dir/held, the side of the target an empty directory, taken, and a file.
    const Case kCases[] = {
        {"file", "new", "new"},
        {"file", "taken", "taken/file"},
        {"file", "taken/", "taken/file"},
        {"file", "taken/other", "taken/other"},
        {"file", "old", "old"},
        {"dir", "new", "new/held"},
        {"dir", "new/", "new/held"},
        {"dir", "taken", "taken/dir/held"},
        {"dir/", "taken", "taken/dir/held"},
        {"dir/.", "taken", "taken/held"},
        {"dir/.", "new", "new/held"},
        {"dir/../file", "taken/../new", "new"},
    };
    Bundle bundle;
    const Container container(waiting(bundle), As::running);
    for (const bool into : {true, false}) {
        const fs::path source = into ? bundle.host() / "side" : bundle.rootfs() / "data";
        const fs::path target = into ? bundle.rootfs() / "data" : bundle.host() / "side";
        for (const Case& one : kCases) {
            CAPTURE(into);
            CAPTURE(one.source);
            CAPTURE(one.target);
            for (const fs::path& side : {source, target}) {
                fs::remove_all(side);
                fs::create_directories(side);
            }
            fs::create_directories(source / "dir");
            write_text(source / "file", "text");
            write_text(source / "dir/held", "text");
            fs::create_directories(target / "taken");
            write_text(target / "old", "replaced");
            const std::string from = std::string("/") + one.source;
            const std::string to = std::string("/") + one.target;
            if (into) check_copied(cp(bundle, {source.string() + from, inside(bundle, "/data" + to)}));
            else check_copied(cp(bundle, {inside(bundle, "/data" + from), target.string() + to}));
            CHECK(read_text(target / one.result) == "text");
        }
    }
}

TEST_CASE("cp: targets that do not fit are refused and left as they are") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    Bundle bundle;
    write_text(bundle.host() / "mounted", "");
    bundle.bind(bundle.host() / "mounted", "/etc/mounted");
    const Container container(waiting(bundle), As::running);
    fs::create_directories(bundle.host() / "dir/sub");
    write_text(bundle.host() / "dir/file", "new");
    write_text(bundle.host() / "file", "new");
    fs::create_directories(bundle.rootfs() / "data/dir/file");
    write_text(bundle.rootfs() / "data/file", "old");
    const std::string before = describe(bundle.rootfs() / "data");
    const std::string file = bundle.host() / "file";
    const std::string dir = bundle.host() / "dir";
    check_refused(cp(bundle, {dir, inside(bundle, "/data/file")}), "'file' is there already and is not a directory");
    check_refused(cp(bundle, {file, inside(bundle, "/data/file/")}), "'file' is not a directory");
    check_refused(cp(bundle, {file, inside(bundle, "/data/new/")}), "'new' is not a directory");
    check_refused(cp(bundle, {file, inside(bundle, "/data/no/new")}),
                  "open data/no/ in the root file system: does not");
    check_refused(cp(bundle, {file, inside(bundle, "/data/dir")}), "'file' is a directory already");
    check_refused(cp(bundle, {file, inside(bundle, "/dev/null")}), "'null' is a device already");
    check_refused(cp(bundle, {file, inside(bundle, "/etc/mounted")}), "hint: something is mounted there");
    check_refused(cp(bundle, {"-", inside(bundle, "/data")}), "the target is a directory");
    check_refused(cp(bundle, {inside(bundle, "/data"), "-"}), "'/data' is a directory");
    check_refused(cp(bundle, {inside(bundle, "/nothing"), dir}),
                  "open nothing in the root file system: does not exist");
    check_refused(cp(bundle, {bundle.host() / "nothing", inside(bundle, "/data")}), "does not exist (ENOENT)");
    CHECK(describe(bundle.rootfs() / "data") == before);
}

TEST_CASE("cp: a file that is replaced stays whole for those who read it") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    Bundle bundle;
    const Container container(waiting(bundle), As::running);
    write_text(bundle.rootfs() / "data/file", "the old text");
    const UniqueFd reader(::open((bundle.rootfs() / "data/file").c_str(), O_RDONLY | O_CLOEXEC));
    write_text(bundle.host() / "file", "the new text");
    check_copied(cp(bundle, {bundle.host() / "file", inside(bundle, "/data/file")}));
    std::string old(64, '\0');
    old.resize(static_cast<size_t>(::read(reader.get(), old.data(), old.size())));
    CHECK(old == "the old text");
    CHECK(read_text(bundle.rootfs() / "data/file") == "the new text");
    CHECK(describe(bundle.rootfs() / "data") == "./file 420 the new text\n");
}

TEST_CASE("cp: files belong to the payload's user inside, and to the caller outside") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    for (const bool mapped : {false, true}) {
        CAPTURE(mapped);
        Bundle bundle;
        if (mapped) map_ids(bundle);
        bundle.config["process"]["user"] = {{"uid", 1000}, {"gid", 1001}};
        fs::permissions(bundle.rootfs() / "data", fs::perms(0777));
        const Container container(waiting(bundle), As::running);
        make_tree(bundle.host() / "tree");
        check_copied(cp(bundle, {bundle.host() / "tree", inside(bundle, "/data/tree")}));
        const uid_t shift = mapped ? 100000 : 0;
        for (const char* name : {"data/tree", "data/tree/plain", "data/tree/link", "data/tree/deep/deeper/up"}) {
            CAPTURE(name);
            CHECK(look_at(bundle.rootfs() / name).st_uid == shift + 1000);
            CHECK(look_at(bundle.rootfs() / name).st_gid == shift + 1001);
        }
        check_copied(cp(bundle, {inside(bundle, "/data/tree"), bundle.host() / "back"}));
        CHECK(look_at(bundle.host() / "back/plain").st_uid == 0);
        CHECK(look_at(bundle.host() / "back/link").st_uid == 0);
    }
}

TEST_CASE("cp: no bit of a mode gives rights to whoever runs the file") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    Bundle bundle;
    const Container container(waiting(bundle), As::running);
    write_text(bundle.host() / "tool", "x");
    fs::permissions(bundle.host() / "tool", fs::perms(07755));
    check_copied(cp(bundle, {bundle.host() / "tool", inside(bundle, "/data")}));
    CHECK(mode_of(bundle.rootfs() / "data/tool") == 0755);
    fs::permissions(bundle.rootfs() / "data/tool", fs::perms(06777));
    check_copied(cp(bundle, {inside(bundle, "/data/tool"), bundle.host() / "out"}));
    CHECK(mode_of(bundle.host() / "out") == 0755);  // by the caller's umask
}

TEST_CASE("cp: hard links become files of their own") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    Bundle bundle;
    const Container container(waiting(bundle), As::running);
    fs::create_directories(bundle.rootfs() / "data/pair");
    write_text(bundle.rootfs() / "data/pair/a", "same");
    fs::create_hard_link(bundle.rootfs() / "data/pair/a", bundle.rootfs() / "data/pair/b");
    check_copied(cp(bundle, {inside(bundle, "/data/pair"), bundle.host()}));
    CHECK(read_text(bundle.host() / "pair/b") == "same");
    CHECK(look_at(bundle.host() / "pair/a").st_nlink == 1);
}

TEST_CASE("cp: a great file, whose holes stay holes") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    Bundle bundle;
    const Container container(waiting(bundle), As::running);
    constexpr off_t kSize = 200'000'001;
    const fs::path big = bundle.host() / "big";
    write_text(big, "beginning");
    fs::resize_file(big, 150'000'000);
    std::ofstream(big, std::ios::app) << "in the middle";
    fs::resize_file(big, kSize);
    check_copied(cp(bundle, {big, inside(bundle, "/data/big")}));
    check_copied(cp(bundle, {inside(bundle, "/data/big"), bundle.host() / "back"}));
    CHECK(look_at(bundle.host() / "back").st_size == kSize);
    CHECK(look_at(bundle.host() / "back").st_blocks * 512 < 1'000'000);
    CHECK(run_program({"cmp", big, bundle.host() / "back"}).status == 0);
    fs::remove(bundle.rootfs() / "data/big");
}

TEST_CASE("cp: a file of many pieces arrives as it was") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    Bundle bundle;
    const Container container(waiting(bundle), As::running);
    std::string text;
    for (int i = 0; text.size() < 3'000'000; ++i)
        text += std::to_string(i) + (i % 5 == 0 ? std::string(9000, '\0') : "");
    write_text(bundle.host() / "many", text);
    check_copied(cp(bundle, {bundle.host() / "many", inside(bundle, "/data")}));
    CHECK((read_text(bundle.rootfs() / "data/many") == text));
}

TEST_CASE("cp: special files are refused by name, and nothing of their tree is copied") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    Bundle bundle;
    const Container container(waiting(bundle), As::running);
    const fs::path tree = bundle.rootfs() / "data/tree";
    fs::create_directories(tree / "sub");
    write_text(tree / "file", "x");
    const auto check_special = [&](const char* words) {
        check_refused(cp(bundle, {inside(bundle, "/data/tree"), bundle.host()}), words);
        CHECK_FALSE(fs::exists(bundle.host() / "tree"));
        check_refused(cp(bundle, {tree, inside(bundle, "/tmp")}), words);
        CHECK_FALSE(fs::exists(bundle.rootfs() / "tmp/tree"));
        fs::remove(tree / "sub/special");
    };
    REQUIRE(::mkfifo((tree / "sub/special").c_str(), 0666) == 0);
    check_special("/data/tree/sub/special' is a fifo");
    REQUIRE(::mknod((tree / "sub/special").c_str(), S_IFCHR | 0666, makedev(1, 3)) == 0);
    check_special("/data/tree/sub/special' is a device");
    const UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    (tree / "sub/special").string().copy(address.sun_path, sizeof address.sun_path - 1);
    REQUIRE(::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
    check_special("/data/tree/sub/special' is a socket");
    check_refused(cp(bundle, {inside(bundle, "/dev/null"), bundle.host()}), "'/dev/null' is a device");
    check_refused(cp(bundle, {"/dev/null", inside(bundle, "/data")}), "'/dev/null' is a device");
}

TEST_CASE("cp: limits of bytes, files and depth stop it before anything is copied") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    Bundle bundle;
    const Container container(waiting(bundle), As::running);
    const fs::path tree = bundle.rootfs() / "data/tree";
    fs::create_directories(tree);
    write_text(tree / "a", std::string(1024, 'a'));
    write_text(tree / "b", std::string(1024, 'b'));
    const auto copied = [&](const std::vector<std::string>& options, const std::string& words) {
        for (const bool into : {true, false}) {
            CAPTURE(into);
            const fs::path target = into ? bundle.rootfs() / "tmp/out" : bundle.host() / "out";
            std::vector<std::string> line = options;
            if (into) line.insert(line.end(), {tree, inside(bundle, "/tmp/out")});
            else line.insert(line.end(), {inside(bundle, "/data/tree"), target});
            const Ended ended = cp(bundle, line);
            if (words.empty()) check_copied(ended);
            else check_refused(ended, words);
            CHECK(fs::exists(target) == words.empty());
            fs::remove_all(target);
        }
    };
    copied({"--max-size", "2K", "--max-files", "3"}, "");
    copied({"--max-size", "2047"}, "more than 2047 bytes\nhint: --max-size");
    copied({"--max-files", "2"}, "more than 2 files\nhint: --max-files");
    copied({"--max-size", "many"}, "--max-size: found 'many'");
    check_refused(cp(bundle, {"--max-size", "3", "-", inside(bundle, "/tmp/out")}, {.input = "four"}),
                  "more than 3 bytes");
    CHECK_FALSE(fs::exists(bundle.rootfs() / "tmp/out"));
    fs::path deep = tree;
    for (int level = 0; level < 129; ++level) deep /= "d";
    fs::create_directories(deep);
    copied({}, "more than 128 directories deep");
    fs::remove(deep);
    copied({}, "");
}

TEST_CASE("cp: standard input and output") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    Bundle bundle;
    const Container container(waiting(bundle), As::running);
    const UniqueFd input(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    check_copied(cp(bundle, {"-", inside(bundle, "/data/empty")}, {.fds = {{0, input.get()}}}));
    CHECK(look_at(bundle.rootfs() / "data/empty").st_size == 0);
    write_text(bundle.host() / "text", "from a file");
    const UniqueFd text(::open((bundle.host() / "text").c_str(), O_RDONLY | O_CLOEXEC));
    check_copied(cp(bundle, {"-", inside(bundle, "/data/text")}, {.fds = {{0, text.get()}}}));
    CHECK(read_text(bundle.rootfs() / "data/text") == "from a file");
    CHECK(mode_of(bundle.rootfs() / "data/text") == 0644);
    const Ended out = cp(bundle, {inside(bundle, "/data/text"), "-"});
    check_copied(out);
    CHECK(out.out == "from a file");
    // Files of /proc have no size, but bytes.
    CHECK(cp(bundle, {inside(bundle, "/proc/sys/kernel/ostype"), "-"}).out == "Linux\n");
}

TEST_CASE("cp: into and out of a container that is created or paused, not of one that has ended") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    Bundle bundle;
    write_text(bundle.host() / "file", "text");
    const auto check_both_ways = [&](const std::string& name) {
        check_copied(cp(bundle, {bundle.host() / "file", inside(bundle, "/dev/shm/" + name)}));
        CHECK(cp(bundle, {inside(bundle, "/dev/shm/" + name), "-"}).out == "text");
    };
    const Container container(waiting(bundle), As::created);
    check_both_ways("created");
    CHECK(container.status() == "created");
    container.must({"start", bundle.id()});
    CHECK(cp(bundle, {inside(bundle, "/dev/shm/created"), "-"}).out == "text");
    if (!cgroup2_mount().empty()) {
        container.must({"pause", bundle.id()});
        check_both_ways("paused");
        CHECK(container.status() == "paused");
        container.must({"resume", bundle.id()});
    }
    container.must({"kill", bundle.id(), "KILL"});
    container.await_end();
    check_refused(cp(bundle, {inside(bundle, "/dev/shm/created"), "-"}), "container not running: ");
    check_refused(cp(bundle, {"nobody:/x", "-"}), "container 'nobody' does not exist");
}

TEST_CASE("cp: to a tmpfs that belongs to the container's user namespace") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    Bundle bundle;
    map_ids(bundle);
    bundle.config["process"]["user"] = {{"uid", 7}, {"gid", 8}};
    bundle.mount("/data", "tmpfs", "tmpfs", {"mode=777"});
    const Container container(waiting(bundle), As::running);
    make_tree(bundle.host() / "tree");
    check_copied(cp(bundle, {bundle.host() / "tree", inside(bundle, "/data")}));
    const json seen = json::parse(container.exec({}, {"/probe", "stat", "/data/tree/plain"}).out);
    CHECK(seen.at("uid") == 7);
    CHECK(seen.at("gid") == 8);
    check_copied(cp(bundle, {inside(bundle, "/data/tree"), bundle.host() / "back"}, {.umask = 0}));
    CHECK(describe(bundle.host() / "back") == describe(bundle.host() / "tree"));
}

TEST_CASE("cp: for a user without privileges") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    for (const As as : {As::created, As::running}) {
        Bundle bundle;
        waiting(bundle).mount("/data", "tmpfs", "tmpfs", {"mode=755"}).make_rootless(kNobodySpecial);
        const SpawnOptions spawn{.uid = kNobodySpecial, .umask = 0};
        const Container container(bundle, as, {.spawn = spawn});
        make_tree(bundle.host() / "tree");
        fs::permissions(bundle.host() / "tree/plain", fs::perms(0644));
        for (const char* target : {"/data/tree", "/tmp/tree"}) {
            check_copied(cp(bundle, {bundle.host() / "tree", inside(bundle, target)}, spawn));
            check_copied(cp(bundle, {inside(bundle, target), bundle.host() / "back"}, spawn));
            CHECK(describe(bundle.host() / "back") == describe(bundle.host() / "tree"));
            CHECK(look_at(bundle.host() / "back/plain").st_uid == kNobodySpecial);
            fs::remove_all(bundle.host() / "back");
        }
        CHECK(look_at(bundle.rootfs() / "tmp/tree").st_uid == kNobodySpecial);
    }
}

TEST_CASE("cp: one side is a container's") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    Bundle bundle;
    const Container container(waiting(bundle), As::running);
    const std::string words = "one of source and target must be ID:PATH";
    check_refused(cp(bundle, {"/a", "/b"}), words);
    check_refused(cp(bundle, {inside(bundle, "/a"), inside(bundle, "/b")}), words);
    check_refused(cp(bundle, {"./a:b", "/b"}), "hint: a path with a colon in its name is written ./a:b");
    check_refused(cp(bundle, {inside(bundle, ""), "/b"}), "names no path in the container");
    CHECK(cp(bundle, {"/a"}).status == 1);
    write_text(bundle.host() / "a:b", "with a colon");
    const SpawnOptions there{.directory = bundle.host()};
    check_copied(cp(bundle, {"./a:b", inside(bundle, "/data")}, there));
    check_copied(cp(bundle, {inside(bundle, "/data/a:b"), "copy"}, there));
    CHECK(read_text(bundle.host() / "copy") == "with a colon");
}

TEST_CASE("cp: nothing is copied to where states are kept") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    Bundle bundle;
    const Container container(waiting(bundle), As::running);
    fs::create_directories(bundle.rootfs() / "data/state/planted");
    write_text(bundle.rootfs() / "data/state/planted/state.json", "{}");
    const fs::path home = bundle.state_root().parent_path();
    fs::create_symlink(home, bundle.host() / "link");
    for (const auto& copy : std::vector<std::pair<std::string, fs::path>>{
             {"/data/state/planted", bundle.state_root()},
             {"/data/state/planted", bundle.state_root() / "planted"},
             {"/data/state/.", bundle.state_root()},
             {"/data/.", home},
             {"/data/state", home},
             {"/data/.", bundle.host() / "link/"},
             {"/data/state/planted/state.json", bundle.state_root() / bundle.id() / "state.json"}}) {
        CAPTURE(copy.first);
        CAPTURE(copy.second);
        const Ended refused = cp(bundle, {inside(bundle, copy.first), copy.second});
        check_refused(refused, "where the states of containers are kept");
        CHECK_FALSE(fs::exists(bundle.state_root() / "planted"));
    }
    check_copied(cp(bundle, {inside(bundle, "/data/state/planted"), home}));  // beside it
    fs::remove_all(home / "planted");
}
