// Mounts: every kind of source, where destinations may lie, the order, and what a user sees of each.
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>

#include "harness.hpp"

using namespace pinfold::integration;

TEST_CASE("mounts: directories and files are bound, missing destinations are made") {
    NEEDS_ROOT();
    Bundle bundle;
    write_text(bundle.host() / "file", "from the host");
    bundle.bind(bundle.host(), "/new/deep/directory").bind(bundle.host() / "file", "/other/new/file");
    const Outcome outcome = run_probe(bundle, {{"read", "/new/deep/directory/file"},
                                               {"read", "/other/new/file"},
                                               {"create", "/new/deep/directory/made", "inside"},
                                               {"stat", "/other/new/file"}});
    CHECK(outcome.answer(0)["text"] == "from the host");
    CHECK(outcome.answer(1)["text"] == "from the host");
    CHECK(outcome.answer(2)["ok"] == true);
    CHECK(outcome.answer(3)["type"] == "file");
    CHECK(read_text(bundle.host() / "made") == "inside");
}

TEST_CASE("mounts: a relative source is relative to the bundle") {
    NEEDS_ROOT();
    Bundle bundle;
    write_text(bundle.rootfs() / "etc/here", "relative");
    bundle.bind("rootfs/etc", "/data");
    CHECK(run_probe(bundle, {{"read", "/data/here"}}).answer()["text"] == "relative");
    bundle.drop_mount("/data").bind("./rootfs/../rootfs/etc/here", "/data/file");
    CHECK(run_probe(bundle, {{"read", "/data/file"}}).answer()["text"] == "relative");
}

TEST_CASE("mounts: a missing source is named") {
    NEEDS_ROOT();
    Bundle bundle;
    bundle.bind(bundle.host() / "not-there", "/data");
    const Outcome outcome = run(bundle);
    CHECK(outcome.status == 1);
    CHECK(outcome.says("not-there"));
}

TEST_CASE("mounts: an unknown file system is named") {
    NEEDS_ROOT();
    Bundle bundle;
    bundle.mount("/data", "nosuchfs", "none", {});
    const Outcome outcome = run(bundle);
    CHECK(outcome.status == 1);
    CHECK((outcome.says("nosuchfs") || outcome.says("/data")));
}

TEST_CASE("mounts: bind leaves mounts below the source out, rbind takes them along") {
    NEEDS_ROOT();
    Bundle bundle;
    fs::create_directories(bundle.host() / "below");
    const MountGuard below("below", bundle.host() / "below", "tmpfs", 0);
    write_text(bundle.host() / "below/file", "x");
    bundle.bind(bundle.host(), "/plain").bind(bundle.host(), "/all", {"rbind"});
    const Outcome outcome = run_probe(bundle, {{"list", "/plain/below"}, {"list", "/all/below"}});
    CHECK(outcome.answer(0)["names"] == json::array());
    CHECK(outcome.answer(1)["names"] == json({"file"}));
}

TEST_CASE("mounts: ro holds for one mount, rro for all below it") {
    NEEDS_ROOT();
    Bundle bundle;
    fs::create_directories(bundle.host() / "below");
    const MountGuard below("below", bundle.host() / "below", "tmpfs", 0);
    bundle.bind(bundle.host(), "/one", {"rbind", "ro"}).bind(bundle.host(), "/all", {"rbind", "rro"});
    const Outcome outcome = run_probe(bundle, {{"create", "/one/file", "x"},
                                               {"create", "/one/below/file", "x"},
                                               {"create", "/all/file", "x"},
                                               {"create", "/all/below/other", "x"}});
    CHECK(outcome.answer(0)["errno"] == "EROFS");
    CHECK(outcome.answer(1)["ok"] == true);
    CHECK(outcome.answer(2)["errno"] == "EROFS");
    CHECK(outcome.answer(3)["errno"] == "EROFS");
}

