// Masked and read-only paths, sysctls, and host names: what is laid over the container's kernel files.
#include "harness.hpp"

using namespace pinfold::integration;

TEST_CASE("masked: a file reads as empty and swallows writes, a directory is empty") {
    NEEDS_ROOT();
    Bundle bundle;
    write_text(bundle.rootfs() / "data/secret", "secret");
    fs::create_directories(bundle.rootfs() / "data/vault");
    write_text(bundle.rootfs() / "data/vault/secret", "secret");
    bundle.config["linux"]["maskedPaths"] = {"/data/secret", "/data/vault", "/not/there", "/proc/keys"};
    const Outcome outcome = run_probe(bundle, {{"read", "/data/secret"},
                                               {"write", "/data/secret", "gone"},
                                               {"list", "/data/vault"},
                                               {"create", "/data/vault/new", "x"},
                                               {"read", "/proc/keys"},
                                               {"stat", "/not"}});
    CHECK(outcome.answer(0)["text"] == "");
    CHECK(outcome.answer(2)["names"] == json::array());
    CHECK(outcome.answer(3)["errno"] == "EROFS");
    CHECK(outcome.answer(4)["text"] == "");
    CHECK(outcome.answer(5)["errno"] == "ENOENT");  // ignored, not made
    CHECK(read_text(bundle.rootfs() / "data/secret") == "secret");
    CHECK(read_text(bundle.rootfs() / "data/vault/secret") == "secret");
}

TEST_CASE("masked: a symbolic link to a masked place opens nothing") {
    NEEDS_ROOT();
    Bundle bundle;
    write_text(bundle.rootfs() / "data/secret", "secret");
    fs::create_symlink("/data/secret", bundle.rootfs() / "link");
    bundle.config["linux"]["maskedPaths"] = {"/data/secret"};
    CHECK(run_probe(bundle, {{"read", "/link"}}).answer()["text"] == "");
}

TEST_CASE("readonly paths: neither file nor directory can be written") {
    NEEDS_ROOT();
    Bundle bundle;
    write_text(bundle.rootfs() / "data/file", "x");
    fs::create_directories(bundle.rootfs() / "data/directory");
    bundle.config["linux"]["readonlyPaths"] = {"/data/file", "/data/directory", "/not/there", "/proc/sys"};
    const Outcome outcome = run_probe(bundle, {{"write", "/data/file", "y"},
                                               {"create", "/data/directory/new", "y"},
                                               {"read", "/data/file"},
                                               {"write", "/proc/sys/kernel/domainname", "y"},
                                               {"create", "/data/new", "y"},
                                               {"report"}});
    CHECK(outcome.answer(0)["errno"] == "EROFS");
    CHECK(outcome.answer(1)["errno"] == "EROFS");
    CHECK(outcome.answer(2)["text"] == "x");
    CHECK(outcome.answer(3)["errno"] == "EROFS");
    CHECK(outcome.answer(4)["ok"] == true);
    const json options = mount_at(outcome.answer(5), "/proc/sys")["options"];
    CHECK(has(options, "ro"));
}

TEST_CASE("readonly paths: other flags of the place stay") {
    NEEDS_ROOT();
    Bundle bundle;
    bundle.mount("/data", "tmpfs", "tmpfs", {"nosuid", "nodev", "noexec"});
    bundle.config["linux"]["readonlyPaths"] = {"/data"};
    const json options = mount_at(report_of(bundle), "/data")["options"];
    for (const std::string& flag : std::vector<std::string>{"ro", "nosuid", "nodev", "noexec"}) {
        CAPTURE(flag);
        CHECK(has(options, flag));
    }
}

TEST_CASE("sysctl: set in the container's namespaces alone") {
    NEEDS_ROOT();
    Bundle bundle;
    const std::string before =
        read_text("/proc/sys/kernel/shm_rmid_forced") + read_text("/proc/sys/net/ipv4/ip_forward");
    bundle.config["linux"]["sysctl"] = {{"kernel.shm_rmid_forced", "1"},
                                        {"net.ipv4.ip_forward", "1"},
                                        {"net.ipv4.ping_group_range", "5 6"},
                                        {"fs.mqueue.msg_max", "11"}};
    const Outcome outcome = run_probe(bundle, {{"read", "/proc/sys/kernel/shm_rmid_forced"},
                                               {"read", "/proc/sys/net/ipv4/ip_forward"},
                                               {"read", "/proc/sys/net/ipv4/ping_group_range"},
                                               {"read", "/proc/sys/fs/mqueue/msg_max"},
                                               {"write", "/proc/sys/net/ipv4/ip_forward", "0"}});
    CHECK(outcome.answer(0)["text"] == "1\n");
    CHECK(outcome.answer(1)["text"] == "1\n");
    CHECK(outcome.answer(2)["text"] == "5\t6\n");
    CHECK(outcome.answer(3)["text"] == "11\n");
    CHECK(outcome.answer(4)["errno"] == "EROFS");  // /proc/sys is read-only afterwards
    CHECK(read_text("/proc/sys/kernel/shm_rmid_forced") + read_text("/proc/sys/net/ipv4/ip_forward") == before);
}

TEST_CASE("sysctl: what belongs to the host is refused") {
    NEEDS_ROOT();
    const std::string panic = read_text("/proc/sys/kernel/panic");
    {
        Bundle bundle;
        bundle.config["linux"]["sysctl"] = {{"kernel.panic", "17"}};
        const Outcome outcome = run(bundle);
        CHECK(outcome.status == 1);
        CHECK(outcome.says("kernel.panic"));
    }
    {
        Bundle bundle;
        bundle.drop_namespace("network").drop_mount("/sys");
        bundle.config["linux"]["sysctl"] = {{"net.ipv4.ip_forward", "1"}};
        const Outcome outcome = run(bundle);
        CHECK(outcome.status == 1);
        CHECK(outcome.says("net.ipv4.ip_forward"));
    }
    CHECK(read_text("/proc/sys/kernel/panic") == panic);
}

TEST_CASE("sysctl: a value that the kernel refuses is an error that names the key") {
    NEEDS_ROOT();
    Bundle bundle;
    bundle.config["linux"]["sysctl"] = {{"net.ipv4.ip_forward", "certainly"}};
    const Outcome outcome = run(bundle);
    CHECK(outcome.status == 1);
    CHECK((outcome.says("net.ipv4.ip_forward") || outcome.says("net/ipv4/ip_forward")));
}

TEST_CASE("host names: set inside, untouched outside") {
    NEEDS_ROOT();
    Bundle bundle;
    const std::string before = read_text("/proc/sys/kernel/hostname");
    CHECK(report_of(bundle)["hosts"]["hostname"] == "inside");
    if (runtime() != Runtime::runc) {
        bundle.config["domainname"] = "pen.example";
        CHECK(report_of(bundle)["hosts"]["domainname"] == "pen.example");
    }
    bundle.config.erase("hostname");
    const std::string inherited = report_of(bundle)["hosts"]["hostname"];
    CHECK(inherited + "\n" == before);
    CHECK(read_text("/proc/sys/kernel/hostname") == before);
}
