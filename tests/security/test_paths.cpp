// Images whose directories are links: /proc, /sys, /dev, and every other place that something is put at.
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <algorithm>

#include "attacks.hpp"

namespace pinfold::integration {

namespace {

// An image in which this path is a link.
void check_link_refused(const std::string& path, const std::string& type, const std::string& destination,
                        const std::string& target) {
    Bundle bundle;
    const Vault vault(bundle);
    INFO("root: ", path, " -> ", target);
    bundle.drop_mount(destination).mount(destination, type, type, {"nosuid", "noexec", "nodev"});
    plant(bundle.rootfs() / "hop", "data");
    plant(bundle.rootfs() / path, target);
    bundle.write_config();
    const std::string before = bundle.listing();
    WITHSTANDS(type + " on a link", is_refused(run(bundle), "leads through a symlink\nhint: "));
    CHECK(bundle.listing() == before);
    CHECK(vault.untouched());
}

void check_link_refused_everywhere(const std::string& path, const std::string& type, const std::string& destination) {
    Bundle bundle;
    const Vault vault(bundle);
    const std::string name = fs::path(path).filename();
    for (const std::string& target : sampled(links_for(name, vault)))
        check_link_refused(path, type, destination, target);
}

// Nodes, links and directories of the image, for a look at where the runtime made some.
std::string devices_in(const fs::path& directory) {
    std::string out;
    for (const auto& entry : fs::recursive_directory_iterator(directory)) {
        if (fs::is_character_file(entry.symlink_status())) out += entry.path().string() + "\n";
    }
    return out;
}

// A bind on a link to this file of the vault, or on something below it, lies at that name in the container.
void check_link_stays(const std::string& name, bool directory, bool below) {
    Bundle bundle;
    const Vault vault(bundle);
    write_text(bundle.host() / "file", "x");
    fs::create_directories(bundle.host() / "directory");
    const fs::path target = (vault.path() / name).lexically_normal();
    const std::string destination = below ? "/data/link/below/it" : "/data/link";
    bundle.bind(bundle.host() / (directory ? "directory" : "file"), destination);
    for (const std::string& link : links_to(target)) {
        INFO(destination, " in ", link);
        fs::remove_all(bundle.rootfs() / vault.path().relative_path().begin()->string());
        plant(bundle.rootfs() / "data/link", link);
        fs::create_directory(bundle.rootfs() / "tmp");
        std::string place = below ? target / "below/it" : target;
        if (place.ends_with('/')) place.pop_back();
        const json report = report_of(bundle);
        WITHSTANDS("a bind on a link",
                   mount_at(report, place)["root"].get<std::string>().starts_with("/" + bundle.id()));
        WITHSTANDS("what is made for it", vault.untouched());
    }
}

}  // namespace

TEST_CASE("CVE-2019-19921, CVE-2023-27561: /proc or /sys of an image is a link") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    check_link_refused_everywhere("proc", "proc", "/proc");
    check_link_refused_everywhere("sys", "sysfs", "/sys");
}

TEST_CASE("CVE-2023-28642: a directory on the way to a proc or sysfs is a link") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    for (const char* type : {"proc", "sysfs"}) {
        check_link_refused_everywhere("one", type, "/one/two/three");
        check_link_refused_everywhere("one/two", type, "/one/two/three");
        check_link_refused_everywhere("one/two/three", type, "/one/two/three");
    }
}

TEST_CASE("CVE-2019-16884: a volume on /proc, or in it, does not get what is meant for the kernel") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    const std::vector<std::string> places = {"/proc",
                                             "/proc/self",
                                             "/proc/self/attr",
                                             "/proc/self/attr/exec",
                                             "/proc/self/attr/apparmor/exec",
                                             "/proc/thread-self/attr/exec",
                                             "/proc/self/task",
                                             "/proc/1/attr",
                                             "/proc/sys",
                                             "/proc/sys/kernel",
                                             "/proc/sys/kernel/domainname",
                                             "/proc/kcore",
                                             "/proc/./self/../self/attr",
                                             "/data/link/attr",
                                             "//proc//sys",
                                             "/data/../proc/keys"};
    for (const std::string& place : sampled(places)) {
        for (const std::string type : {"tmpfs", "bind"}) {
            Bundle bundle;
            INFO("root: ", type, " on ", place);
            const Vault vault(bundle);
            plant(bundle.rootfs() / "data/link", "/proc/self");
            struct stat info {};
            const bool directory = ::stat(place.c_str(), &info) != 0 || S_ISDIR(info.st_mode);
            if (type == "tmpfs") bundle.mount(place, type, type, {});
            else bundle.bind(directory ? vault.path() : vault.secret(), place);
            WITHSTANDS("a volume in /proc", is_refused(run(bundle), place + ": "));
            CHECK(vault.untouched());
        }
    }
    // What shows a payload other numbers than the host's is no harm, and a proc over a proc is none.
    Bundle bundle;
    const Vault vault(bundle);
    bundle.bind(vault.secret(), "/proc/meminfo", {"ro"}).mount("/proc", "proc", "proc", {});
    bundle.bind(vault.secret(), "/proc/uptime", {"ro"});
    const Outcome outcome = run_probe(bundle, {{"read", "/proc/meminfo"}, {"read", "/proc/uptime"}});
    CHECK(outcome.answer(0)["text"] != Vault::kText);
    CHECK(outcome.answer(1)["text"] == Vault::kText);
}