TEST_CASE("mounts: what nodev, noexec and nosymfollow forbid is forbidden") {
    NEEDS_ROOT();
    Bundle bundle;
    REQUIRE(::mknod((bundle.host() / "zero").c_str(), S_IFCHR | 0666, makedev(1, 5)) == 0);
    fs::copy_file(bundle.rootfs() / "probe", bundle.host() / "program");
    fs::create_symlink("zero", bundle.host() / "link");
    bundle.bind(bundle.host(), "/plain")
        .bind(bundle.host(), "/nodev", {"nodev"})
        .bind(bundle.host(), "/noexec", {"noexec"});
    bundle.bind(bundle.host(), "/nosymfollow", {"nosymfollow"});
    const Outcome outcome = run_probe(bundle, {{"open", "/plain/zero", "ro"},
                                               {"exec", "/plain/program", "exit", "5"},
                                               {"open", "/nodev/zero", "ro"},
                                               {"exec", "/noexec/program", "exit", "5"},
                                               {"open", "/plain/link", "ro"},
                                               {"open", "/nosymfollow/link", "ro"}});
    CHECK(outcome.answer(0)["ok"] == true);
    CHECK(outcome.answer(1)["code"] == 5);
    CHECK(outcome.answer(2)["errno"] == "EACCES");
    CHECK(outcome.answer(3)["code"] == 127);
    CHECK(outcome.answer(4)["ok"] == true);
    CHECK(outcome.answer(5)["errno"] == "ELOOP");
}

TEST_CASE("mounts: options of one mount appear on that mount") {
    NEEDS_ROOT();
    Bundle bundle;
    const std::vector<std::string> flags = {"ro", "nosuid", "nodev", "noexec", "noatime", "nodiratime", "relatime"};
    for (const std::string& flag : flags) {
        bundle.bind(bundle.host(), "/bind-" + flag, {flag});
        bundle.mount("/tmpfs-" + flag, "tmpfs", "tmpfs", {flag});
    }
    bundle.mount("/strict", "tmpfs", "tmpfs", {"strictatime"});
    bundle.mount("/lazy", "tmpfs", "tmpfs", {"lazytime"});
    bundle.mount("/undone", "tmpfs", "tmpfs", {"ro", "nosuid", "nodev", "noexec", "rw", "suid", "dev", "exec"});
    const json report = report_of(bundle);
    for (const std::string& flag : flags) {
        CAPTURE(flag);
        CHECK(has(mount_at(report, "/bind-" + flag)["options"], flag));
        CHECK(has(mount_at(report, "/tmpfs-" + flag)["options"], flag));
    }
    CHECK_FALSE(has(mount_at(report, "/strict")["options"], "relatime"));
    const json lazy = mount_at(report, "/lazy");
    CHECK((has(lazy["super"], "lazytime") || has(lazy["options"], "lazytime")));
    // The last word wins.
    CHECK(mount_at(report, "/undone")["options"] == json({"rw", "relatime"}));
}

TEST_CASE("mounts: a bind keeps flags that the source has") {
    NEEDS_ROOT();
    Bundle bundle;
    fs::create_directories(bundle.host() / "flagged");
    const MountGuard flagged("flagged", bundle.host() / "flagged", "tmpfs", MS_NODEV | MS_NOEXEC);
    bundle.bind(bundle.host() / "flagged", "/data", {"ro"});
    const json options = mount_at(report_of(bundle), "/data")["options"];
    CHECK(has(options, "ro"));
    CHECK(has(options, "nodev"));
    CHECK(has(options, "noexec"));
}

TEST_CASE("mounts: tmpfs takes size and mode, and is empty") {
    NEEDS_ROOT();
    Bundle bundle;
    write_text(bundle.rootfs() / "data/below", "x");
    bundle.mount("/data", "tmpfs", "name", {"size=1m", "mode=1750", "nr_inodes=32"});
    const Outcome outcome = run_probe(bundle, {{"statfs", "/data"}, {"stat", "/data"}, {"list", "/data"}, {"report"}});
    CHECK(outcome.answer(0)["bytes"] == 1 << 20);
    CHECK(outcome.answer(1)["mode"] == "1750");
    CHECK(outcome.answer(2)["names"] == json::array());
    CHECK(mount_at(outcome.answer(3), "/data")["source"] == "name");
}

