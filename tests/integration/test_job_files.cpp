// The files of a job: directories of the host's, copies, and where it works.
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "sandbox.hpp"

using namespace pinfold::integration;

namespace {

struct stat status_of(const fs::path& path) {
    struct stat info {};
    REQUIRE_MESSAGE(::lstat(path.c_str(), &info) == 0, path);
    return info;
}

bool says(const Ended& ended, const std::string& words) { return ended.err.find(words) != std::string::npos; }

}  // namespace

TEST_CASE("job files: a bound directory is the job's own inside, and its owner's outside") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    constexpr const char* kScript =
        "cat /data/secret; stat -c '%u %g' /data /data/secret; cd /data && echo new > file && mkdir dir && mv file dir";
    struct Owner {
        uid_t uid;
        gid_t gid;
    };
    for (const Owner owner :
         {Owner{0, 0}, Owner{kNobodySpecial, kNobodySpecial}, Owner{1000, 1000}, Owner{2000000, 2000000}}) {
        for (const char* user : {"1000", "0", "70:80"}) {
            CAPTURE(owner.uid);
            CAPTURE(user);
            const Bundle bundle;
            const fs::path data = bundle.host() / "data";
            fs::create_directory(data);
            write_text(data / "secret", "kept\n");
            for (const fs::path& path : {data / "secret", data}) {
                REQUIRE(::chmod(path.c_str(), path == data ? 0700 : 0600) == 0);
                REQUIRE(::chown(path.c_str(), owner.uid, owner.gid) == 0);
            }
            const Ended ended =
                run_job(bundle, {{"--user", user, "--bind", data.string() + ":/data"}, {"sh", "-c", kScript}, {}});
            CHECK_MESSAGE(ended.status == 0, ended.err);
            const std::string ids = std::string(user) == "70:80" ? "70 80\n" : std::string(user) + " " + user + "\n";
            CHECK(ended.out == "kept\n" + ids + ids);
            CHECK(read_text(data / "dir/file") == "new\n");
            for (const char* made : {"dir", "dir/file"}) {
                CHECK(status_of(data / made).st_uid == owner.uid);
                CHECK(status_of(data / made).st_gid == owner.gid);
            }
        }
    }
}

TEST_CASE("job files: what others own in a bound directory is not the job's") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    const Bundle bundle;
    const fs::path data = bundle.host() / "data";
    fs::create_directory(data);
    struct File {
        const char* name;
        uid_t owner;
        mode_t mode;
    };
    // By number the job's own, and somebody else's; what is for all is for the job, too.
    for (const File& file : {File{"same", 1000, 0600}, File{"other", 1001, 0600}, File{"open", 3000000, 0666}}) {
        write_text(data / file.name, "text\n");
        REQUIRE(::chmod((data / file.name).c_str(), file.mode) == 0);
        REQUIRE(::chown((data / file.name).c_str(), file.owner, file.owner) == 0);
    }
    const Ended ended = run_job(
        bundle, {{"--bind", data.string() + ":/data"},
                 {"sh", "-c", "cd /data; stat -c %u same other; cat same; cat other; echo more >> open; cat open"},
                 {}});
    CHECK(ended.out == "65534\n65534\ntext\nmore\n");
    CHECK(says(ended, "same: Permission denied"));
    CHECK(says(ended, "other: Permission denied"));
    const Ended readonly = run_job(
        bundle, {{"--ro-bind", data.string() + ":/data"}, {"sh", "-c", "cat /data/open; echo > /data/new"}, {}});
    CHECK(readonly.out == "text\nmore\n");
    CHECK(says(readonly, "Read-only file system"));
}

TEST_CASE("job files: the job has no group in a bound directory that its owner has not") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    const Bundle bundle;
    const fs::path accounts = bundle.host() / "passwd", data = bundle.host() / "data";
    write_text(accounts, "root:x:0:0::/root:/bin/sh\nbuilder:x:65000:650::/:/bin/sh\n");
    const MountGuard etc(accounts, "/etc/passwd", "", MS_BIND);
    fs::create_directory(data);
    struct Case {
        uid_t owner;
        gid_t group;
        bool owners;      // the group
        gid_t made{650};  // the group of what is made there
    };
    for (const Case& one : {Case{65000, 650, true}, Case{65000, 0, false}, Case{65000, 65000, false},
                            Case{0, 0, true, 0}, Case{0, 650, false, 0}, Case{65001, 65001, true, 65001}}) {
        CAPTURE(one.owner);
        CAPTURE(one.group);
        write_text(data / "secret", "secret\n");
        REQUIRE(::chown((data / "secret").c_str(), 101, one.group) == 0);
        REQUIRE(::chmod((data / "secret").c_str(), 0660) == 0);
        REQUIRE(::chown(data.c_str(), one.owner, one.group) == 0);
        const Ended ended = run_job(bundle, {{"--bind", data.string() + ":/data"},
                                             {"sh", "-c", "cd /data && touch new; stat -c %g .; cat secret"},
                                             {}});
        CHECK_MESSAGE(ended.out == (one.owners ? "1000\nsecret\n" : "65534\n"), ended.err);
        CHECK(status_of(data / "new").st_uid == one.owner);
        CHECK(status_of(data / "new").st_gid == one.made);
        fs::remove(data / "new");
    }
    // Whose groups are not known is in none that anybody has.
    REQUIRE(::chown(data.c_str(), 65001, 7) == 0);
    CHECK(run_job(bundle, {{"--bind", data.string() + ":/data"}, {"touch", "/data/new"}, {}}).status == 0);
    CHECK(status_of(data / "new").st_uid == 65001);
    CHECK(status_of(data / "new").st_gid >= 0x70000000);
}

TEST_CASE("job files: nobody inside is a user of the host's in a bound directory, whatever number an exec takes") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    for (const uid_t owner : {uid_t{0}, uid_t{1000}, kNobodySpecial}) {
        for (const bool writable : {true, false}) {
            CAPTURE(owner);
            CAPTURE(writable);
            const Bundle bundle;
            const fs::path data = bundle.host() / "data";
            fs::create_directory(data);
            for (const uid_t id : {0U, 101U, 1000U}) {
                const fs::path file = data / std::to_string(id);
                write_text(file, "secret\n");
                REQUIRE(::chown(file.c_str(), id, id) == 0);
                REQUIRE(::chmod(file.c_str(), 0660) == 0);
            }
            REQUIRE(::chown(data.c_str(), owner, owner) == 0);
            REQUIRE(::chmod(data.c_str(), 0777) == 0);
            const DetachedSandbox sandbox(bundle, {writable ? "--bind" : "--ro-bind", data.string() + ":/data"});
            for (const std::string id : {"0", "101", "65000"}) {
                CAPTURE(id);
                constexpr const char* kTry = "cat /data/*; echo more >> /data/$0; echo > /data/new; mkdir /data/newer";
                const Ended ended = sandbox.exec({"--user", id + ":" + id}, {"sh", "-c", kTry, id});
                CHECK_MESSAGE(ended.out == "", ended.err);
            }
            const Ended group = sandbox.exec({"--additional-gids", "0", "--additional-gids", "101"},
                                             {"sh", "-c", "cat /data/0 /data/101 /data/1000"});
            CHECK(group.out == (owner == 0 || owner == 1000 ? "secret\n" : ""));
            CHECK(!fs::exists(data / "new"));
            CHECK(!fs::exists(data / "newer"));
            for (const char* name : {"0", "101", "1000"}) CHECK(read_text(data / name) == "secret\n");
        }
    }
}

