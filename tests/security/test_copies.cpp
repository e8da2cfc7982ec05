// Copies in and out of containers and sandboxes whose processes plant links, exchange names and bring programs along.
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <algorithm>
#include <set>
#include <sstream>

#include "attacks.hpp"
#include "cp.hpp"
#include "sandbox.hpp"

namespace pinfold::integration {

namespace {

using As = Container::As;

// The words of a file of strace's that are programs, or libraries that a program would load.
std::multiset<std::string> code_used_by(const Bundle& bundle, const std::vector<std::string>& words) {
    std::vector<std::string> line = {
        "/usr/bin/strace", "-f", "-qq", "-e", "trace=execve,execveat,openat,openat2", "-o", bundle.host() / "trace"};
    const std::vector<std::string> command = bundle.verb(words);
    line.insert(line.end(), command.begin(), command.end());
    const Ended ended = run_program(line, {.env = {"ASAN_OPTIONS=detect_leaks=0"}});
    CHECK_MESSAGE(ended.status == 0, ended.err);
    std::multiset<std::string> used;
    std::istringstream calls(read_text(bundle.host() / "trace"));
    for (std::string call; std::getline(calls, call);) {
        const size_t begin = call.find('"') + 1;
        const std::string path = call.substr(begin, call.find('"', begin) - begin);
        if (call.find(" exec") != std::string::npos || path.find(".so") != std::string::npos) used.insert(path);
    }
    return used;
}

// No file of the host, and no link that leads out.
bool is_harmless(const fs::path& copies) {
    const fs::recursive_directory_iterator entries(copies);
    return std::all_of(begin(entries), end(entries), [](const auto& entry) {
        if (entry.is_symlink()) return fs::read_symlink(entry.path()) == "result";
        return !entry.is_regular_file() || read_text(entry.path()) != Vault::kText;
    });
}

}  // namespace

TEST_CASE("CVE-2018-15664: cp replaces a link at the target, and does not follow it") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    Bundle bundle;
    const Vault vault(bundle);
    const Container container(waiting(bundle), As::running);
    write_text(bundle.host() / "file", "new");
    const fs::path link = bundle.rootfs() / "data/link";
    for (const std::string& target :
         {vault.secret().string(), "../../../../../../../../../.." + vault.secret().string(),
          (vault.path() / "new").string(), std::string("/etc/passwd")}) {
        CAPTURE(target);
        fs::remove(link);
        fs::create_symlink(target, link);
        check_copied(cp(bundle, {bundle.host() / "file", inside(bundle, "/data/link")}));
        CHECK(look_at(link).st_size == 3);
        CHECK(S_ISREG(look_at(link).st_mode));
    }
    // Below the named target, too.
    fs::create_directories(bundle.host() / "tree/sub");
    write_text(bundle.host() / "tree/secret", "new");
    fs::create_directories(bundle.rootfs() / "data/tree");
    fs::create_symlink(vault.secret(), bundle.rootfs() / "data/tree/secret");
    fs::create_symlink(vault.path(), bundle.rootfs() / "data/tree/sub");
    WITHSTANDS("cp",
               is_refused(cp(bundle, {bundle.host() / "tree", inside(bundle, "/data")}), "'sub' is there already"));
    fs::remove(bundle.rootfs() / "data/tree/sub");
    check_copied(cp(bundle, {bundle.host() / "tree", inside(bundle, "/data")}));
    CHECK(read_text(bundle.rootfs() / "data/tree/secret") == "new");
    WITHSTANDS("what lies beside", vault.untouched());
}

TEST_CASE("CVE-2018-15664: a link on cp's way leads to nothing but the container's own files") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    Bundle bundle;
    const Vault vault(bundle);
    const Container container(waiting(bundle), As::running);
    write_text(bundle.host() / "file", "new");
    const std::string up = "../../../../../../../../../..";
    for (const std::string& target : {vault.path().string(), up + vault.path().string()}) {
        CAPTURE(target);
        const fs::path twin = bundle.rootfs() / vault.path().relative_path();
        fs::remove_all(bundle.rootfs() / vault.path().relative_path().begin()->string());
        fs::remove(bundle.rootfs() / "data/link");
        fs::create_symlink(target, bundle.rootfs() / "data/link");
        WITHSTANDS(
            "cp", is_refused(cp(bundle, {bundle.host() / "file", inside(bundle, "/data/link/new")}), "does not exist"));
        WITHSTANDS("cp", is_refused(cp(bundle, {inside(bundle, "/data/link/secret"), "-"}), "does not exist"));
        // The same place in the container's root is what it stands for.
        fs::create_directories(twin);
        write_text(twin / "secret", "the container's");
        check_copied(cp(bundle, {bundle.host() / "file", inside(bundle, "/data/link/new")}));
        CHECK(read_text(twin / "new") == "new");
        CHECK(cp(bundle, {inside(bundle, "/data/link/secret"), "-"}).out == "the container's");
        CHECK(cp(bundle, {inside(bundle, "/data/../../../../../" + vault.path().string() + "/secret"), "-"}).out ==
              "the container's");
    }
    WITHSTANDS("what lies beside", vault.untouched());
}