TEST_CASE("mounts: tmpcopyup brings the directory's files along") {
    NEEDS_ROOT();
    Bundle bundle;
    fs::create_directories(bundle.rootfs() / "data/sub");
    write_text(bundle.rootfs() / "data/file", "one");
    write_text(bundle.rootfs() / "data/sub/file", "two");
    fs::permissions(bundle.rootfs() / "data/file", fs::perms(0640));
    fs::create_symlink("sub/file", bundle.rootfs() / "data/link");
    bundle.mount("/data", "tmpfs", "tmpfs", {"tmpcopyup"});
    const Outcome outcome = run_probe(bundle, {{"read", "/data/file"},
                                               {"read", "/data/sub/file"},
                                               {"stat", "/data/file"},
                                               {"stat", "/data/link"},
                                               {"write", "/data/file", "new"},
                                               {"statfs", "/data"}});
    CHECK(outcome.answer(0)["text"] == "one");
    CHECK(outcome.answer(1)["text"] == "two");
    CHECK(outcome.answer(2)["mode"] == "0640");
    CHECK(outcome.answer(3)["target"] == "sub/file");
    CHECK(outcome.answer(4)["ok"] == true);
    CHECK(outcome.answer(5)["type"] == 0x01021994);  // TMPFS_MAGIC
    CHECK(read_text(bundle.rootfs() / "data/file") == "one");
}

TEST_CASE("mounts: the kernel's file systems are its own instances") {
    NEEDS_ROOT();
    Bundle bundle;
    const json report = report_of(bundle);
    CHECK(mount_at(report, "/proc")["type"] == "proc");
    CHECK(mount_at(report, "/dev")["type"] == "tmpfs");
    CHECK(mount_at(report, "/dev/pts")["type"] == "devpts");
    CHECK(mount_at(report, "/dev/shm")["type"] == "tmpfs");
    CHECK(mount_at(report, "/dev/mqueue")["type"] == "mqueue");
    const json sysfs = mount_at(report, "/sys");
    CHECK(sysfs["type"] == "sysfs");
    CHECK(has(sysfs["options"], "ro"));
    CHECK(has(mount_at(report, "/dev/pts")["super"], "mode=620"));
    // Nothing else: no trace of the old root.
    std::vector<std::string> points;
    for (const json& entry : report["mounts"]) points.push_back(entry["point"]);
    for (const std::string& point : points) {
        CAPTURE(point);
        const bool known =
            point == "/" || point.rfind("/proc", 0) == 0 || point.rfind("/dev", 0) == 0 || point.rfind("/sys", 0) == 0;
        CHECK(known);
    }
}

TEST_CASE("mounts: the order of the list is the order of mounting") {
    NEEDS_ROOT();
    Bundle bundle;
    write_text(bundle.host() / "file", "x");
    fs::create_directories(bundle.rootfs() / "tmp/hidden");
    bundle.mount("/data", "tmpfs", "tmpfs", {}).bind(bundle.host(), "/data/over");  // the second lies on the first
    bundle.bind(bundle.host(), "/tmp/hidden").mount("/tmp", "tmpfs", "tmpfs", {});  // the second hides the first
    const Outcome outcome = run_probe(bundle, {{"read", "/data/over/file"}, {"list", "/tmp"}});
    CHECK(outcome.answer(0)["text"] == "x");
    CHECK(outcome.answer(1)["names"] == json::array());
}