TEST_CASE("crun CVE-2019-18837: links of the image stay in the image, whatever is put at them") {
    NEEDS_ROOT();
    // What is there on the host, what is not, and what the same names stand for in the image.
    for (const char* name : {"", "secret", "new"}) {
        for (const bool directory : {true, false}) {
            for (const bool below : {true, false}) check_link_stays(name, directory, below);
        }
    }
}

TEST_CASE("crun CVE-2026-47766, CVE-2026-41579: /dev of an image is a link") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    std::vector<std::string> targets;
    {
        Bundle bundle;
        targets = links_for("dev", Vault(bundle));
    }
    for (const std::string& target : sampled(targets)) {
        for (const bool mounted : {true, false}) {
            Bundle bundle;
            INFO("dev -> ", target, std::string(mounted ? ", with a tmpfs" : ""));
            const Vault vault(bundle);
            for (const char* place : {"/dev/mqueue", "/dev/shm", "/dev/pts"}) bundle.drop_mount(place);
            if (!mounted) bundle.drop_mount("/dev");
            bundle.bind(vault.path(), "/data");
            plant(bundle.rootfs() / "hop", "data");
            plant(bundle.rootfs() / "dev", target);
            const Outcome outcome = run(bundle);
            WITHSTANDS("nodes at a link", is_refused(outcome, "/dev"));
            CHECK(vault.untouched());
            CHECK(devices_in(bundle.host()) == "");
        }
    }
}

TEST_CASE("devices: no directory on the way to a node, a link or a terminal is a link") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    const std::vector<json> nodes = {
        {{"path", "/dev/net/tun"}, {"type", "c"}, {"major", 1}, {"minor", 3}},
        {{"path", "/dev/net/deep/tun"}, {"type", "c"}, {"major", 1}, {"minor", 3}, {"uid", 7}, {"gid", 7}},
        {{"path", "/dev/net/fifo"}, {"type", "p"}},
        {{"path", "/net/tun"}, {"type", "c"}, {"major", 1}, {"minor", 3}},
    };
    std::vector<std::string> targets;
    {
        Bundle bundle;
        targets = links_for("net", Vault(bundle));
        targets.push_back("/data/new");
    }
    for (const json& node : sampled(nodes)) {
        for (const std::string& target : sampled(targets)) {
            Bundle bundle;
            INFO(node.dump(), " in net -> ", target);
            const Vault vault(bundle);
            for (const char* place : {"/dev/mqueue", "/dev/shm", "/dev/pts", "/dev"}) bundle.drop_mount(place);
            bundle.bind(vault.path(), "/data").bind(vault.path(), vault.path());
            bundle.config["linux"]["devices"] = {node};
            plant(bundle.rootfs() / "hop", "data");
            plant(bundle.rootfs() / "dev/hop", "../data");
            const std::string path = node["path"];
            plant(bundle.rootfs() / path.substr(1, path.find("net") + 2), target);
            WITHSTANDS("a node in a linked directory", is_refused(run(bundle), "leads through a symlink\nhint: "));
            CHECK(vault.untouched());
            CHECK(devices_in(bundle.host()) == "");
        }
    }
}

