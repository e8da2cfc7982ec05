// Namespaces: new ones, the host's, joined ones, clock offsets, the loopback interface.
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness.hpp"

using namespace pinfold::integration;

namespace {

struct Type {
    std::string type;  // the specification's word
    std::string name;  // the kernel's
};

const std::vector<Type> kTypes = {{"pid", "pid"},   {"network", "net"},   {"ipc", "ipc"},  {"uts", "uts"},
                                  {"mount", "mnt"}, {"cgroup", "cgroup"}, {"time", "time"}};

bool knows(const std::string& type) { return type != "time" || runtime() != Runtime::runc; }

std::string target(const std::string& path) { return fs::read_symlink(path); }

}  // namespace

TEST_CASE("namespaces: each listed one is new") {
    NEEDS_ROOT();
    Bundle bundle;
    for (const Type& each : kTypes) {
        if (knows(each.type)) bundle.add_namespace(each.type);
    }
    const json report = report_of(bundle);
    for (const Type& each : kTypes) {
        if (!knows(each.type)) continue;
        CAPTURE(each.type);
        CHECK(report["namespaces"][each.name] != own_namespace(each.name));
    }
    CHECK(report["namespaces"]["user"] == own_namespace("user"));
    CHECK(report["process"]["pid"] == 1);
    CHECK(report["process"]["ppid"] == 0);
}

TEST_CASE("namespaces: what is not listed is the host's") {
    NEEDS_ROOT();
    Bundle bundle;
    for (const Type& each : kTypes) {
        if (each.type != "mount") bundle.drop_namespace(each.type);
    }
    bundle.config.erase("hostname");
    const json report = report_of(bundle);
    for (const Type& each : kTypes) {
        CAPTURE(each.type);
        CHECK((report["namespaces"][each.name] == own_namespace(each.name)) == (each.type != "mount"));
    }
}

TEST_CASE("namespaces: joined by path") {
    NEEDS_ROOT();
    Bundle bundle;
    std::vector<std::string> options = {"--net", "--ipc", "--uts", "--cgroup", "--pid", "--fork"};
    if (runtime() != Runtime::runc) options.push_back("--time");
    const NamespaceHolder holder(options);
    bundle.config.erase("hostname");
    bundle.add_namespace("network", holder.path("net")).add_namespace("ipc", holder.path("ipc"));
    bundle.add_namespace("uts", holder.path("uts")).add_namespace("cgroup", holder.path("cgroup"));
    bundle.add_namespace("pid", holder.path("pid_for_children"));
    if (runtime() != Runtime::runc) bundle.add_namespace("time", holder.path("time_for_children"));
    const json report = report_of(bundle);
    for (const std::string& name : std::vector<std::string>{"net", "ipc", "uts", "cgroup"}) {
        CAPTURE(name);
        CHECK(report["namespaces"][name] == target(holder.path(name)));
    }
    CHECK(report["namespaces"]["pid"] == target(holder.path("pid_for_children")));
    if (runtime() != Runtime::runc) CHECK(report["namespaces"]["time"] == target(holder.path("time_for_children")));
    // Not ours: left as it was found.
    for (const json& interface : report["interfaces"]) {
        if (interface["name"] == "lo") CHECK(interface["up"] == false);
    }
    CHECK(report["process"]["pid"] != 1);
}

TEST_CASE("namespaces: a pid namespace whose first process has ended takes nobody, and that is said") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    const auto first = pid_t(::syscall(SYS_clone, CLONE_NEWPID | SIGCHLD, nullptr, nullptr, nullptr, 0));
    REQUIRE(first >= 0);
    if (first == 0) ::_exit(::pause());
    const UniqueFd kept(::open(("/proc/" + std::to_string(first) + "/ns/pid").c_str(), O_RDONLY | O_CLOEXEC));
    CHECK(::kill(first, SIGKILL) == 0);
    CHECK(::waitpid(first, nullptr, 0) == first);
    REQUIRE(kept);
    Bundle bundle;
    bundle.add_namespace("pid", "/proc/" + std::to_string(::getpid()) + "/fd/" + std::to_string(kept.get()));
    const Outcome outcome = run(bundle);
    CHECK(outcome.status == 1);
    CHECK_MESSAGE(outcome.says("hint: has the first process of the joined pid namespace ended?"), outcome.err);
}