TEST_CASE("mounts: propagation options") {
    NEEDS_ROOT();
    Bundle bundle;
    fs::create_directories(bundle.host() / "shared");
    const MountGuard shared("shared", bundle.host() / "shared", "tmpfs", 0);
    shared.set_propagation(MS_SHARED);
    for (const std::string& flag :
         std::vector<std::string>{"private", "rprivate", "slave", "rslave", "shared", "rshared", "unbindable"}) {
        CAPTURE(flag);
        // As engines do: whoever wants to share below a root has a root that is shared.
        bundle.config["linux"]["rootfsPropagation"] = flag.find("shared") != std::string::npos ? "rshared" : "rslave";
        bundle.drop_mount("/data").bind(bundle.host() / "shared", "/data", {"rbind", flag});
        const json tags = mount_at(report_of(bundle), "/data")["tags"];
        const std::string first = tags.empty() ? "" : tags[0].get<std::string>().substr(0, 6);
        if (flag.find("private") != std::string::npos) CHECK(first == "");
        else if (flag.find("slave") != std::string::npos) CHECK(first == "master");
        else CHECK(first == (flag == "unbindable" ? "unbind" : "shared"));
    }
}

TEST_CASE("mounts: what is mounted on a shared mount inside is seen outside, and goes with it") {
    NEEDS_ROOT();
    Bundle bundle;
    fs::create_directories(bundle.host() / "shared");
    const MountGuard shared("shared", bundle.host() / "shared", "tmpfs", 0);
    shared.set_propagation(MS_SHARED);
    fs::create_directories(bundle.host() / "shared/below");
    bundle.config["linux"]["rootfsPropagation"] = "shared";
    for (const char* set : {"bounding", "effective", "permitted"})
        bundle.config["process"]["capabilities"][set].push_back("CAP_SYS_ADMIN");
    bundle.bind(bundle.host() / "shared", "/data", {"rbind", "rshared"});
    const Outcome outcome = run_probe(bundle, {{"mount", "from-inside", "/data/below", "tmpfs"}});
    CHECK(outcome.answer()["ok"] == true);
    CHECK(mount_table().find("from-inside") != std::string::npos);
    CHECK(::umount((bundle.host() / "shared/below").c_str()) == 0);
}

TEST_CASE("mounts: overlay, also with a lowerdir of more than 256 characters") {
    NEEDS_ROOT();
    Bundle bundle;
    std::string lower;
    // Twenty layers: the option string is far beyond what fsconfig() takes as one string.
    for (int i = 0; i < 20; ++i) {
        const fs::path layer = bundle.host() / ("layer-" + std::to_string(i));
        fs::create_directories(layer);
        write_text(layer / ("file-" + std::to_string(i)), std::to_string(i));
        lower += (lower.empty() ? "" : ":") + layer.string();
    }
    REQUIRE(lower.size() > 256);
    for (const char* name : {"upper", "work"}) fs::create_directories(bundle.host() / name);
    bundle.mount("/data", "overlay", "overlay",
                 {"lowerdir=" + lower, "upperdir=" + (bundle.host() / "upper").string(),
                  "workdir=" + (bundle.host() / "work").string()});
    const Outcome outcome = run_probe(
        bundle, {{"read", "/data/file-0"}, {"read", "/data/file-19"}, {"create", "/data/new", "x"}, {"report"}});
    CHECK(outcome.answer(0)["text"] == "0");
    CHECK(outcome.answer(1)["text"] == "19");
    CHECK(outcome.answer(2)["ok"] == true);
    CHECK(mount_at(outcome.answer(3), "/data")["type"] == "overlay");
    CHECK(read_text(bundle.host() / "upper/new") == "x");
}