TEST_CASE("job files: nobody inside is a user of the host's in a root that belongs to another one than root") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    for (const uid_t owner : {uid_t{0}, kNobodySpecial}) {
        CAPTURE(owner);
        const Bundle bundle;
        const fs::path rootfs = bundle.rootfs();
        for (const uid_t id : {uid_t{0}, uid_t{101}, owner}) {
            const fs::path place = rootfs / std::to_string(id);
            fs::create_directories(place);
            write_text(place / "file", "secret\n");
            REQUIRE(::chmod((place / "file").c_str(), 0600) == 0);
            REQUIRE(::chown((place / "file").c_str(), id, id) == 0);
            REQUIRE(::chown(place.c_str(), id, id) == 0);
        }
        REQUIRE(::chown(rootfs.c_str(), owner, owner) == 0);
        const DetachedSandbox sandbox(bundle, {"--rootfs", rootfs, "--writable-root"});
        const auto reads = [&](const std::vector<std::string>& options, const std::string& path) {
            return sandbox.exec(options, {"/probe", "read", path}).out.find("secret") != std::string::npos;
        };
        const std::string own = "/" + std::to_string(owner) + "/file";
        CHECK(reads({}, own));
        CHECK(
            sandbox.exec({}, {"/probe", "create", "/" + std::to_string(owner) + "/new", "x"}).out.find("\"ok\":true") !=
            std::string::npos);
        CHECK(!reads({"--user", "0:0"}, "/0/file"));
        CHECK(!reads({"--user", "65000:65000"}, own));
        // Of an image of root's, the ids are its own.
        CHECK(reads({"--user", "101:101"}, "/101/file") == (owner == 0));
    }
}

TEST_CASE("job files: no program of another user's is made in a bound directory") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    const std::string script = "my ($fchmodat, $mknodat, $openat2) = (" + std::to_string(SYS_fchmodat) + ", " +
                               std::to_string(SYS_mknodat) + ", " + std::to_string(SYS_openat2) + ");" + R"(
use Fcntl;
sub result { print "$_[0]: ", $_[1] ? "done" : $!{EPERM} ? "refused" : "$!", "\n" }
chdir "/data";
my ($program, $new, $here) = ("program", "new", -100);
my $how = pack("QQQ", O_CREAT | O_WRONLY, 04755, 0);
open(my $file, ">", $program) or die;
result "plain", chmod 0755, $program;
result "user", chmod 04755, $program;
result "group", chmod 02755, $program;
result "descriptor", chmod 06755, $file;
result "open", sysopen(my $opened, $new, O_CREAT | O_WRONLY, 04755);
result "open plain", sysopen(my $other, "other", O_CREAT | O_WRONLY, 0755);
result "fchmodat", syscall($fchmodat, $here, $program, 04755) == 0;
result "mknodat", syscall($mknodat, $here, $new, 0106755, 0) == 0;
result "mknodat plain", syscall($mknodat, $here, $new, 0100755, 0) == 0;
result "fchmodat2", syscall(452, $here, $program, 04755, 0) == 0;
result "openat2", syscall($openat2, $here, $new, $how, 24) >= 0;
)";
    for (const bool rootless : {false, true}) {
        for (const char* profile : {"default", "build"}) {
            CAPTURE(rootless);
            Bundle bundle;
            const fs::path data = bundle.host() / "data";
            fs::create_directory(data);
            const SpawnOptions spawn = rootless ? normal_user(bundle) : SpawnOptions{};
            const Judged judged = judge_job(
                bundle, {{"--seccomp", profile, "--bind", data.string() + ":/data"}, {"perl", "-e", script}, spawn});
            CHECK(judged.result["stdout"] ==
                  "plain: done\nuser: refused\ngroup: refused\ndescriptor: refused\nopen: refused\nopen plain: "
                  "done\nfchmodat: refused\nmknodat: refused\nmknodat plain: done\nfchmodat2: Function not "
                  "implemented\nopenat2: Function not implemented\n");
            CHECK(judged.result["stderr"] == "");
            CHECK(denied_call(judged.result, "chmod") != nullptr);
            for (const fs::directory_entry& entry : fs::directory_iterator(data))
                CHECK((status_of(entry.path()).st_mode & 06000) == 0);
            // Without such a directory these bits are nobody's business.
            CHECK(run_job(bundle, {{}, {"sh", "-c", "touch f && chmod 6755 f"}, spawn}).status == 0);
        }
    }
}

// The kernel takes such a bit away from who writes by write(2), but not from who does by a mapping.
TEST_CASE(
    "job files: a directory with a program that others run with its owner's rights is not given to a job to write") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    for (const bool rootless : {false, true}) {
        CAPTURE(rootless);
        Bundle bundle;
        const fs::path data = bundle.host() / "data", program = data / "deep/er/program";
        fs::create_directories(program.parent_path());
        write_text(program, "x");
        const SpawnOptions spawn = rootless ? normal_user(bundle) : SpawnOptions{};
        const auto bind = [&](const char* option, const fs::path& what, int mode) {
            CHECK(::chmod(program.c_str(), mode_t(mode)) == 0);
            return run_job(bundle, {{option, what.string() + ":/data"}, {"echo", "it ran"}, spawn});
        };
        for (const int mode : {04755, 02775, 06711}) {
            CAPTURE(mode);
            check_refused(bind("--bind", data, mode), "'deep/er/program' is a program with a set-user-ID", 125);
            check_refused(bind("--bind", program, mode), "is a program with a set-user-ID", 125);
            CHECK(bind("--ro-bind", data, mode).out == "it ran\n");
        }
        for (const int mode : {0755, 02644, 04555}) CHECK(bind("--bind", data, mode).out == "it ran\n");
        // Capabilities are rights like those, and stay whatever the mode is.
        const uint32_t setuid[5] = {0x02000001, 1 << 7};  // VFS_CAP_REVISION_2, effective; CAP_SETUID
        REQUIRE(::setxattr(program.c_str(), "security.capability", setuid, sizeof setuid, 0) == 0);
        for (const int mode : {0755, 0555, 0644}) {
            check_refused(bind("--bind", data, mode), "'deep/er/program' is a program with a set-user-ID", 125);
            CHECK(bind("--ro-bind", data, mode).out == "it ran\n");
        }
        REQUIRE(::removexattr(program.c_str(), "security.capability") == 0);
        CHECK(bind("--bind", data, 0755).out == "it ran\n");
    }
}