TEST_CASE("CVE-2018-15664: a source of cp that is a link gives the container's file, never the host's") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    Bundle bundle;
    const Vault vault(bundle);
    const Container container(waiting(bundle), As::running);
    fs::create_symlink(vault.secret(), bundle.rootfs() / "data/link");
    WITHSTANDS("cp", is_refused(cp(bundle, {inside(bundle, "/data/link"), bundle.host() / "out"}), "does not exist"));
    CHECK_FALSE(fs::exists(fs::symlink_status(bundle.host() / "out")));
    write_text(bundle.rootfs() / "etc/own", "the container's");
    fs::create_symlink("/etc/own", bundle.rootfs() / "data/own");
    check_copied(cp(bundle, {inside(bundle, "/data/own"), bundle.host() / "out"}));
    CHECK(S_ISREG(look_at(bundle.host() / "out").st_mode));
    CHECK(read_text(bundle.host() / "out") == "the container's");
}

TEST_CASE("CVE-2026-41567: cp refuses the links of /proc that lead to other roots and files") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    // A process of the host that the container sees, and that the payload's user may look into.
    Bundle bundle;
    const Vault vault(bundle);
    bundle.drop_namespace("pid");
    bundle.config["process"]["user"] = {{"uid", kNobodySpecial}, {"gid", kNobodySpecial}};
    bundle.config["process"].erase("capabilities");
    const Process victim({"sleep", "1000"}, {.uid = kNobodySpecial, .directory = vault.path()});
    const Container container(waiting(bundle), As::running);
    write_text(bundle.host() / "file", "new");
    const std::string pid = std::to_string(victim.pid());
    for (const std::string& path :
         {"/proc/" + pid + "/root" + vault.path().string(), "/proc/" + pid + "/cwd",
          "/proc/self/root" + vault.path().string(), "/proc/1/root" + vault.path().string()}) {
        CAPTURE(path);
        const Ended out = cp(bundle, {inside(bundle, path + "/secret"), "-"});
        CHECK(out.status == 1);
        CHECK(out.out.empty());
        CHECK(cp(bundle, {bundle.host() / "file", inside(bundle, path + "/new")}).status == 1);
    }
    WITHSTANDS("cp", is_refused(cp(bundle, {inside(bundle, "/proc/" + pid + "/cwd/secret"), "-"}), "ELOOP"));
    WITHSTANDS("cp", is_refused(cp(bundle, {inside(bundle, "/proc/" + pid + "/fd/0"), "-"}), "(E"));
    WITHSTANDS("what lies beside", vault.untouched());
}

TEST_CASE("CVE-2018-15664, CVE-2026-42306: directories are exchanged for links while cp works") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    Bundle bundle;
    const Vault vault(bundle);
    const Container container(waiting(bundle), As::running);
    const fs::path tree = bundle.rootfs() / "data/tree";
    fs::create_directories(tree / "swapped");
    write_text(tree / "swapped/secret", "the container's");
    fs::create_symlink(vault.path(), bundle.rootfs() / "data/link");
    write_text(bundle.host() / "file", "new");
    const Exchanger exchanger(tree / "swapped", bundle.rootfs() / "data/link");
    int copied = 0;
    int refused = 0;
    for (Rounds rounds(60); rounds.go_on();) {
        const Ended file = cp(bundle, {inside(bundle, "/data/tree/swapped/secret"), "-"});
        CHECK(file.out == (file.status == 0 ? "the container's" : ""));
        ++(file.status == 0 ? copied : refused);
        cp(bundle, {bundle.host() / "file", inside(bundle, "/data/tree/swapped/new")});
        const fs::path out = bundle.host() / "out";
        cp(bundle, {inside(bundle, "/data/tree"), out});
        if (fs::is_symlink(out / "swapped")) CHECK_MESSAGE(false, "a link that leads out was copied");
        else if (fs::exists(out / "swapped/secret")) CHECK(read_text(out / "swapped/secret") == "the container's");
        fs::remove_all(out);
    }
    if (!testing::slow_machine()) {
        CHECK(copied > 0);
        CHECK(refused > 0);
    }
    WITHSTANDS("what lies beside", vault.untouched());
}