namespace {

// What an option takes away: with it the command fails so, and without it does not.
struct Taken {
    const char* option;
    Command command;  // its second word is a file of the mount
    const char* key;
    json value;
};

const std::vector<Taken>& taken_by_options() {
    static const std::vector<Taken> table = {
        {"ro", {"create", "new", "x"}, "errno", "EROFS"},
        {"rro", {"create", "new", "x"}, "errno", "EROFS"},
        {"nodev", {"open", "zero", "ro"}, "errno", "EACCES"},
        {"rnodev", {"open", "zero", "ro"}, "errno", "EACCES"},
        {"noexec", {"exec", "program", "exit", "5"}, "code", 127},
        {"rnoexec", {"exec", "program", "exit", "5"}, "code", 127},
        {"nosymfollow", {"open", "link", "ro"}, "errno", "ELOOP"},
        {"rnosymfollow", {"open", "link", "ro"}, "errno", "ELOOP"},
    };
    return table;
}

// Those that are only seen in the kernel's list, as the word without "r".
const std::vector<std::string>& listed_options() {
    static const std::vector<std::string> words = {"nosuid",   "rnosuid",    "noatime",
                                                   "rnoatime", "nodiratime", "rnodiratime"};
    return words;
}

void fill(const fs::path& directory) {
    fs::create_directories(directory);
    REQUIRE(::mknod((directory / "zero").c_str(), S_IFCHR | 0666, makedev(1, 5)) == 0);
    fs::copy_file(playground() / "probe", directory / "program");
    fs::create_symlink("zero", directory / "link");
}

// The ways to make a mount of these files.
enum class Way { bind, memory, overlay, long_overlay };

std::string layers(const fs::path& home, bool is_long) {
    std::string lower = home / "files";
    for (int i = 0; is_long && lower.size() < 300; ++i) {
        const fs::path layer = home / ("layer,-" + std::to_string(i));
        fs::create_directories(layer);
        lower += ":" + layer.string();
    }
    return lower;
}

void add_mount(Bundle& bundle, Way way, const std::string& name, std::vector<std::string> options) {
    const fs::path home = bundle.host() / name;
    const std::string place = "/" + name;
    if (way == Way::memory) {
        fill(bundle.rootfs() / name);
        options.push_back("tmpcopyup");
        bundle.mount(place, "tmpfs", "tmpfs", options);
        return;
    }
    fill(home / "files");
    if (way == Way::bind) {
        bundle.bind(home / "files", place, options);
        return;
    }
    for (const char* part : {"upper", "work"}) fs::create_directories(home / part);
    for (const std::string& option : {"lowerdir=" + layers(home, way == Way::long_overlay),
                                      "upperdir=" + (home / "upper").string(), "workdir=" + (home / "work").string()})
        options.push_back(option);
    bundle.mount(place, "overlay", "overlay", options);
}

Command in_mount(Command command, const std::string& name) {
    command[1] = "/" + name + "/" + command[1];
    return command;
}

void check_options(Way way, const std::vector<std::string>& run_options = {}) {
    Bundle bundle;
    std::vector<Command> commands;
    add_mount(bundle, way, "plain", {});
    for (const Taken& taken : taken_by_options()) {
        add_mount(bundle, way, taken.option, {taken.option});
        commands.push_back(in_mount(taken.command, taken.option));
        commands.push_back(in_mount(taken.command, "plain"));
    }
    for (const std::string& option : listed_options()) add_mount(bundle, way, option, {option});
    commands.push_back({"report"});
    const Outcome outcome = run_probe(bundle, commands, {.args = run_options});
    size_t index = 0;
    for (const Taken& taken : taken_by_options()) {
        CAPTURE(taken.option);
        CHECK(outcome.answer(index++)[taken.key] == taken.value);
        CHECK(outcome.answer(index++)[taken.key] != taken.value);
        fs::remove(bundle.host() / "plain/files/new");
        fs::remove(bundle.host() / "plain/upper/new");
    }
    for (const std::string& option : listed_options()) {
        CAPTURE(option);
        const std::string word = option.front() == 'r' ? option.substr(1) : option;
        CHECK(has(mount_at(outcome.answer(index), "/" + option)["options"], word));
    }
}

}  // namespace

TEST_CASE("mounts: each option holds on a bind") {
    NEEDS_ROOT();
    check_options(Way::bind);
}

TEST_CASE("mounts: each option holds on a file system in memory that starts with files") {
    NEEDS_ROOT();
    PINFOLD_ONLY();  // others copy nothing to what is read-only
    check_options(Way::memory);
}