TEST_CASE("job files: no depth and no mount hides a program that others run with its owner's rights") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    const Bundle bundle;
    const fs::path data = bundle.host() / "data", below = data / "below";
    fs::create_directory(data);
    const auto bind = [&] { return run_job(bundle, {{"--bind", data.string() + ":/data"}, {"echo", "it ran"}, {}}); };
    const auto add_program = [](int directory) {
        const UniqueFd file(::openat(directory, "program", O_CREAT | O_WRONLY, 0755));
        REQUIRE(file);
        REQUIRE(::fchmod(file.get(), 04755) == 0);
    };
    {
        // The directory itself is mounted so that such bits have no effect, and what is mounted below it is not.
        const MountGuard outer("tmpfs", data, "tmpfs", MS_NOSUID);
        fs::create_directory(below);
        add_program(UniqueFd(::open(data.c_str(), O_RDONLY | O_DIRECTORY)).get());
        CHECK(bind().out == "it ran\n");
        const MountGuard inner("tmpfs", below, "tmpfs", 0);
        add_program(UniqueFd(::open(below.c_str(), O_RDONLY | O_DIRECTORY)).get());
        check_refused(bind(), "'below/program' is a program with a set-user-ID", 125);
    }
    // Further down than any path can say, and below more directories than are held at a time, of which each has more
    // entries than one.
    const std::string name(250, 'd');
    UniqueFd deepest(::open(data.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)), middle;
    for (int i = 0; i < 200; ++i) {
        for (const char* beside : {"a", "z"}) REQUIRE(::mkdirat(deepest.get(), beside, 0755) == 0);
        REQUIRE(::mkdirat(deepest.get(), name.c_str(), 0755) == 0);
        deepest = UniqueFd(::openat(deepest.get(), name.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
        if (i == 10) middle = UniqueFd(::fcntl(deepest.get(), F_DUPFD_CLOEXEC, 0));
    }
    CHECK(bind().out == "it ran\n");
    add_program(deepest.get());
    check_refused(bind(), "is a program with a set-user-ID", 125);
    REQUIRE(::unlinkat(deepest.get(), "program", 0) == 0);
    for (const char* beside : {"a", "z"}) {
        const UniqueFd directory(::openat(middle.get(), beside, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
        add_program(directory.get());
        check_refused(bind(), "is a program with a set-user-ID", 125);
        REQUIRE(::unlinkat(directory.get(), "program", 0) == 0);
    }
}

TEST_CASE("job files: in a bound directory no program is given capabilities") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    const Bundle bundle;
    const fs::path data = bundle.host() / "data";
    fs::create_directory(data);
    const fs::path open_profile = bundle.host() / "open.json";
    write_text(open_profile, R"({"defaultAction": "SCMP_ACT_ALLOW"})");
    const std::string script =
        "use POSIX; chdir '/data' or die; open(F, '>', 'f') or die; my ($n, $k, $v) = ('f', "
        "'user.k', 'v'); for my $call (" +
        std::to_string(SYS_setxattr) + ", " + std::to_string(SYS_lsetxattr) +
        ") { syscall($call, $n, $k, $v, 1, 0); print $!{EOPNOTSUPP} ? 'none ' : \"$! \" }"
        "my $args = pack('QLL', 0, 0, 0); $! = 0; syscall(463, -100, $n, 0, $k, $args, 16); print "
        "$!{EOPNOTSUPP} || $!{ENOSYS} ? 'none' : \"$!\"";
    for (const char* profile : {"default", open_profile.c_str()}) {
        const Ended ended =
            run_job(bundle, {{"--seccomp", profile, "--bind", data.string() + ":/data"}, {"perl", "-e", script}, {}});
        CHECK_MESSAGE(ended.out == "none none none", ended.err);
        CHECK(::getxattr((data / "f").c_str(), "user.k", nullptr, 0) < 0);
    }
}

TEST_CASE("job files: what is bound is no disk of the job's") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    for (const bool rootless : {false, true}) {
        CAPTURE(rootless);
        Bundle bundle;
        const fs::path data = bundle.host() / "data";
        fs::create_directory(data);
        const MountGuard small("tmpfs", data, "tmpfs", 0);
        REQUIRE(::mount(nullptr, data.c_str(), nullptr, MS_REMOUNT, "size=64k") == 0);
        if (rootless) REQUIRE(::chmod(data.c_str(), 0777) == 0);
        const SpawnOptions spawn = rootless ? normal_user(bundle) : SpawnOptions{};
        const Judged judged =
            judge_job(bundle, {{"--disk", "50m", "--bind", data.string() + ":/workspace"},
                               {"sh", "-c", "dd if=/dev/zero of=f bs=1k count=200 2> /dev/null; true"},
                               spawn});
        const json disk = limit_of(judged.result, "disk_mb");
        CHECK_MESSAGE(disk["value"].get<uint64_t>() <= uint64_t{50} << 20, disk.dump());
        CHECK(disk["value"].get<uint64_t>() > 1 << 20);
        CHECK(disk["hit"] == 0);
    }
}

TEST_CASE("job files: a file that is larger than the disk is told") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    const Bundle bundle;
    const fs::path data = bundle.host() / "data";
    fs::create_directory(data);
    const Judged judged = judge_job(bundle, {{"--disk", "20m", "--bind", data.string() + ":/workspace"},
                                             {"perl", "-e", "open(F, '>', 'f'); truncate(F, 30 << 20)"},
                                             {}});
    CHECK(judged.result["signal"] == SIGXFSZ);
    CHECK(judged.result["hint"] == "no file may be larger than --disk, 20 MB");
}

TEST_CASE("job files: the working directory is one that copies go into, also if it is still to be made") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    for (const bool rootless : {false, true}) {
        CAPTURE(rootless);
        Bundle bundle;
        const std::string host = bundle.host();
        for (const char* name : {"/src", "/lib"}) {
            fs::create_directory(host + name);
            write_text(host + name + "/a", name);
        }
        write_text(host + "/f.txt", "text");
        const SpawnOptions spawn = rootless ? normal_user(bundle) : SpawnOptions{};
        const auto found = [&](std::vector<std::string> options) {
            options.insert(options.end(), {"--cwd", "p"});
            const Ended ended = run_job(bundle, {options, {"sh", "-c", "pwd; find . -type f | LC_ALL=C sort"}, spawn});
            CHECK_MESSAGE(ended.err == "", ended.err);
            return ended.out;
        };
        CHECK(found({"--copy-in", host + "/src:.", "--copy-in", host + "/lib:.", "--copy-in", host + "/f.txt:."}) ==
              "/workspace/p\n./f.txt\n./lib/a\n./src/a\n");
        CHECK(found({"--copy-in", host + "/f.txt:."}) == "/workspace/p\n./f.txt\n");
        CHECK(found({"--copy-in", host + "/src/.:."}) == "/workspace/p\n./a\n");
        CHECK(found({"--copy-in", host + "/src:sub/."}) == "/workspace/p\n./sub/src/a\n");
    }
}

TEST_CASE("job files: who is asked to end while files are copied in starts nothing") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    const Bundle bundle;
    const fs::path tree = bundle.host() / "tree";
    fs::create_directory(tree);
    for (int i = 0; i < 100; ++i) write_text(tree / std::to_string(i), "x");
    // One that has come before, and is still held back, is there when the copy begins.
    std::vector<std::string> line = {
        "perl", "-MPOSIX", "-e", "sigprocmask(SIG_BLOCK, POSIX::SigSet->new(SIGTERM)); kill TERM => $$; exec @ARGV"};
    const std::vector<std::string> job =
        job_line(bundle, {{"--copy-in", tree.string() + ":tree"}, {"echo", "it ran"}, {}});
    line.insert(line.end(), job.begin(), job.end());
    const Ended ended = run_program(line);
    CHECK(ended.out == "");
    CHECK_MESSAGE(ended.status == 125, ended.status);
    CHECK(says(ended, "the copy was interrupted by a signal"));
}