TEST_CASE("devices: nodes of the host are not bound in a linked directory, either") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    if (!fs::exists("/dev/shm")) SKIP_TEST("the host has no /dev/shm");
    Bundle bundle;
    const MountGuard shm("nodes", "/dev/shm", "tmpfs", 0);
    REQUIRE(::mknod("/dev/shm/null", S_IFCHR | 0666, makedev(1, 3)) == 0);
    for (const char* place : {"/dev/mqueue", "/dev/shm", "/dev/pts", "/dev"}) bundle.drop_mount(place);
    fs::create_directories(bundle.host() / "volume");
    bundle.bind(bundle.host() / "volume", "/data");
    bundle.config["linux"]["devices"] = {{{"path", "/dev/shm/null"}, {"type", "c"}, {"major", 1}, {"minor", 3}}};
    bundle.make_rootless(kNobodySpecial);
    RunOptions user;
    user.spawn.uid = kNobodySpecial;
    CHECK(run_probe(bundle, {{"open", "/dev/shm/null", "ro"}}, user).answer()["ok"] == true);
    plant(bundle.rootfs() / "dev/shm", "/data");
    WITHSTANDS("a bound node", is_refused(run(bundle, user), "leads through a symlink\nhint: "));
    CHECK(fs::is_empty(bundle.host() / "volume"));
}

TEST_CASE("devices: file systems below /dev are not mounted through a link") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    for (const std::string name : {"shm", "pts", "mqueue"}) {
        for (const char* target : {"/data", "/data/new", "../data"}) {
            Bundle bundle;
            INFO("dev/", name, " -> ", target);
            const Vault vault(bundle);
            bundle.drop_mount("/dev").bind(vault.path(), "/data");
            // What lies on the volume must be there before what is led to it.
            std::rotate(bundle.config["mounts"].begin(), bundle.config["mounts"].end() - 1,
                        bundle.config["mounts"].end());
            plant(bundle.rootfs() / "dev" / name, target);
            WITHSTANDS("a mount in a linked directory", is_refused(run(bundle), "leads through a symlink\nhint: "));
            CHECK(vault.untouched());
        }
    }
}

TEST_CASE("crun CVE-2025-24965: a link in place of every file that is made in an image") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    // All that a start makes or opens for writing, in an image that has nothing of it.
    const std::vector<std::string> names = {"dev/null",   "dev/zero",    "dev/full",   "dev/random", "dev/urandom",
                                            "dev/tty",    "dev/console", "dev/ptmx",   "dev/fd",     "dev/stdin",
                                            "dev/stdout", "dev/stderr",  "dev/core",   "dev/pts",    "dev/shm",
                                            "dev/mqueue", "dev/own",     "etc/bound",  "work",       "config.json",
                                            ".pinfold",   "state",       "etc/passwd", "etc/group",  "etc/hostname"};
    for (const std::string& name : sampled(names)) {
        for (const bool dangling : {true, false}) {
            Bundle bundle;
            INFO("a link at ", name);
            const Vault vault(bundle);
            write_text(bundle.host() / "source", "x");
            bundle.drop_mount("/dev/mqueue").drop_mount("/dev/shm").drop_mount("/dev/pts").drop_mount("/dev");
            bundle.bind(bundle.host() / "source", "/etc/bound");
            bundle.config["process"]["cwd"] = "/work";
            bundle.config["linux"]["devices"] = {{{"path", "/dev/own"}, {"type", "p"}, {"uid", 7}, {"gid", 7}}};
            // Where the host and the container see the same file by the same name.
            fs::create_directories(bundle.rootfs() / vault.path().relative_path());
            bundle.bind(vault.path(), vault.path());
            plant(bundle.rootfs() / name, dangling ? vault.path() / "new" : vault.secret());
            const Outcome outcome = run(bundle);
            CHECK((outcome.status == 0 || is_refused(outcome, "")));
            // To bind over a link, or to make a directory, is to do so at what it leads to, which is a volume here.
            const bool followed = dangling && (name == "etc/bound" || name == "work");
            if (followed) fs::remove_all(vault.path() / "new");
            WITHSTANDS("a link at " + name, vault.untouched());
        }
    }
}

TEST_CASE("root: what is mounted over the host's own root is no way back to it") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    Bundle bundle;
    const Vault vault(bundle);
    bundle.probe_each({{"read", "/.." + vault.secret().string()}, {"list", "/.."}}).write_config();
    const std::vector<std::string> run = bundle.verb({"run", "--bundle", bundle.path(), bundle.id()});
    for (const char* cover : {"mount -t tmpfs one /", "mount -t tmpfs one / && mount -t tmpfs two /"}) {
        std::vector<std::string> line = {
            "/usr/bin/unshare", "--mount", "/bin/sh", "-c", std::string(cover) + " && exec \"$@\"", "sh"};
        line.insert(line.end(), run.begin(), run.end());
        const Ended ended = run_program(line);
        REQUIRE_MESSAGE(ended.status == 0, ended.err);
        const bool told = ended.out.find(Vault::kText) != std::string::npos;
        WITHSTANDS("the root's parent: " + ended.out, !told && ended.out.find("\"probe\"") != std::string::npos);
    }
}

}  // namespace pinfold::integration
