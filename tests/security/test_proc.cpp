// Masks and settings: they land on the kernel's own files, or nothing starts.
#include <fcntl.h>

#include <algorithm>

#include "attacks.hpp"

namespace pinfold::integration {

namespace {

// A directory of the host with which the container brings its own devices along.
fs::path own_dev(Bundle& bundle) {
    const fs::path dev = bundle.host() / "dev";
    fs::create_directories(dev / "pts");
    for (const char* place : {"/dev/mqueue", "/dev/shm", "/dev/pts", "/dev"}) bundle.drop_mount(place);
    bundle.bind(dev, "/dev");
    return dev;
}

std::string host_settings() {
    std::string text;
    for (const char* name : {"kernel/core_pattern", "kernel/hostname", "kernel/domainname", "kernel/shm_rmid_forced",
                             "net/ipv4/ip_forward", "kernel/sysrq"}) {
        text += read_text(fs::path("/proc/sys") / name);
    }
    return text;
}

// No part of /proc or of the image lies where a mask should be.
bool is_masked(const json& report, const std::string& point) {
    const json mount = mount_at(report, point);
    return mount["root"] == "/null" || mount["root"] == "/dev/null" || mount["type"] == "tmpfs";
}

void check_fake_null(const std::string& target) {
    Bundle bundle;
    INFO("null -> ", target);
    const Vault vault(bundle);
    const std::string before = host_settings();
    const fs::path dev = own_dev(bundle);
    fs::create_directories(bundle.rootfs() / vault.path().relative_path());
    bundle.bind(vault.path(), vault.path());
    plant(dev / "null", target);
    bundle.config["linux"]["readonlyPaths"] = json::array();
    const Outcome outcome = run_probe(bundle, {{"read", "/proc/keys"},
                                               {"write", "/proc/keys", "|/evil"},
                                               {"write", "/proc/timer_list", "|/evil"},
                                               {"report"}});
    if (outcome.status == 0) {
        WITHSTANDS("a fake null in a masked file's place", outcome.answer(0)["text"] == json(""));
        WITHSTANDS("a fake null in a masked file's place", is_masked(outcome.answer(3), "/proc/keys"));
    } else {
        WITHSTANDS("a fake null", is_refused(outcome, ""));
    }
    WITHSTANDS("a fake null that leads to a setting", host_settings() == before);
    WITHSTANDS("a fake null that leads to a file", vault.untouched() && !vault.is_told_in(outcome));
}

}  // namespace

TEST_CASE("CVE-2025-31133, youki CVE-2025-62161: the container's own /dev/null is not what masks") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    std::vector<std::string> targets = {"/proc/sys/kernel/core_pattern",
                                        "/proc/sysrq-trigger",
                                        "/proc/self/mem",
                                        "../proc/sys/kernel/core_pattern",
                                        "/nowhere",
                                        "null",
                                        "/",
                                        "/proc/keys",
                                        "/proc/self/fd/0"};
    {
        Bundle bundle;
        for (const std::string& link : links_to(Vault(bundle).secret())) targets.push_back(link);
    }
    for (const std::string& target : sampled(targets)) check_fake_null(target);
}

TEST_CASE("CVE-2025-31133: a /dev/null that is another one each time it is looked at") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    Bundle bundle;
    const Vault vault(bundle);
    const std::string before = host_settings();
    const fs::path dev = own_dev(bundle);
    write_text(dev / "null", "");
    plant(dev / "other", "/proc/sys/kernel/core_pattern");
    bundle.config["linux"]["readonlyPaths"] = json::array();
    bundle.probe_each({{"write", "/proc/keys", "|/evil"}, {"report"}});
    const Exchanger exchanger(dev / "null", dev / "other");
    for (Rounds rounds(100); rounds.go_on();) {
        const Outcome outcome = run(bundle);
        CHECK((outcome.status == 0 && is_masked(outcome.answer(1), "/proc/keys")));
    }
    WITHSTANDS("a null that changes", host_settings() == before);
}