TEST_CASE("job files: where ids cannot be mapped, a bound directory is what it is for others, and a warning says so") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    const Bundle bundle;
    const fs::path place = bundle.host() / "place";
    fs::create_directory(place);
    const MountGuard memory("ramfs", place, "ramfs", 0);
    REQUIRE(::chmod(place.c_str(), 0777) == 0);
    const Ended ended = run_job(
        bundle, {{"--bind", place.string() + ":/data"}, {"sh", "-c", "stat -c %U /data; touch /data/file"}, {}});
    CHECK_MESSAGE(ended.status == 0, ended.err);
    CHECK(ended.out == "nobody\n");
    CHECK(says(ended, "--bind '" + place.string() + "': its files belong to nobody inside"));
    CHECK(says(ended, "chmod o+rwX"));
}

TEST_CASE("job files: no directory that is bound hides another one, in whatever order they are named") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    for (const bool rootless : {false, true}) {
        CAPTURE(rootless);
        Bundle bundle;
        const std::string host = bundle.host();
        for (const char* name : {"/main", "/dep", "/deeper"}) {
            fs::create_directories(host + name);
            write_text(host + name + "/file", name);
        }
        fs::create_directories(host + "/main/dep/deeper");
        fs::create_directories(host + "/dep/deeper");
        const SpawnOptions spawn = rootless ? normal_user(bundle) : SpawnOptions{};
        const auto start = [&](std::vector<std::string> options) {
            options.push_back("--receipt");
            return judge_job(
                bundle,
                {options, {"sh", "-c", "cat file dep/file dep/deeper/file; echo text | tee new dep/new"}, spawn});
        };
        const auto mounts_of = [](const Judged& judged) {
            for (const json& line : judged.result["receipt"]) {
                if (line["name"] == "mounts") return std::stoi(line["found"].get<std::string>());
            }
            return 0;
        };
        const int mounts = mounts_of(start({}));
        const std::vector<std::string> main = {"--ro-bind", host + "/main:/workspace"},
                                       dep = {"--bind", host + "/dep:/workspace/./dep/"},
                                       deeper = {"--ro-bind", host + "/deeper://workspace/x/../dep/deeper"};
        for (const auto& binds : {std::vector{main, dep, deeper}, {deeper, dep, main}, {dep, main, deeper}}) {
            std::vector<std::string> options;
            for (const auto& bind : binds) options.insert(options.end(), bind.begin(), bind.end());
            const Judged judged = start(options);
            CHECK_MESSAGE(judged.result["stdout"] == "/main/dep/deepertext\n", judged.result["stderr"]);
            CHECK(mounts_of(judged) == mounts + 2);  // and one in the place of the work directory's own
            CHECK(read_text(host + "/dep/new") == "text\n");
            CHECK(!fs::exists(host + "/main/new"));
            fs::remove(host + "/dep/new");
        }
        const Judged twice = start({"--bind", host + "/main:/data", "--ro-bind", host + "/dep:/data//x/.."});
        CHECK(twice.status == 125);
        CHECK_MESSAGE(twice.err.find("--ro-bind '" + host + "/dep': '/data' is taken by --bind '" + host + "/main'") !=
                          std::string::npos,
                      twice.err);
        CHECK(twice.err.find("hint: give each a destination of its own") != std::string::npos);
        // By a link of the root's, which is found when it is too late to choose.
        const Judged linked =
            start({"--ro-bind", host + "/main/file:/bin/cat", "--ro-bind", host + "/dep/file:/usr/bin/cat"});
        CHECK(linked.status == 125);
        CHECK_MESSAGE(linked.err.find("in place, not /usr/bin/cat") != std::string::npos, linked.err);
    }
}

TEST_CASE("job files: a mount point in a bound directory belongs to its owner, and is the job's") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    for (const bool rootless : {false, true}) {
        for (const uid_t owner : {uid_t{0}, uid_t{1000}, kNobodySpecial}) {
            if (rootless && owner != kNobodySpecial) continue;
            CAPTURE(rootless);
            CAPTURE(owner);
            Bundle bundle;
            const fs::path main = bundle.host() / "main", dep = bundle.host() / "dep", file = bundle.host() / "file";
            fs::create_directory(main);
            fs::create_directory(dep);
            write_text(file, "text\n");
            const SpawnOptions spawn = rootless ? normal_user(bundle) : SpawnOptions{};
            for (const fs::path& path : {main, dep}) {
                REQUIRE(::chown(path.c_str(), owner, owner) == 0);
                REQUIRE(::chmod(path.c_str(), 0700) == 0);
            }
            const Ended ended = run_job(
                bundle, {{"--bind", main.string() + ":/workspace", "--bind", dep.string() + ":/workspace/sub/dep",
                          "--ro-bind", file.string() + ":/workspace/conf/file"},
                         {"sh", "-c", "cat conf/file && touch sub/new sub/dep/new conf/new && stat -c %u sub conf"},
                         spawn});
            CHECK_MESSAGE(ended.out == "text\n1000\n1000\n", ended.err);
            for (const char* made : {"sub", "sub/dep", "sub/new", "conf", "conf/file"}) {
                CAPTURE(made);
                CHECK(status_of(main / made).st_uid == owner);
                CHECK(status_of(main / made).st_gid == owner);
            }
            CHECK(fs::exists(dep / "new"));
        }
    }
    const Bundle bundle;
    const std::string host = bundle.host();
    fs::create_directory(host + "/main");
    fs::create_directory(host + "/dep");
    const Ended readonly = run_job(
        bundle, {{"--ro-bind", host + "/main:/workspace", "--bind", host + "/dep:/workspace/dep"}, {"true"}, {}});
    CHECK(readonly.status == 125);
    CHECK_MESSAGE(says(readonly, "/workspace/dep: make directory dep: read-only file system"), readonly.err);
    CHECK_MESSAGE(says(readonly, "hint: make it before"), readonly.err);
}

TEST_CASE("job files: exec in a sandbox that stays has its directories, too") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    const Bundle bundle;
    const fs::path data = bundle.host() / "data";
    fs::create_directory(data);
    const DetachedSandbox sandbox(bundle, {"--bind", data.string() + ":/data"});
    const Ended ended = sandbox.exec({}, {"sh", "-c", "echo one > /data/file && chmod 4755 /data/file"});
    CHECK(says(ended, "Operation not permitted"));
    CHECK(read_text(data / "file") == "one\n");
    CHECK((status_of(data / "file").st_mode & 06000) == 0);
}