TEST_CASE("mounts: each option holds on an overlay") {
    NEEDS_ROOT();
    check_options(Way::overlay);
}

TEST_CASE("mounts: each option holds on an overlay whose options do not fit fsconfig") {
    NEEDS_ROOT();
    PINFOLD_ONLY();  // a comma in a name is not for all
    check_options(Way::long_overlay);
}

TEST_CASE("mounts: the receipt finds each option in place, whichever way a mount was made") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    for (const Way way : {Way::bind, Way::memory, Way::overlay, Way::long_overlay}) check_options(way, {"--strict"});
}

TEST_CASE("mounts: an overlay whose options do not fit fsconfig starts with the image's files by tmpcopyup") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    Bundle bundle;
    write_text(bundle.rootfs() / "data/of-the-image", "x");
    add_mount(bundle, Way::long_overlay, "data", {"tmpcopyup", "ro"});
    const Outcome outcome =
        run_probe(bundle, {{"read", "/data/of-the-image"}, {"create", "/data/new", "x"}, {"report"}});
    CHECK(outcome.answer(0)["text"] == "x");
    CHECK(outcome.answer(1)["errno"] == "EROFS");
    // Of the place where mount(2) has made it nothing is left.
    size_t at_root = 0;
    const json report = outcome.answer(2);
    for (const json& entry : report["mounts"]) at_root += entry["point"] == "/" ? 1 : 0;
    CHECK(at_root == 1);
}

TEST_CASE("mounts: options longer than the kernel takes are refused, not cut") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    Bundle bundle;
    std::string lower = bundle.host() / "first";
    fs::create_directories(lower);
    const fs::path layer = bundle.host() / std::string(200, 'l');
    fs::create_directories(layer);
    for (int i = 0; lower.size() < 5000; ++i) lower += ":" + layer.string();
    bundle.mount("/data", "overlay", "overlay", {"lowerdir=" + lower});
    const Outcome outcome = run(bundle);
    CHECK(outcome.status == 1);
    CHECK(outcome.says("more than the kernel takes"));
    CHECK(outcome.says("hint: "));
}

TEST_CASE("mounts: a source may be longer than fsconfig takes") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    Bundle bundle;
    const std::string name(300, 'n');
    bundle.mount("/data", "tmpfs", name, {"size=1m", "nosuid"});
    const json mount = mount_at(report_of(bundle), "/data");
    CHECK(mount["source"] == name);
    CHECK(has(mount["options"], "nosuid"));
}

TEST_CASE("mounts: what cannot be done for a mount is refused") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    Bundle bundle;
    const auto refuses = [&](const std::string& words) {
        const Outcome outcome = run(bundle);
        CHECK(outcome.status == 1);
        CHECK_MESSAGE(outcome.says(words), outcome.err);
        bundle.drop_mount("/data");
    };
    bundle.bind(bundle.host(), "/data", {"tmpcopyup"});
    refuses("mounts[6].options: tmpcopyup needs a new file system");
    bundle.mount("/data", "tmpfs", "tmpfs", {"idmap"});
    refuses("mounts[6].options: ids can be mapped for bind mounts only");
}

TEST_CASE("mounts: the host's root can be bound, and is the host's") {
    NEEDS_ROOT();
    Bundle bundle;
    write_text(bundle.host() / "file", "of the host");
    write_text(bundle.rootfs() / "of-the-image", "x");
    bundle.bind("/", "/all", {"rbind", "rro", "rslave"}).bind("/", "/one", {"bind", "ro"});
    const std::string below = "/all" + (bundle.host() / "file").string();
    const Outcome outcome = run_probe(bundle, {{"read", below},
                                               {"read", "/all/of-the-image"},
                                               {"read", "/one/of-the-image"},
                                               {"create", "/all" + bundle.host().string() + "/new", "x"}});
    CHECK(outcome.answer(0)["text"] == "of the host");
    CHECK(outcome.answer(1)["errno"] == "ENOENT");
    CHECK(outcome.answer(2)["errno"] == "ENOENT");
    CHECK(outcome.answer(3)["errno"] == "EROFS");
}