TEST_CASE("CVE-2026-42306: cp finds links in a directory that container and host share") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    Bundle bundle;
    const Vault vault(bundle);
    const fs::path shared = bundle.host() / "shared";
    fs::create_directories(shared / "tree");
    bundle.bind(shared, "/data");
    const Container container(waiting(bundle), As::running);
    write_text(bundle.rootfs() / "tmp/file", "new");
    fs::create_directories(bundle.rootfs() / "tmp/tree/sub");
    write_text(bundle.rootfs() / "tmp/tree/secret", "new");
    write_text(bundle.rootfs() / "tmp/tree/sub/secret", "new");
    fs::create_symlink(vault.secret(), shared / "file");
    fs::create_symlink(vault.path(), shared / "directory");
    fs::create_symlink(vault.secret(), shared / "tree/secret");
    fs::create_symlink(vault.path(), shared / "tree/sub");
    // As a source on the host.
    WITHSTANDS("cp", is_refused(cp(bundle, {shared / "file", inside(bundle, "/tmp/leaked")}), "is a symbolic link"));
    WITHSTANDS("cp",
               is_refused(cp(bundle, {shared / "directory", inside(bundle, "/tmp/leaked")}), "is a symbolic link"));
    CHECK_FALSE(fs::exists(bundle.rootfs() / "tmp/leaked"));
    check_copied(cp(bundle, {shared / "tree", inside(bundle, "/tmp/links")}));
    CHECK(fs::is_symlink(bundle.rootfs() / "tmp/links/secret"));
    CHECK(fs::is_symlink(bundle.rootfs() / "tmp/links/sub"));
    // As a target on the host.
    WITHSTANDS("cp", is_refused(cp(bundle, {inside(bundle, "/tmp/file"), shared / "file"}), "is a symbolic link"));
    WITHSTANDS("cp", is_refused(cp(bundle, {inside(bundle, "/tmp/file"), shared / "directory"}), "is a symbolic link"));
    WITHSTANDS("cp",
               is_refused(cp(bundle, {inside(bundle, "/tmp/tree/."), shared / "tree"}), "'sub' is there already"));
    WITHSTANDS("what lies beside", vault.untouched());
    // Only where the caller says so.
    check_copied(cp(bundle, {inside(bundle, "/tmp/file"), (shared / "directory").string() + "/"}));
    CHECK(read_text(vault.path() / "file") == "new");
}

TEST_CASE("CVE-2026-42306: a directory of the host is exchanged for a link while cp copies into it") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    Bundle bundle;
    const Vault vault(bundle);
    const fs::path shared = bundle.host() / "shared";
    fs::create_directories(shared / "directory");
    fs::create_symlink(vault.path(), shared / "link");
    const Container container(waiting(bundle), As::running);
    write_text(bundle.rootfs() / "tmp/file", "new");
    const Exchanger exchanger(shared / "directory", shared / "link");
    int refused = 0;
    for (Rounds rounds(100); rounds.go_on();)
        refused += is_refused(cp(bundle, {inside(bundle, "/tmp/file"), shared / "directory"}), "symbolic link") ? 1 : 0;
    if (!testing::slow_machine()) CHECK(refused > 0);
    WITHSTANDS("what lies beside", vault.untouched());
}

TEST_CASE("CVE-2018-15664: files are exchanged for fifos and devices while cp works") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    Bundle bundle;
    const Container container(waiting(bundle), As::running);
    const fs::path data = bundle.rootfs() / "data";
    write_text(data / "file", "the container's");
    REQUIRE(::mkfifo((data / "fifo").c_str(), 0666) == 0);
    REQUIRE(::mknod((data / "zero").c_str(), S_IFCHR | 0666, makedev(1, 5)) == 0);
    for (const char* other : {"fifo", "zero"}) {
        const Exchanger exchanger(data / "file", data / other);
        bool whole = true;
        for (Rounds rounds(40); whole && rounds.go_on();) {
            const Ended ended = cp(bundle, {inside(bundle, "/data/file"), "-"});
            whole = ended.status == 0 ? ended.out == "the container's" : is_refused(ended, "") && ended.out.empty();
            CHECK_MESSAGE(whole, ended.err);
        }
        WITHSTANDS(std::string("a file that is now a ") + other, whole);
    }
}