TEST_CASE("job files: what is copied in has its parents made, and relative paths begin where the job works") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    for (const bool rootless : {false, true}) {
        CAPTURE(rootless);
        Bundle bundle;
        const fs::path tree = bundle.host() / "tree";
        fs::create_directory(tree);
        write_text(tree / "file", "text\n");
        const SpawnOptions spawn = rootless ? normal_user(bundle) : SpawnOptions{};
        const auto check_finds = [&](const std::vector<std::string>& options, const std::string& path) {
            const Ended ended =
                run_job(bundle, {options, {"sh", "-c", "cat \"$1\" && stat -c %u . \"$1\"", "sh", path}, spawn});
            CHECK_MESSAGE(ended.out == "text\n1000\n1000\n", ended.err);
        };
        const std::string source = tree.string(), file = source + "/file";
        const std::string large = bundle.host() / "large", pipes = bundle.host() / "pipes";
        write_text(large, std::string(4 << 20, 'x'));
        fs::create_directory(pipes);
        REQUIRE(::mkfifo((pipes + "/pipe").c_str(), 0600) == 0);
        check_finds({"--copy-in", source + "/.:/workspace/a/b"}, "/workspace/a/b/file");
        check_finds({"--copy-in", source + ":/workspace/a/b/c"}, "/workspace/a/b/c/file");
        check_finds({"--copy-in", file + ":/tmp/a/b/other"}, "/tmp/a/b/other");
        check_finds({"--copy-in", file + ":/workspace/new/"}, "/workspace/new/file");
        check_finds({"--copy-in", source + "/.:."}, "/workspace/file");
        check_finds({"--copy-in", source + ":here"}, "/workspace/here/file");
        check_finds({"--copy-in", source + ":project", "--cwd", "project"}, "/workspace/project/project/file");
        check_finds({"--copy-in", source + "/.:.", "--cwd", "project"}, "/workspace/project/file");
        check_finds({"--copy-in", source + ":.", "--cwd", "/tmp/a/b"}, "/tmp/a/b/tree/file");
        check_finds({"--copy-in", file + ":./down/./new", "--cwd", "project"}, "down/new");
        check_finds({"--copy-in", source + ":/workspace/project", "--cwd", "/workspace/project"}, "file");
        const Ended outside = run_job(bundle, {{"--copy-in", file + ":/usr/new/file"}, {"true"}, spawn});
        CHECK(outside.status == 125);
        CHECK_MESSAGE(says(outside, "--copy-in '" + file + "'"), outside.err);
        CHECK(says(outside, "--writable-root"));
        const Ended full = run_job(bundle, {{"--disk", "1m", "--copy-in", large + ":."}, {"true"}, spawn});
        CHECK(full.status == 125);
        CHECK_MESSAGE(says(full, "hint: --disk gives the sandbox more room"), full.err);
        const Ended pipe = run_job(bundle, {{"--copy-in", pipes + "/.:."}, {"true"}, spawn});
        CHECK_MESSAGE(says(pipe, "'" + pipes + "/./pipe' is a fifo"), pipe.err);
    }
}

TEST_CASE("job files: the working directory is there, or is made where the sandbox is private, or is an error") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    for (const bool rootless : {false, true}) {
        CAPTURE(rootless);
        Bundle bundle;
        const fs::path data = bundle.host() / "data";
        fs::create_directory(data);
        const SpawnOptions spawn = rootless ? normal_user(bundle) : SpawnOptions{};
        const auto start = [&](std::vector<std::string> options, const std::string& cwd) {
            options.insert(options.end(), {"--cwd", cwd});
            return run_job(bundle, {options, {"sh", "-c", "pwd && stat -c %u . && touch file"}, spawn});
        };
        for (const char* made : {"/workspace/deep/down", "/tmp/deep/down"}) {
            const Ended ended = start({}, made);
            CHECK_MESSAGE(ended.status == 0, ended.err);
            CHECK(ended.out == std::string(made) + "\n1000\n");
        }
        CHECK(start({}, "deep/down").out == "/workspace/deep/down\n1000\n");
        CHECK(start({"--bind", data.string() + ":/data"}, "/data").out == "/data\n1000\n");
        CHECK(fs::exists(data / "file"));
        struct Wrong {
            std::vector<std::string> options;
            const char* cwd;
            const char* reason;
        };
        for (const Wrong& wrong :
             {Wrong{{}, "/none", "does not exist"}, Wrong{{}, "/workspace/../none", "does not exist"},
              Wrong{{}, "/etc/passwd", "is no directory"},
              Wrong{{"--bind", data.string() + ":/workspace/data"}, "/workspace/data/none", "does not exist"},
              Wrong{{"--bind", data.string() + ":/data", "--writable-root"}, "/data/none", "does not exist"}}) {
            CAPTURE(wrong.cwd);
            const Ended ended = start(wrong.options, wrong.cwd);
            CHECK(ended.status == 125);
            CHECK(ended.out == "");
            CHECK_MESSAGE(says(ended, std::string("--cwd: '") + wrong.cwd + "' " + wrong.reason + " inside"),
                          ended.err);
            CHECK((says(ended, "hint: bring it there, by --copy-in or --bind") ||
                   says(ended, "hint: make it first, in the")));
        }
        for (const char* destination : {"/workspace/data", "/workspace/./data/", "//workspace/x/..//data"}) {
            for (const char* cwd :
                 {"data/none", "./data//none", "/workspace//data/./none/", "/workspace/data/x/../none"}) {
                CAPTURE(destination);
                CAPTURE(cwd);
                CHECK(start({"--bind", data.string() + ":" + destination}, cwd).status == 125);
            }
        }
        CHECK(!fs::exists(data / "none"));
    }
}

TEST_CASE("job files: who names a program of their own is told how to bring it") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    for (const bool rootless : {false, true}) {
        Bundle bundle;
        const fs::path host = bundle.host();
        write_text(host / "program", "#!/bin/sh\necho here\n");
        fs::permissions(host / "program", fs::perms(0755));
        SpawnOptions spawn = rootless ? normal_user(bundle) : SpawnOptions{};
        spawn.directory = host;
        const Ended relative = run_job(bundle, {{}, {"./program"}, spawn});
        CHECK_MESSAGE(says(relative, "--copy-in ./program:./program, or the directory, by --bind .:/workspace"),
                      relative.err);
        CHECK(run_job(bundle, {{"--copy-in", "./program:./program"}, {"./program"}, spawn}).out == "here\n");
        CHECK(run_job(bundle, {{"--bind", ".:/workspace"}, {"./program"}, spawn}).out == "here\n");
        const std::string path = host / "program";
        const Ended absolute = run_job(bundle, {{}, {path}, spawn});
        CHECK_MESSAGE(says(absolute, "--copy-in " + path + ":/workspace/ -- ./program, or the directory, by --bind " +
                                         host.string()),
                      absolute.err);
        CHECK(run_job(bundle, {{"--copy-in", path + ":/workspace/"}, {"./program"}, spawn}).out == "here\n");
        CHECK(run_job(bundle, {{"--bind", host}, {path}, spawn}).out == "here\n");
        CHECK_FALSE(says(run_job(bundle, {{}, {"no-program"}, spawn}), "--bind"));
        for (const char* place : {":/usr", ":/usr/./bin/"}) {
            const Ended covered = run_job(bundle, {{"--bind", host.string() + place}, {"env"}, spawn});
            CHECK(covered.status == 127);
            CHECK_MESSAGE(says(covered, "where programs are"), covered.err);
        }
        // As that of a virtual environment, whose interpreter lies elsewhere.
        fs::create_directories(host / "venv/bin");
        fs::create_symlink(host / "program", host / "venv/bin/python3");
        fs::create_symlink("python3", host / "venv/bin/python");
        const std::string venv = (host / "venv").string() + ":/venv";
        const Ended lost = run_job(bundle, {{"--ro-bind", venv}, {"/venv/bin/python"}, spawn});
        CHECK(lost.status == 127);
        CHECK_MESSAGE(says(lost, "it is a link to " + path + ", which is not inside: show that as well, by --ro-bind " +
                                     host.string() + "\n"),
                      lost.err);
        CHECK(run_job(bundle, {{"--ro-bind", venv, "--ro-bind", host}, {"/venv/bin/python"}, spawn}).out == "here\n");
        fs::permissions(host / "program", fs::perms(0644));
        const Ended closed = run_job(bundle, {{"--copy-in", "program:program"}, {"./program"}, spawn});
        CHECK(closed.status == 126);
        CHECK_MESSAGE(says(closed, "hint: a program is a file with an x bit"), closed.err);
        write_text(host / "program", "#!/bin/sh\r\necho here\r\n");
        fs::permissions(host / "program", fs::perms(0755));
        const Ended foreign = run_job(bundle, {{"--copy-in", "program:program"}, {"./program"}, spawn});
        CHECK_MESSAGE(says(foreign, "CR LF"), foreign.err);
        const Ended missing = run_job(bundle, {{"--bind", host.string() + "/cache:/cache"}, {"true"}, spawn});
        CHECK(missing.status == 125);
        CHECK_MESSAGE(says(missing, "hint: make it first"), missing.err);
    }
}