// While the container's root lay over "/", ".." of a directory there led into it.
TEST_CASE("mounts: sources that lead through the host's root are the host's") {
    NEEDS_ROOT();
    Bundle bundle;
    write_text(bundle.host() / "file", "of the host");
    const fs::path decoy = bundle.rootfs() / bundle.host().relative_path();
    fs::create_directories(decoy);
    write_text(decoy / "file", "of the image");
    fs::create_directories(bundle.path().parent_path() / "empty");
    const std::string source = "/proc/.." + bundle.host().string();
    const std::string climbing = "../../../../../../../../.." + bundle.host().string();
    fs::create_symlink(climbing, bundle.path().parent_path() / "link");
    bundle.bind(source, "/data").bind(bundle.path().parent_path() / "link", "/by-link");
    bundle.mount("/overlay", "overlay", "overlay",
                 {"lowerdir=" + source + ":" + (bundle.path().parent_path() / "empty").string()});
    bundle.bind(source + "/file", "/a-file");
    const Outcome outcome = run_probe(
        bundle, {{"read", "/data/file"}, {"read", "/by-link/file"}, {"read", "/overlay/file"}, {"read", "/a-file"}});
    for (size_t i = 0; i < 4; ++i) {
        CAPTURE(i);
        CHECK(outcome.answer(i)["text"] == "of the host");
    }
}

TEST_CASE("mounts: there may be more than the caller may open files") {
    NEEDS_ROOT();
    if (pinfold::testing::slow_machine()) SKIP_TEST("takes minutes on an emulated machine");
    Bundle bundle;
    write_text(bundle.host() / "file", "x");
    constexpr int kMany = 1100;
    for (int i = 0; i < kMany; ++i) bundle.bind(bundle.host() / "file", "/data/" + std::to_string(i));
    bundle.config["process"].erase("rlimits");
    bundle.probe_each({{"read", "/data/" + std::to_string(kMany - 1)}, {"report"}});
    bundle.write_config();
    std::string command = "ulimit -Sn 1024; exec";
    for (const std::string& word : bundle.command_line({})) command += " '" + word + "'";
    const Ended ended = run_program({"/bin/sh", "-c", command});
    const Outcome outcome{ended.status, ended.out, ended.err};
    CHECK(outcome.answer(0)["text"] == "x");
    CHECK(outcome.answer(1)["rlimits"]["RLIMIT_NOFILE"][0] == 1024);
}

TEST_CASE("mounts: remount and bind may come in either order") {
    NEEDS_ROOT();
    Bundle bundle;
    bundle.bind(bundle.host(), "/data").mount("/data", "bind", "", {"remount", "bind", "ro"});
    CHECK(run_probe(bundle, {{"create", "/data/file", "x"}}).answer()["errno"] == "EROFS");
}

TEST_CASE("mounts: symbolic links in a destination stay inside the root") {
    NEEDS_ROOT();
    Bundle bundle;
    write_text(bundle.host() / "file", "x");
    // On the host this name does not exist, and must not come to exist.
    const std::string outside = "/tmp/" + bundle.id() + "-outside";
    fs::create_symlink("/data", bundle.rootfs() / "absolute");
    fs::create_symlink("../../../../../../../../tmp", bundle.rootfs() / "climbing");
    fs::create_symlink(outside, bundle.rootfs() / "dangling");
    fs::create_symlink("/usr/bin", bundle.rootfs() / "existing");  // on the host, that is
    bundle.bind(bundle.host(), "/absolute").bind(bundle.host(), "/climbing/sub").bind(bundle.host(), "/dangling");
    bundle.bind(bundle.host(), "/existing");
    const Outcome outcome = run_probe(bundle, {{"read", "/data/file"},
                                               {"read", "/tmp/sub/file"},
                                               {"read", outside + "/file"},
                                               {"read", "/usr/bin/file"},
                                               {"report"}});
    for (size_t i = 0; i < 4; ++i) CHECK(outcome.answer(i)["text"] == "x");
    CHECK(mount_at(outcome.answer(4), "/data")["point"] == "/data");
    CHECK_FALSE(fs::exists(outside));
    CHECK_FALSE(fs::exists("/tmp/sub"));
}