TEST_CASE("CVE-2019-14271: cp runs and loads nothing that it finds in a container") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    Bundle bundle;
    // What a copying program looks for in its root, if it is one that calls others, or knows users by name.
    for (const char* name : {"bin/tar", "bin/sh", "bin/docker-untar", "usr/bin/tar", "sbin/modprobe",
                             "lib/x86_64-linux-gnu/libnss_files.so.2", "lib/x86_64-linux-gnu/libc.so.6",
                             "usr/lib/locale/locale-archive"}) {
        fs::create_directories((bundle.rootfs() / name).parent_path());
        fs::copy_file(bundle.rootfs() / "probe", bundle.rootfs() / name);
    }
    write_text(bundle.rootfs() / "etc/nsswitch.conf", "passwd: files evil\n");
    write_text(bundle.rootfs() / "etc/ld.so.preload", "/lib/x86_64-linux-gnu/libc.so.6\n");
    const Container container(waiting(bundle), As::running);
    write_text(bundle.host() / "file", "new");
    // With the libraries of a build that is not static.
    const std::multiset<std::string> own = code_used_by(bundle, {"--version"});
    CHECK(own.count(runtime_command()[0]) == 1);
    WITHSTANDS("cp in", code_used_by(bundle, {"cp", bundle.host() / "file", inside(bundle, "/data/in")}) == own);
    WITHSTANDS("cp out", code_used_by(bundle, {"cp", inside(bundle, "/data/in"), bundle.host() / "out"}) == own);
    CHECK(read_text(bundle.host() / "out") == "new");
}

TEST_CASE("judge0 CVE-2024-28185, CVE-2024-28189: results behind links that a job has planted are not followed") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    Bundle bundle;
    const Vault vault(bundle);
    const fs::path out = bundle.host() / "out";
    fs::create_directories(out);
    std::vector<std::string> targets = links_to(vault.secret());
    for (const std::string& link : links_to(vault.path())) targets.push_back(link);
    targets.insert(targets.end(), {"/proc/self/root" + vault.secret().string(), "/proc/1/root" + vault.path().string(),
                                   "/proc/self/exe", "/proc/self/cwd/..", "result", "/etc/shadow"});
    struct Row {
        const char* link;
        const char* result;
    };
    const Row rows[] = {{"result", "result"},  {"tree/result", "tree/result"}, {"tree/result", "tree/../tree/result"},
                        {"way", "way/secret"}, {"tree/result", "tree"},        {"tree/deep/result", "tree/."}};
    for (const std::string& target : sampled(targets)) {
        for (const Row& row : rows) {
            INFO(std::string(row.link), " -> ", target, ", and ", std::string(row.result), " is wanted");
            const Ended ended =
                run_job(bundle, {{"--copy-out", std::string("/workspace/") + row.result + ":" + (out / "it").string()},
                                 {"sh", "-c", "mkdir -p tree/deep; ln -s '" + target + "' " + row.link},
                                 {}});
            CAPTURE(ended.err);
            WITHSTANDS("a result that is a link", vault.untouched() && is_harmless(out));
            CHECK((ended.err.find("--copy-out") != std::string::npos || target == "result"));
            fs::remove_all(out / "it");
        }
    }
}

TEST_CASE("judge0 CVE-2024-28185, CVE-2024-28189: links that a job plants where its results go") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    Bundle bundle;
    const Vault vault(bundle);
    const fs::path shared = bundle.host() / "shared";
    fs::create_directories(shared);
    fs::permissions(shared, fs::perms(0777));
    const std::string bound = shared.string() + ":/shared";
    for (const fs::path& target : {vault.secret(), vault.path(), vault.path() / "new"}) {
        for (const std::string name : {"copy", "result.json"}) {
            INFO(name, " -> ", target.string());
            fs::remove_all(shared / name);
            const Ended ended =
                run_job(bundle, {{"--bind", bound, "--result", shared / "result.json", "--copy-out",
                                  "/workspace/file:" + (shared / "copy").string()},
                                 {"sh", "-c", "echo mine > file; rm -f /shared/$0; ln -s $1 /shared/$0", name, target},
                                 {}});
            CAPTURE(ended.err);
            WITHSTANDS("a link in the place of " + name, vault.untouched());
            CHECK(fs::symlink_status(shared / name).type() != fs::file_type::not_found);
        }
    }
    // A link that is there before.
    for (const std::string name : {"copy", "result.json"}) {
        plant(shared / name, vault.secret());
        run_job(bundle,
                {{"--result", shared / "result.json", "--copy-out", "/workspace/file:" + (shared / "copy").string()},
                 {"sh", "-c", "echo mine > file"},
                 {}});
        WITHSTANDS("a link that is there before", vault.untouched());
        fs::remove(shared / name);
    }
}

}  // namespace pinfold::integration
