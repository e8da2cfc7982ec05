// Terminals in an image whose /dev is full of links: what they lead to is neither covered, opened nor given away.
#include "attacks.hpp"
#include "cp.hpp"
#include "terminal.hpp"

namespace pinfold::integration {

namespace {

constexpr uid_t kUser = 1000;

// The container's devices come from a directory of the host, in which one name is a link.
struct Trap {
    Trap(Bundle& bundle, const Vault& vault, const std::string& name, const std::string& target, bool devpts) {
        const fs::path dev = bundle.host() / "dev";
        fs::create_directories(dev / "pts");
        for (const char* place : {"/dev/mqueue", "/dev/shm", "/dev/pts", "/dev"}) bundle.drop_mount(place);
        bundle.bind(dev, "/dev");
        plant(dev / name, target);
        if (devpts) bundle.mount("/dev/pts", "devpts", "devpts", {"newinstance", "ptmxmode=0666", "mode=0620"});
        // Where a link's target has the same name inside as outside, and can be written to.
        fs::create_directories(bundle.rootfs() / vault.path().relative_path());
        bundle.bind(vault.path(), vault.path());
        bundle.config["process"]["user"] = {{"uid", kUser}, {"gid", kUser}};
        bundle.config["process"]["terminal"] = true;
        bundle.config["linux"]["readonlyPaths"] = json::array();
    }
};

std::string settings() { return read_text("/proc/sys/kernel/core_pattern") + read_text("/proc/sys/kernel/sysrq"); }

// A terminal lies over the console and nothing else, and the console is nothing but a terminal.
bool is_plain(const json& report) {
    for (const json& mount : report["mounts"]) {
        const std::string point = mount["point"];
        const bool terminal = mount["type"] == "devpts";
        if (terminal && point != "/dev/pts" && point != "/dev/console") return false;
        if (!terminal && point == "/dev/console") return false;
    }
    return true;
}

void check_trap(const std::string& name, const std::string& target, bool devpts) {
    Bundle bundle;
    const Vault vault(bundle);
    std::string link = target;
    if (target == "SECRET") link = vault.secret();
    if (target == "NEW") link = vault.path() / "new";
    INFO("dev/", name, " -> ", link, std::string(devpts ? "" : ", without a devpts"));
    const std::string before = settings();
    const Trap trap(bundle, vault, name, link, devpts);
    const Outcome outcome = run_probe(bundle, {{"report"}, {"write", "/dev/console", "|/evil\n"}});
    const bool safe = outcome.status == 0 ? is_plain(outcome.answer(0))
                                          : is_refused(outcome, "terminal: ") || is_refused(outcome, "mounts[");
    CAPTURE(outcome.err);
    WITHSTANDS("a terminal", safe && vault.untouched() && settings() == before);
}

const std::vector<std::string> kTargets = {
    "SECRET", "NEW",    "/proc/sys/kernel/core_pattern", "/proc/sysrq-trigger", "/proc/self/fd/0", "/probe",
    "/",      "console"};

}  // namespace

TEST_CASE("CVE-2025-52565: /dev/console, or what leads to the terminals, is a link") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    for (const char* name : {"console", "ptmx", "tty", "pts"}) {
        for (const std::string& target : sampled(kTargets)) check_trap(name, target, true);
    }
}

TEST_CASE("crun CVE-2026-88264, CVE-2026-88265: links in place of terminals and of null are not given away") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    const std::vector<std::string> names = {"pts/ptmx", "pts/0", "pts/1", "console", "null", "stdin", "stdout"};
    for (const std::string& name : sampled(names)) {
        for (const char* target : {"SECRET", "NEW", "/proc/sys/kernel/core_pattern"}) check_trap(name, target, false);
    }
    // Without a terminal the standard streams are all there is to give away.
    for (const char* name : {"null", "stdin", "stdout", "stderr", "fd", "console"}) {
        Bundle bundle;
        INFO("dev/", std::string(name));
        const Vault vault(bundle);
        const Trap trap(bundle, vault, name, vault.secret(), true);
        bundle.config["process"]["terminal"] = false;
        const Outcome outcome = run_probe(bundle, {{"report"}});
        CHECK_MESSAGE(outcome.status == 0, outcome.err);
        WITHSTANDS("standard streams", vault.untouched());
    }
}

TEST_CASE("crun CVE-2026-88264: exec opens its terminal past the links that a container has planted") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    for (const char* name : {"pts", "ptmx", "console", "tty"}) {
        for (const std::string& target : sampled(kTargets)) {
            Bundle bundle;
            const Vault vault(bundle);
            const std::string link = target == "SECRET" ? vault.secret()
                                     : target == "NEW"  ? vault.path() / "new"
                                                        : fs::path(target);
            INFO("dev/", std::string(name), " -> ", link);
            const bool devpts = name != std::string("pts");
            const Trap trap(bundle, vault, name, link, devpts);
            bundle.config["process"]["terminal"] = false;
            const Container container(waiting(bundle), Container::As::running);
            const Terminal terminal(24, 80);
            const SpawnOptions typed{.fds = {{0, terminal.slave()}}};
            const Ended ended = container.exec({"--tty", "--user", "1000"}, {"/probe", "stat", "/"}, typed);
            CAPTURE(ended.err);
            const bool safe = devpts ? ended.status == 0 : is_refused(ended, "/dev/pts in the container");
            WITHSTANDS("exec --tty", safe && vault.untouched());
        }
    }
}

TEST_CASE("CVE-2025-52565: a console that is exchanged for a link while the terminal is made") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    Bundle bundle;
    const Vault vault(bundle);
    const std::string before = settings();
    const Trap trap(bundle, vault, "other", "/proc/sys/kernel/core_pattern", true);
    const fs::path dev = bundle.host() / "dev";
    write_text(dev / "console", "");
    bundle.probe_each({{"report"}, {"write", "/dev/console", "|/evil\n"}});
    const Exchanger exchanger(dev / "console", dev / "other");
    bool safe = true;
    for (Rounds rounds(60); safe && rounds.go_on();) {
        const Outcome outcome = run(bundle);
        safe = (outcome.status == 0 || is_refused(outcome, "terminal: ")) && settings() == before;
        CHECK_MESSAGE(safe, outcome.err);
    }
    WITHSTANDS("a console that changes", safe && vault.untouched());
}

}  // namespace pinfold::integration