TEST_CASE("CVE-2025-52881, youki CVE-2025-62596: what is meant for a sysctl goes nowhere else") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    const std::vector<std::string> places = {"/proc/sys/net/ipv4/ip_forward", "/proc/sys/net/ipv4", "/proc/sys/net",
                                             "/proc/sys", "/proc"};
    const std::vector<std::string> sources = {"/proc/sys/kernel/core_pattern", "/proc/sysrq-trigger",
                                              "/proc/sys/kernel", "/proc/sys"};
    const std::string before = host_settings();
    for (const std::string& place : places) {
        for (const std::string& source : sampled(sources)) {
            Bundle bundle;
            INFO("root: ", source, " on ", place);
            bundle.config["linux"]["sysctl"] = {{"net.ipv4.ip_forward", "1"}};
            bundle.bind(source, place, {"rbind"});
            const Outcome outcome = run(bundle);
            WITHSTANDS("a file of /proc over another", is_refused(outcome, place) && host_settings() == before);
        }
    }
}

TEST_CASE("CVE-2025-52881: sysctls reach the kernel whatever the image has at /proc") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    const std::string before = host_settings();
    Bundle bundle;
    const Vault vault(bundle);
    // An image with a /proc of its own making, which no proc covers; the real one is elsewhere.
    bundle.drop_mount("/proc").mount("/real", "proc", "proc", {});
    bundle.config["linux"]["maskedPaths"] = json::array();
    bundle.config["linux"]["readonlyPaths"] = json::array();
    bundle.config["linux"]["sysctl"] = {{"net.ipv4.ip_forward", "1"}, {"kernel.shm_rmid_forced", "1"}};
    fs::create_directories(bundle.rootfs() / "proc/sys/kernel");
    fs::create_directories(bundle.rootfs() / vault.path().relative_path());
    bundle.bind(vault.path(), vault.path());
    plant(bundle.rootfs() / "proc/sys/net", vault.path());
    plant(bundle.rootfs() / "proc/sys/kernel/shm_rmid_forced", vault.secret());
    plant(bundle.rootfs() / "proc/self", vault.path());
    const Outcome outcome =
        run_probe(bundle, {{"read", "/real/sys/net/ipv4/ip_forward"}, {"read", "/real/sys/kernel/shm_rmid_forced"}});
    WITHSTANDS("links in an image's /proc/sys", outcome.answer(0)["text"] == "1\n");
    WITHSTANDS("links in an image's /proc/sys", outcome.answer(1)["text"] == "1\n");
    CHECK(vault.untouched());
    CHECK(host_settings() == before);
}

TEST_CASE("crun CVE-2026-115521: mounts become read-only whatever the image has at /proc/self/fd") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    Bundle bundle;
    const Vault vault(bundle);
    fs::create_directories(bundle.host() / "tree/below");
    const MountGuard below("below", bundle.host() / "tree/below", "tmpfs", 0);
    bundle.drop_mount("/proc");
    bundle.config["linux"]["maskedPaths"] = json::array();
    bundle.config["linux"]["readonlyPaths"] = {"/etc"};
    bundle.config["root"]["readonly"] = true;
    bundle.bind(bundle.host() / "tree", "/once", {"ro"}).bind(bundle.host() / "tree", "/all", {"rbind", "rro"});
    bundle.mount("/memory", "tmpfs", "tmpfs", {"ro"});
    // Whichever number a descriptor has, its name leads to a harmless directory.
    for (const char* process : {"self", "thread-self", "1"}) {
        fs::create_directories(bundle.rootfs() / "proc" / process / "fd");
        for (int fd = 0; fd < 64; ++fd) plant(bundle.rootfs() / "proc" / process / "fd" / std::to_string(fd), "/tmp");
    }
    bundle.probe({"wait-signal"});
    const Container container(bundle, Container::As::running);
    const std::string table = read_text("/proc/" + std::to_string(container.pid()) + "/mountinfo");
    for (const char* point : {"/", "/once", "/all", "/all/below", "/memory", "/etc"}) {
        WITHSTANDS(point, table.find(std::string(" ") + point + " ro,") != std::string::npos);
    }
    for (const char* point : {"/once", "/all", "/all/below", "/memory", "/etc"}) {
        const Ended ended = container.exec({}, {"/probe", "create", std::string(point) + "/new", "x"});
        CHECK(json::parse(ended.out)["errno"] == "EROFS");
    }
}

}  // namespace pinfold::integration