TEST_CASE("namespaces: a user namespace is joined by path") {
    NEEDS_ROOT();
    Bundle bundle;
    const NamespaceHolder holder({"--user", "--map-root-user"});
    bundle.add_namespace("user", holder.path("user"));
    bundle.config["linux"].erase("resources");
    for (json& entry : bundle.config["mounts"]) {
        if (entry["type"] == "devpts") entry["options"].erase(entry["options"].size() - 1);  // gid 5 has no mapping
    }
    const json report = report_of(bundle);
    CHECK(report["namespaces"]["user"] == target(holder.path("user")));
    CHECK(report["namespaces"]["net"] != own_namespace("net"));
    CHECK(report["credentials"]["uid"] == json({0, 0, 0, 0}));
}

TEST_CASE("namespaces: a path that is no namespace, or one of another type, is refused") {
    NEEDS_ROOT();
    Bundle bundle;
    for (const std::string& path : std::vector<std::string>{"/etc/passwd", "/proc/self/ns/ipc", "/nowhere/ns"}) {
        CAPTURE(path);
        bundle.add_namespace("network", path);
        const Outcome outcome = run(bundle);
        CHECK(outcome.status == 1);
        if (runtime() == Runtime::pinfold) CHECK(outcome.says(path));
    }
}

TEST_CASE("namespaces: clocks are shifted by timeOffsets") {
    NEEDS_ROOT();
    if (runtime() == Runtime::runc) SKIP_TEST("this runc knows no time namespaces");
    Bundle bundle;
    bundle.add_namespace("time");
    bundle.config["linux"]["timeOffsets"] = {{"monotonic", {{"secs", 1000000}, {"nanosecs", 5}}},
                                             {"boottime", {{"secs", 2000000}}}};
    timespec monotonic{};
    timespec boottime{};
    ::clock_gettime(CLOCK_MONOTONIC, &monotonic);
    ::clock_gettime(CLOCK_BOOTTIME, &boottime);
    const json report = report_of(bundle);
    const long slack = patience().count() / 1000;
    CHECK(report["clocks"]["monotonic"].get<long>() - monotonic.tv_sec >= 1000000);
    CHECK(report["clocks"]["monotonic"].get<long>() - monotonic.tv_sec <= 1000000 + slack);
    CHECK(report["clocks"]["boottime"].get<long>() - boottime.tv_sec >= 2000000);
    CHECK(report["clocks"]["boottime"].get<long>() - boottime.tv_sec <= 2000000 + slack);
}

TEST_CASE("namespaces: the loopback interface of a new network is up") {
    NEEDS_ROOT();
    Bundle bundle;
    const Outcome outcome = run_probe(bundle, {{"connect-loopback"}, {"report"}});
    CHECK(outcome.answer(0)["ok"] == true);
    const json interfaces = outcome.answer(1)["interfaces"];
    for (const json& interface : interfaces) {
        if (interface["name"] == "lo") CHECK(interface["up"] == true);
        else CHECK(interface["up"] == false);  // tunnels that the kernel makes by itself
    }
}

TEST_CASE("namespaces: without a mount namespace a root is refused") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    Bundle bundle;
    bundle.drop_namespace("mount");
    // A program that the host has too: the payload must not find itself there.
    bundle.config["process"]["args"] = {"/bin/sh", "-c", "exit 0"};
    const Outcome outcome = run(bundle);
    CHECK(outcome.status == 1);
    CHECK(outcome.says("namespace"));
}

TEST_CASE("namespaces: clocks are shifted for a user without privileges") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    Bundle bundle;
    bundle.add_namespace("time");
    bundle.config["linux"]["timeOffsets"] = {{"boottime", {{"secs", 3000000}}}};
    bundle.probe({"report"}).make_rootless(kNobodySpecial);
    timespec before{};
    ::clock_gettime(CLOCK_BOOTTIME, &before);
    const json report = report_of(bundle, {.spawn = {.uid = kNobodySpecial}});
    CHECK(report["clocks"]["boottime"].get<long>() - before.tv_sec >= 3000000);
    CHECK(report["namespaces"]["user"] != own_namespace("user"));
    CHECK(report["credentials"]["uid"][0] == 0);
}

TEST_CASE("namespaces: a mount namespace that is joined is used as it is") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    Bundle bundle;
    const NamespaceHolder holder({"--mount"});
    bundle.add_namespace("mount", holder.path("mnt"));
    bundle.config["mounts"] = json::array();
    bundle.config["linux"].erase("maskedPaths");
    bundle.config["linux"].erase("readonlyPaths");
    // It shows the host's files, among which the payload has to be found.
    bundle.config["process"]["args"] = {bundle.rootfs() / "probe", "report"};
    const Outcome outcome = run(bundle);
    REQUIRE_MESSAGE(outcome.status == 0, outcome.err);
    CHECK(outcome.answer()["namespaces"]["mnt"] == target(holder.path("mnt")));
    CHECK(outcome.answer()["namespaces"]["mnt"] != own_namespace("mnt"));
}