TEST_CASE("mounts: the source may be a symbolic link of the host") {
    NEEDS_ROOT();
    Bundle bundle;
    write_text(bundle.host() / "file", "x");
    fs::create_symlink(bundle.host() / "file", bundle.host() / "link");
    bundle.bind(bundle.host() / "link", "/etc/file");
    CHECK(run_probe(bundle, {{"read", "/etc/file"}}).answer()["text"] == "x");
}

TEST_CASE("mounts: ids of a mount are mapped by uidMappings") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    const fs::path base = idmappable_directory();
    Bundle bundle;
    const fs::path source = (base.empty() ? bundle.host() : base) / ("idmap-" + bundle.id());
    fs::create_directories(source);
    write_text(source / "file", "x");
    REQUIRE(::chown((source / "file").c_str(), 7, 7) == 0);
    const json map = json::array({{{"containerID", 0}, {"hostID", 1000}, {"size", 100}}});
    for (const std::string& option : std::vector<std::string>{"idmap", "ridmap"}) {
        CAPTURE(option);
        bundle.drop_mount("/data").bind(source, "/data", {option});
        bundle.config["mounts"].back()["uidMappings"] = map;
        bundle.config["mounts"].back()["gidMappings"] = map;
        const Outcome outcome = run_probe(bundle, {{"stat", "/data/file"}});
        if (base.empty()) {
            CHECK(outcome.status == 1);
            CHECK(outcome.says("/data"));
        } else {
            CHECK(outcome.answer()["uid"] == 1007);
            CHECK(outcome.answer()["gid"] == 1007);
        }
    }
    fs::remove_all(source);
}

TEST_CASE("mounts: idmap without mappings takes those of the user namespace") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    const fs::path base = idmappable_directory();
    Bundle bundle;
    const fs::path source = (base.empty() ? bundle.host() : base) / ("idmap-" + bundle.id());
    fs::create_directories(source);
    write_text(source / "file", "x");
    bundle.add_namespace("user");
    const json map = json::array({{{"containerID", 0}, {"hostID", 100000}, {"size", 65536}}});
    bundle.config["linux"]["uidMappings"] = map;
    bundle.config["linux"]["gidMappings"] = map;
    bundle.bind(source, "/data", {"idmap"});
    const Outcome outcome = run_probe(bundle, {{"stat", "/data/file"}});
    if (base.empty()) {
        CHECK(outcome.status == 1);
        CHECK(outcome.says("/data"));
    } else {
        CHECK(outcome.answer()["uid"] == 0);  // root's file on the host is root's file inside
    }
    fs::remove_all(source);
}

TEST_CASE("mounts: a cgroup mount shows the container's own group, read-only") {
    NEEDS_ROOT();
    if (cgroup2_mount().empty()) SKIP_TEST("no cgroup v2 on this machine");
    Bundle bundle;
    bundle.add_namespace("cgroup");
    bundle.mount("/sys/fs/cgroup", "cgroup", "cgroup", {"nosuid", "noexec", "nodev", "relatime", "ro"});
    const Outcome outcome =
        run_probe(bundle, {{"report"}, {"read", "/sys/fs/cgroup/cgroup.procs"}, {"mkdir", "/sys/fs/cgroup/new"}});
    const json mount = mount_at(outcome.answer(0), "/sys/fs/cgroup");
    CHECK(mount["type"] == "cgroup2");
    CHECK(mount["root"] == "/");
    CHECK(has(mount["options"], "ro"));
    CHECK(outcome.answer(1)["text"] == "1\n");
    CHECK(outcome.answer(2)["errno"] == "EROFS");
}