TEST_CASE("job files: what a job has made is copied out, however it ended") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    struct End {
        std::vector<std::string> options;
        const char* script;
        const char* status;
        int code;
    };
    const std::vector<End> ends = {
        {{}, "true", "exited", 0},
        {{}, "exit 3", "exited", 3},
        {{}, "kill -KILL $$", "signaled", 137},
        {{"--timeout", brief()}, "sleep 1000", "timed_out", 124},
        {{"--memory", "64m"},
         "exec perl -e 'for (1 .. 4) { fork or do { $x = \"x\" x (24 << 20); sleep 1000 } } wait; exit 1'",
         "oom_killed",
         137},
    };
    for (const bool rootless : {false, true}) {
        for (const End& end : ends) {
            CAPTURE(rootless);
            CAPTURE(end.script);
            Bundle bundle;
            const fs::path host = bundle.host();
            const SpawnOptions spawn = rootless ? normal_user(bundle) : SpawnOptions{};
            Job job{end.options,
                    {"sh", "-c", std::string("mkdir -p /tmp/a/b; echo text | tee made > /tmp/a/b/file;") + end.script},
                    spawn};
            job.options.insert(job.options.end(), {"--copy-out", "made:" + (host / "one").string(), "--copy-out",
                                                   "/tmp/a/.:" + (host / "two").string()});
            const Judged judged = judge_job(bundle, job);
            CHECK_MESSAGE(judged.result["status"] == end.status, judged.err);
            CHECK(judged.status == end.code);
            CHECK(!judged.result.contains("copy_failures"));
            CHECK(read_text(host / "one") == "text\n");
            CHECK(read_text(host / "two/b/file") == "text\n");
            CHECK(status_of(host / "one").st_uid == (rootless ? kNobodySpecial : 0));
        }
    }
}

TEST_CASE("job files: each copy out is tried, each failure told, and the program's exit code stays") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    for (const bool rootless : {false, true}) {
        CAPTURE(rootless);
        Bundle bundle;
        const fs::path host = bundle.host();
        const SpawnOptions spawn = rootless ? normal_user(bundle) : SpawnOptions{};
        const Judged judged =
            judge_job(bundle, {{"--copy-out", "none:" + (host / "one").string(), "--copy-out",
                                "tree:" + (host / "two").string(), "--copy-out", "file:" + (host / "three").string()},
                               {"sh", "-c", "echo text > file; mkdir tree; ln -s /etc/hostname tree/link; exit 4"},
                               spawn});
        CHECK(judged.status == 4);
        CHECK(judged.result["status"] == "exited");
        CHECK(!judged.result.contains("error"));
        const json failures = judged.result["copy_failures"];
        REQUIRE(failures.size() == 2);
        CHECK(failures[0]["source"] == "none");
        CHECK(failures[0]["destination"] == (host / "one").string());
        CHECK(failures[0]["error"].get<std::string>().find("--copy-out") == 0);
        CHECK(failures[1]["source"] == "tree");
        CHECK(failures[1]["hint"].get<std::string>().find("--outward-links") != std::string::npos);
        CHECK_MESSAGE(
            judged.err.find("pinfold: sandbox: --copy-out '" + (host / "one").string() + "'") != std::string::npos,
            judged.err);
        CHECK(read_text(host / "three") == "text\n");
        CHECK(!fs::exists(host / "one"));
        CHECK(!fs::exists(host / "two"));
        const Ended linked = run_job(bundle, {{"--outward-links", "--copy-out", "tree:" + (host / "two").string()},
                                              {"sh", "-c", "mkdir tree; ln -s /etc/hostname tree/link"},
                                              spawn});
        CHECK_MESSAGE(linked.status == 0, linked.err);
        CHECK(fs::read_symlink(host / "two/link") == "/etc/hostname");
    }
}

TEST_CASE("job files: patterns stand for what the job has made, and lead in no circles") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    for (const bool rootless : {false, true}) {
        CAPTURE(rootless);
        Bundle bundle;
        const fs::path host = bundle.host();
        fs::create_directory(host / "there");
        const SpawnOptions spawn = rootless ? normal_user(bundle) : SpawnOptions{};
        const auto names_in = [](const fs::path& directory) {
            std::string names;
            for (const std::string name : {"a.xml", "b.xml", "c.txt", ".d.xml", "r[1]"}) {
                if (fs::exists(directory / name)) names += name + " ";
            }
            return names;
        };
        constexpr const char* kScript =
            "mkdir -p out/one out/two; echo a > out/one/a.xml; echo b > out/two/b.xml; touch out/one/c.txt "
            "out/one/.d.xml 'r[1]';"
            "ln -s . out/loop; ln -s / out/root; for n in 1 2 3 4 5 6 7 8 9; do ln -s .. out/one/l$n; done";
        const auto copy = [&](const std::string& pattern, const fs::path& to) {
            return judge_job(bundle, {{"--copy-out", pattern + ":" + to.string()}, {"sh", "-c", kScript}, spawn})
                .result;
        };
        CHECK(!copy("out/*/*.xml", host / "there").contains("copy_failures"));
        CHECK(names_in(host / "there") == "a.xml b.xml ");
        CHECK(read_text(host / "there/b.xml") == "b\n");
        CHECK(!copy("/workspace/out/o?e/[ac].*", host / "made").contains("copy_failures"));
        CHECK(names_in(host / "made") == "a.xml c.txt ");
        CHECK(!copy("r[1]", host / "literal").contains("copy_failures"));
        CHECK(fs::exists(host / "literal"));
        const json none = copy("out/*.xml", host / "none")["copy_failures"];
        REQUIRE(none.size() == 1);
        CHECK(none[0]["error"].get<std::string>().find("nothing matches '/workspace/out/*.xml'") != std::string::npos);
        CHECK(!fs::exists(host / "none"));
        const json links = copy("out/*/*/*/*/*/*/*/*/*", host / "links")["copy_failures"];
        CHECK(links.size() == 1);
        // A link stays one, and may not lead out.
        const json failures = copy("out/one/*", host / "partly")["copy_failures"];
        REQUIRE(failures.size() == 9);
        CHECK(failures[0]["error"].get<std::string>().find("leads out") != std::string::npos);
        CHECK(names_in(host / "partly") == "a.xml c.txt ");
        // Nor to what lies beside it on the host, out of the tree that was copied or as its own name.
        write_text(host / "there/private", "the host's");
        const Judged beside = judge_job(
            bundle,
            {{"--copy-out", "[tl]*:" + (host / "there").string()},
             {"sh", "-c", "mkdir t; ln -s ../private t/up; ln -s private l1; echo x > lx; ln -s lx l2; ln -s t l3"},
             spawn});
        std::string refused;
        for (const json& failure : beside.result["copy_failures"])
            refused += fs::path(failure["source"].get<std::string>()).filename().string() + " ";
        CHECK_MESSAGE(refused == "t l1 l3 ", beside.result.dump());
        CHECK(fs::read_symlink(host / "there/l2") == "lx");
    }
}