namespace {

// In a network namespace of its own, which stands for the host's: makes a pair of devices, runs pinfold, and prints
// what has become of them.
Ended run_beside_devices(const Bundle& bundle, const std::string& global = "") {
    std::string run;
    for (const std::string& word : bundle.verb({"run", "--bundle", bundle.path().string(), bundle.id()}))
        run += " " + word + (run.empty() ? " " + global : "");
    const std::string script =
        "ip link add pf0 mtu 1400 type veth peer name pf1"
        " && ip addr add 10.9.8.7/24 dev pf0 && ip addr add fd09::7/64 dev pf0 nodad"
        " && ip link set pf0 up && ip link set pf1 up;" +
        run + "; status=$?; ip -br addr show >&2; exit $status";
    return run_program({"/usr/bin/unshare", "-n", "/bin/sh", "-c", script}, {});
}

json interface(const json& report, const std::string& name) {
    for (const json& one : report["interfaces"]) {
        if (one["name"] == name) return one;
    }
    return nullptr;
}

}  // namespace

TEST_CASE("network: devices of the host become the container's, with name, addresses and size") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    Bundle bundle;
    bundle.config["linux"]["netDevices"] = {{"pf0", {{"name", "eth7"}}}};
    bundle.probe({"report"}).write_config();
    const Ended ended = run_beside_devices(bundle);
    REQUIRE_MESSAGE(ended.status == 0, ended.err);
    const json device = interface(json::parse(ended.out), "eth7");
    REQUIRE(device.is_object());
    CHECK(device["up"] == true);
    CHECK(device["mtu"] == 1400);
    CHECK(has(device["addresses"], "10.9.8.7"));
    CHECK(has(device["addresses"], "fd09::7"));
    CHECK(ended.err.find("pf0") == std::string::npos);
}

TEST_CASE("network: --dry-run tells when devices are moved") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    Bundle bundle;
    bundle.config["linux"]["netDevices"] = {{"pf0", {{"name", "eth7"}}}};
    bundle.config["process"]["oomScoreAdj"] = 500;
    bundle.probe({"exit", "0"}).write_config();
    const auto is_in_order = [](const std::string& text) {
        const size_t score = text.find("oom_score_adj"), devices = text.find("network devices");
        return score < devices && devices != std::string::npos;
    };
    const Ended ended = run_beside_devices(bundle, "--debug");
    REQUIRE_MESSAGE(ended.status == 0, ended.err);
    CHECK(is_in_order(ended.err));
    CHECK(is_in_order(run(bundle, {.args = {"--dry-run"}}).out));
}

TEST_CASE("network: a container that cannot start gives devices back as they were") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    Bundle bundle;
    bundle.config["linux"]["netDevices"] = {{"pf0", {{"name", "eth7"}}}};
    bundle.config["process"]["args"] = {"/does-not-exist"};
    bundle.write_config();
    const Ended ended = run_beside_devices(bundle);
    CHECK(ended.status == 1);
    CHECK(ended.err.find("pf0@pf1") != std::string::npos);
    CHECK(ended.err.find("10.9.8.7/24 fd09::7/64") != std::string::npos);
}

TEST_CASE("network: devices that are not there or cannot be moved") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    const std::vector<std::pair<json, std::string>> table = {
        {{{"pf9", json::object()}}, "linux.netDevices.pf9: the host has no network device 'pf9'"},
        {{{"lo", {{"name", "eth0"}}}}, "linux.netDevices.lo: a loopback device cannot be moved"},
        {{{"pf0", {{"name", "lo"}}}}, "linux.netDevices.pf0: a device 'lo' is already there"},
    };
    for (const auto& entry : table) {
        CAPTURE(entry.second);
        Bundle bundle;
        bundle.config["linux"]["netDevices"] = entry.first;
        bundle.probe({"report"}).write_config();
        const Ended ended = run_beside_devices(bundle);
        CHECK(ended.status == 1);
        CHECK(ended.err.find(entry.second) != std::string::npos);
        CHECK(ended.err.find("pf0@pf1") != std::string::npos);
    }
}
