// What around pinfold forbids a start: found by the files that tell of it, and told with what helps.
#include "kernel/surroundings.hpp"

#include <cerrno>
#include <filesystem>
#include <fstream>

#include "support/temp_dir.hpp"
#include "support/testing.hpp"

using namespace pinfold;
using namespace pinfold::testing;

namespace {

// A machine's files, as far as they are looked at.
class Host {
public:
    Host& with(const std::string& path, const std::string& text) {
        const std::filesystem::path file = tree_.file(path);
        std::filesystem::create_directories(file.parent_path());
        std::ofstream(file) << text;
        return *this;
    }
    // As a normal user sees it: who runs the tests may be root.
    Surroundings look() const {
        Surroundings around = look_around(tree_.path());
        around.is_privileged = false;
        return around;
    }
    Error explain(int code, const std::string& what) const { return explain_start(errno_error(code, what), look()); }

private:
    TempDir tree_;
};

constexpr const char* kSwitch = "proc/sys/kernel/apparmor_restrict_unprivileged_userns";
constexpr const char* kLabel = "proc/self/attr/current";

bool has(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("surroundings: AppArmor's restriction of user namespaces is known by its switch, with the remedy") {
    Host host;
    host.with(kSwitch, "1\n").with(kLabel, "unconfined\n");
    for (const int code : {EPERM, EACCES}) {
        for (const char* step : {"clone3", "id maps: write uid_map", "mounts[0] /proc: mount proc", "hostname"}) {
            const Error error = host.explain(code, step);
            CAPTURE(error.message);
            CHECK(has(error.message, "kernel.apparmor_restrict_unprivileged_userns is 1"));
            CHECK(has(error.hint, "/apparmor /etc/apparmor.d/pinfold && sudo apparmor_parser --replace"));
        }
    }
    CHECK(host.explain(ENOENT, "clone3").hint.empty());
}

TEST_CASE("surroundings: AppArmor is not blamed where it is not to blame") {
    CHECK_FALSE(Host().with(kSwitch, "0\n").with(kLabel, "unconfined\n").look().apparmor_restricts);
    CHECK_FALSE(Host().with(kLabel, "unconfined\n").look().apparmor_restricts);
    // The shipped profile: it is named, and confines nothing.
    Host profiled;
    profiled.with(kSwitch, "1\n").with(kLabel, "pinfold (unconfined)\n");
    CHECK_FALSE(profiled.look().apparmor_restricts);
    CHECK(profiled.explain(EPERM, "clone3").hint.empty());
    Surroundings of_root = Host().with(kSwitch, "1\n").with(kLabel, "unconfined\n").look();
    of_root.is_privileged = true;
    CHECK(explain_start(errno_error(EPERM, "clone3"), of_root).hint.empty());
}

TEST_CASE("surroundings: a filter is told with what the engine around takes") {
    const std::string status = "Name:\tpinfold\nSeccomp:\t2\n";
    const auto hint = [&](const char* marker) {
        Host host;
        if (*marker != '\0') host.with(marker, "");
        return host.with("proc/self/status", status).explain(ENOSYS, "clone3").hint;
    };
    CHECK(has(hint(".dockerenv"), "docker run --security-opt seccomp=unconfined"));
    CHECK(has(hint("run/.containerenv"), "podman run --security-opt seccomp=unconfined"));
    CHECK(has(hint("run/secrets/kubernetes.io/token"), "seccompProfile: {type: Unconfined}"));
    CHECK(has(hint(""), "RestrictNamespaces="));
}

TEST_CASE("surroundings: a program that may not be executed is not the filter's doing") {
    Host host;
    host.with("proc/self/status", "Name:\tpinfold\nSeccomp:\t2\n");
    CHECK(host.explain(EACCES, "executable: /etc/plain").hint.empty());
}

TEST_CASE("surroundings: masks over /proc are named") {
    Host host;
    host.with(".dockerenv", "")
        .with("proc/self/mountinfo",
              "23 1 0:20 / /proc rw - proc proc rw\n24 23 0:21 / /proc/acpi ro - tmpfs tmpfs ro\n");
    const Error error = host.explain(EPERM, "mounts[1] /proc: mount proc");
    CHECK(has(error.message, "parts of /proc are masked around pinfold (/proc/acpi)"));
    CHECK(has(error.hint, "docker run --security-opt systempaths=unconfined"));
    host.with("proc/self/status", "Name:\tpinfold\nSeccomp:\t2\n");
    CHECK(
        has(host.explain(EPERM, "mounts[1] /proc: mount proc").hint, "seccomp=unconfined --security-opt systempaths"));
}

TEST_CASE("surroundings: masks over /proc are no reason for other mounts to fail") {
    Host host;
    host.with("proc/self/mountinfo", "24 23 0:21 / /proc/acpi ro - tmpfs tmpfs ro\n");
    CHECK(host.explain(EPERM, "mounts[2] /dev: mount tmpfs").hint.empty());
}

TEST_CASE("surroundings: limits and kernels that have no namespaces") {
    CHECK(has(Host().with("proc/sys/user/max_user_namespaces", "0\n").explain(ENOSPC, "clone3").hint,
              "sysctl user.max_user_namespaces="));
    CHECK(Host().with("proc/sys/user/max_user_namespaces", "96365\n").explain(ENOSPC, "clone3").hint.empty());
    CHECK(has(Host().with("proc/sys/kernel/unprivileged_userns_clone", "0\n").explain(EPERM, "clone3").hint,
              "sysctl kernel.unprivileged_userns_clone=1"));
    const char* gvisor = "Linux version 4.4.0 #1 SMP Sun Jan 10 15:06:54 PST 2016\n";
    CHECK(has(Host().with("proc/version", gvisor).explain(ENOSYS, "clone3").hint, "--runtime runsc"));
    CHECK(has(Host().explain(ENOSYS, "clone3").hint, "Linux 5.12"));
}