TEST_CASE("job files: no copy out replaces another one of the same job") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    const Bundle bundle;
    const fs::path host = bundle.host();
    constexpr const char* kScript =
        "mkdir -p a/sub b/sub; echo a | tee a/r.xml > a/sub/s.xml; echo b | tee b/r.xml > b/sub/s.xml; echo c > "
        "b/c.xml;"
        "ln -s c.xml b/l.xml; ln -s c.xml a/l.xml";
    const auto copy = [&](const std::vector<std::string>& options) {
        return judge_job(bundle, {options, {"sh", "-c", kScript}, {}}).result;
    };
    const auto check_first_kept = [&](const json& result, const fs::path& file, size_t failures) {
        REQUIRE(result.contains("copy_failures"));
        CHECK(result["copy_failures"].size() == failures);
        const std::string error = result["copy_failures"][0]["error"];
        CHECK_MESSAGE(error.find("was copied there just now") != std::string::npos, error);
        CHECK(read_text(file) == "a\n");
        CHECK(result["exit_code"] == 0);
    };
    // What was there before is replaced.
    fs::create_directory(host / "pattern");
    write_text(host / "pattern/r.xml", "older\n");
    check_first_kept(copy({"--copy-out", "*/*.xml:" + (host / "pattern").string()}), host / "pattern/r.xml", 2);
    CHECK(read_text(host / "pattern/c.xml") == "c\n");
    CHECK(fs::read_symlink(host / "pattern/l.xml") == "c.xml");
    const std::string two = host / "two", file = host / "file";
    check_first_kept(copy({"--copy-out", "a/.:" + two, "--copy-out", "b/.:" + two}), host / "two/r.xml", 1);
    check_first_kept(copy({"--copy-out", "a/sub:" + two, "--copy-out", "b/sub:" + two}), host / "two/sub/s.xml", 1);
    check_first_kept(copy({"--copy-out", "a/r.xml:" + file, "--copy-out", "b/r.xml:" + file}), file, 1);
}

TEST_CASE("job files: a target with a slash at its end is a directory") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    as_both([](const Bundle& bundle, const SpawnOptions& spawn) {
        const fs::path host = bundle.host();
        const Judged judged = judge_job(
            bundle, {{"--copy-out", "a.xml:" + (host / "files/").string(), "--copy-out",
                      "b.xml:" + (host / "files/").string(), "--copy-out", "tree:" + (host / "named/").string()},
                     {"sh", "-c", "touch a.xml b.xml; mkdir tree; touch tree/c.xml"},
                     spawn});
        CHECK_MESSAGE(!judged.result.contains("copy_failures"), judged.result.dump());
        for (const char* file : {"files/a.xml", "files/b.xml", "named/c.xml"}) CHECK(fs::is_regular_file(host / file));
    });
}

TEST_CASE("job files: a directory that one copy out has made is one for the next, too") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    const Bundle bundle;
    const std::string target = bundle.host() / "new";
    const Judged judged = judge_job(
        bundle,
        {{"--copy-out", "*.xml:" + target, "--copy-out", "log.txt:" + target}, {"touch", "a.xml", "log.txt"}, {}});
    CHECK_MESSAGE(!judged.result.contains("copy_failures"), judged.result.dump());
    CHECK(fs::exists(target + "/a.xml"));
    CHECK(fs::exists(target + "/log.txt"));
}

TEST_CASE("job files: as much comes out as the sandbox can hold") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    const Bundle bundle;
    const std::string target = bundle.host() / "great";
    const Judged judged =
        judge_job(bundle, {{"--disk", "1200m", "--copy-out", "f:" + target}, {"truncate", "-s", "1030M", "f"}, {}});
    CHECK_MESSAGE(!judged.result.contains("copy_failures"), judged.result.dump());
    CHECK(fs::file_size(target) == uintmax_t{1030} << 20);
}

TEST_CASE("job files: many matches are one copy, which a signal ends, and the result is written") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    const Bundle bundle;
    const std::string out = bundle.host() / "out", result = bundle.host() / "result.json";
    const Judged many = judge_job(
        bundle, {{"--disk", "200m", "--copy-out", "f*:" + out}, {"sh", "-c", "seq -f f%g 5000 | xargs touch"}, {}});
    CHECK(!many.result.contains("copy_failures"));
    CHECK(std::distance(fs::directory_iterator(out), {}) == 5000);
    // Each fails, and counts all the same.
    const Judged failing = judge_job(
        bundle,
        {{"--copy-out", "d*:" + out}, {"sh", "-c", "for i in $(seq 150); do mkdir d$i; mkfifo d$i/pipe; done"}, {}});
    REQUIRE(failing.result["copy_failures"].size() == 101);
    CHECK(failing.result["copy_failures"][100]["error"].get<std::string>().find("no more were tried") !=
          std::string::npos);
    CHECK(failing.err.find("91 more copies failed") != std::string::npos);
    // A reader that does not come holds up the copy, until somebody asks for its end.
    const fs::path slow = bundle.host() / "slow";
    fs::create_directory(slow);
    Process copying(bundle.verb({"sandbox", "--result", result, "--disk", "1g", "--copy-out", "f*:" + slow.string(),
                                 "--", "sh", "-c", "seq -f f%g 50000 | xargs touch"}),
                    {});
    while (fs::is_empty(slow)) ::sched_yield();
    copying.signal(SIGTERM);
    const Ended ended = copying.finish();
    CHECK(ended.status == 0);
    const json told = json::parse(read_text(result))["copy_failures"];
    REQUIRE(told.size() == 1);
    CHECK(told[0]["error"].get<std::string>().find("interrupted by a signal") != std::string::npos);
}

TEST_CASE("job files: root itself may name what is in its home, and nobody else, and by no link") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    const Bundle bundle;
    const fs::path link = bundle.host() / "link";
    const MountGuard home("tmpfs", "/root", "tmpfs", 0);
    fs::create_directories("/root/checkout/out");
    fs::create_directories("/root/.ssh");
    write_text("/root/checkout/file", "text\n");
    fs::create_symlink("/root/checkout", link);
    const auto start = [&](const std::vector<std::string>& options, const SpawnOptions& spawn = {}) {
        return run_job(bundle, {options, {"sh", "-c", "cat /data/file && cp /data/file /tmp/copy"}, spawn});
    };
    for (const std::vector<std::string>& options : std::vector<std::vector<std::string>>{
             {"--bind", "/root/checkout:/data"},
             {"--ro-bind", "/root/checkout:/data"},
             {"--bind", "/root/checkout:/data", "--copy-out", "/tmp/copy:/root/checkout/out/copy"}}) {
        const Ended ended = start(options);
        CHECK_MESSAGE(ended.out == "text\n", ended.err);
        CHECK(ended.err == "");
    }
    CHECK(read_text("/root/checkout/out/copy") == "text\n");
    CHECK(start({"--bind", ".:/data"}, {.directory = "/root/checkout"}).out == "text\n");
    const Ended copied = run_job(bundle, {{"--copy-in", "/root/checkout/file:."}, {"cat", "file"}, {}});
    CHECK_MESSAGE(copied.out == "text\n", copied.err);

    const auto check_refused = [&](const Ended& ended, const std::string& words) {
        CHECK(ended.status == 125);
        CHECK_MESSAGE(says(ended, words), ended.err);
    };
    const std::string rule = "/root/checkout is in /root (built in)",
                      hint = "hint: only root itself, bound by no policy";
    check_refused(start({"--bind", link.string() + ":/data"}), rule);
    check_refused(start({"--bind", link.string() + ":/data"}), hint);
    check_refused(start({"--bind", "/root:/data"}), "/root contains ");
    check_refused(start({"--bind", "/root/.ssh:/data"}), "/root/.ssh is in ~/.ssh (built in)");
    check_refused(start({"--bind", "/root/checkout:/data"}, {.env = {"SUDO_UID=1234"}}), hint);
    {
        const SystemPolicy policy(bundle, "{}");
        check_refused(start({"--bind", "/root/checkout:/data"}), hint);
    }
    write_text(bundle.host() / "policy.json", "{}");
    std::vector<std::string> words = job_line(bundle, {{"--bind", "/root/checkout:/data"}, {"true"}, {}});
    words.insert(words.begin() + 1, {"--policy", bundle.host() / "policy.json"});
    check_refused(run_program(words, {}), hint);
}

TEST_CASE("job files: a writable root is its user's, whoever calls") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    for (const bool rootless : {false, true}) {
        CAPTURE(rootless);
        Bundle bundle;
        const SpawnOptions spawn = rootless ? normal_user(bundle) : SpawnOptions{};
        const Ended made = run_job(
            bundle,
            {{"--writable-root"},
             {"sh", "-c", "echo text > /file && mkdir -p /opt/deep /etc/new && echo more >> /etc/passwd && cat /file"},
             spawn});
        CHECK_MESSAGE(made.out == "text\n", made.err);
        const auto files = [&] { return bundle.listing().substr(0, bundle.listing().find("state/")); };
        const std::string before = files();
        for (const char* path : {"/new", "/data/new"}) {
            const Ended laid_over = run_job(
                bundle, {{"--rootfs", bundle.rootfs(), "--writable-root"}, {"/probe", "create", path, "x"}, spawn});
            CHECK_MESSAGE(laid_over.out.find("\"ok\":true") != std::string::npos, laid_over.out << laid_over.err);
        }
        CHECK(files() == before);
        const Ended readonly = run_job(bundle, {{}, {"sh", "-c", "echo text > /file"}, spawn});
        CHECK(says(readonly, "cannot create"));
    }
}

TEST_CASE("job files: all that a job can write to counts as its disk") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    for (const bool rootless : {false, true}) {
        for (const bool writable_root : {false, true}) {
            CAPTURE(rootless);
            CAPTURE(writable_root);
            Bundle bundle;
            const SpawnOptions spawn = rootless ? normal_user(bundle) : SpawnOptions{};
            Job job{{"--disk", "16m", "--memory", "256m"},
                    {"sh", "-c",
                     "for d in /tmp /dev/shm /workspace /; do dd if=/dev/zero of=$d/x bs=64k 2>&-; done; find / -xdev "
                     "-name x -size +0; "
                     "cat /tmp/x /dev/shm/x /workspace/x $(ls /x 2>&-) | wc -c"},
                    spawn};
            if (writable_root) job.options.push_back("--writable-root");
            const Judged judged = judge_job(bundle, job);
            const std::string out = judged.result["stdout"];
            const uint64_t written = std::stoull(out.substr(out.rfind('\n', out.size() - 2) + 1));
            CHECK(written <= 16 << 20);
            CHECK(written >= 15 << 20);
            CHECK(limit_of(judged.result, "disk_mb")["value"] == 16 << 20);
        }
    }
}

TEST_CASE("job files: a work directory on a disk takes more than the job's memory, and no more than its disk") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    if (!fs::exists("/dev/loop-control")) SKIP_TEST("no loop devices on this machine");
    if (!fs::exists("/usr/sbin/mkfs.ext4")) SKIP_TEST("no mkfs.ext4 on this machine");
    Bundle bundle;
    const fs::path host = bundle.host();
    fs::create_directories(host / "scratch/data");
    const std::string place = host / "scratch";
    const Judged judged = judge_job(
        bundle,
        {{"--scratch", place, "--memory", "32m", "--disk", "128m", "--copy-out", "small:" + (host / "out").string(),
          "--bind", place + "/data:/data"},
         {"sh", "-c",
          "stat -c %u .; ls -A; echo text | tee small > /data/new; dd if=/dev/zero of=big bs=1M 2>&-; stat -c %s big"},
         {}});
    CHECK_MESSAGE(judged.result["status"] == "exited", judged.err);
    const std::string out = judged.result["stdout"];
    REQUIRE(out.starts_with("1000\n"));
    const uint64_t written = std::stoull(out.substr(5));
    CHECK(written > 64 << 20);
    CHECK(written < 128 << 20);
    CHECK(limit_of(judged.result, "disk_mb")["enforced_by"] == "ext4");
    CHECK(limit_of(judged.result, "disk_mb")["hit"] == 1);
    if (!cgroup1_mount("blkio").empty()) CHECK(judged.result["usage"]["written_bytes"] == nullptr);
    const Judged half = judge_job(
        bundle, {{"--scratch", place, "--disk", "64m"}, {"dd", "if=/dev/zero", "of=big", "bs=1M", "count=20"}, {}});
    CHECK(limit_of(half.result, "disk_mb")["hit"] == 0);
    CHECK(read_text(host / "out") == "text\n");
    CHECK(read_text(host / "scratch/data/new") == "text\n");
    const auto check_refused = [&](const std::vector<std::string>& options, const std::string& words) {
        const Ended ended = run_job(bundle, {options, {"true"}, {}});
        CHECK(ended.status == 125);
        CHECK_MESSAGE(says(ended, words), ended.err);
    };
    check_refused({"--scratch", place, "--bind", host.string() + ":/data"}, "contains it");
    check_refused({"--scratch", host / "none"}, "--scratch '" + (host / "none").string() + "'");
    check_refused({"--scratch", "/etc"}, "forbidden_paths");
    check_refused({"--scratch", "/usr"}, "programs of this machine");
    check_refused({"--scratch", place, "--disk", "100000000m"}, "reserve");
    // Nothing is left: no name, no mount, no device.
    CHECK(std::distance(fs::directory_iterator(place), fs::directory_iterator()) == 1);
    CHECK(read_text("/proc/self/mountinfo").find(place) == std::string::npos);
    {
        const DetachedSandbox sandbox(bundle, {"--scratch", place, "--disk", "64m"});
        CHECK(sandbox.exec({}, {"sh", "-c", "echo text > file; cat file; stat -f -c %T ."}).out == "text\next2/ext3\n");
    }
    SpawnOptions user = normal_user(bundle);
    const Ended unprivileged = run_job(bundle, {{"--scratch", "disk"}, {"true"}, user});
    CHECK(unprivileged.status == 125);
    CHECK_MESSAGE(says(unprivileged, "--scratch takes root"), unprivileged.err);
}
