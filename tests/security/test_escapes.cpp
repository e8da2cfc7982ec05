// A payload that tries every way out that it knows, in every place that pinfold makes for payloads. The probe makes the
// attempts (tests/probe/escape*.cpp) and tells of each whether it was refused.
#include <linux/capability.h>
#include <linux/keyctl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <set>
#include <sstream>

#include "hostile.hpp"
#include "support/source_root.hpp"
#include "support/tried.hpp"
#include "terminal.hpp"

namespace pinfold::integration {

namespace {

using Names = std::set<std::string>;

// Doors that a filter may close by killing who knocks, each in a run of its own.
const std::vector<std::string> kOtherDoors = {"x32", "int80"};

// A config without a filter leaves its payload what the kernel gives to everybody. It leads nowhere by itself, but
// it is more of the kernel than most need.
const Names kWithoutFilter = {
    "userfaultfd of user mode",
    "io_uring_setup",
    "keyctl",
    "keyctl of the user's keys",
    "add_key",
    "request_key",
    "unshare of users",
    "clone with a user namespace",
    "clone3 with a user namespace",
    "the hypervisor's sockets",
    "the kernel's ciphers",
    "sockets of Bluetooth",
    "sockets of CAN",
    "sockets of TIPC",
    "netlink of audit",
    "netlink of the packet filter",
    "netlink of device events",
    "keyctl by int 0x80",
    "unshare by int 0x80",
    "ptrace by int 0x80",
};

// Docker's capabilities, filter and masks leave these, in the container's own root and network.
const Names kOfDocker = {
    "chroot",
    "raw packets of IPv4",
    "raw packets of IPv6",
    "packets of every interface",
    "packets without their headers",
    "the kernel's ciphers",
    "sockets of Bluetooth",
    "sockets of CAN",
    "sockets of TIPC",
    "netlink of audit",
    "netlink of the packet filter",
    "netlink of device events",
    "io_uring_setup",
    "sockets of XDP",
    "the hypervisor's sockets",
    "ptrace by int 0x80",
    "read /proc/kpagecgroup",
    "read /proc/kpagecount",
    "read /proc/kpageflags",
    "read /proc/pagetypeinfo",
    "read /proc/slabinfo",
    "read /proc/vmallocinfo",
};

// Attempts that fail even where all is allowed: what they lead to is decided by more than rights, or is not there.
const Names kNowhere = {
    "quotactl",
    "setns of the first process's users",
    "chroot, and a working directory outside of it",
    "/proc/sys made writable, by a user namespace",
    "/proc/sys uncovered, by a user namespace",
    "roots of other processes",
    "threads of the kernel",
    "TIOCLINUX to the caller's terminal",
    "/dev/sda",
    "/dev/vda",
    "mknod of /dev/sda",
    "mknod of /dev/vda",
    "mknod of the machine's disk",
};

// How a kernel says that it was built without something.
const Names kNotOfThisMachine = {"ENOENT", "ENOSYS", "ENODEV", "ENXIO", "EAFNOSUPPORT", "EPROTONOSUPPORT"};

constexpr const char* kCapabilities[] = {"SYS_ADMIN",       "SYS_BOOT", "SYS_MODULE",   "SYS_PACCT", "SYS_RAWIO",
                                         "SYS_PTRACE",      "SYS_NICE", "SYS_RESOURCE", "SYS_TIME",  "SYS_TTY_CONFIG",
                                         "SYS_CHROOT",      "SYSLOG",   "NET_ADMIN",    "NET_RAW",   "DAC_OVERRIDE",
                                         "DAC_READ_SEARCH", "MKNOD",    "PERFMON",      "BPF",       "IPC_OWNER"};

// A secret in the session's keyring of this program, which pinfold inherits; the variable that tells its name.
std::vector<std::string> host_key(const Bundle& bundle) {
    constexpr long kAnonymous = 0;
    const std::string name = "key-of-" + bundle.id();
    if (::syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, kAnonymous) < 0) return {};
    REQUIRE(::syscall(SYS_add_key, "user", name.c_str(), "secret", 6, KEY_SPEC_SESSION_KEYRING) > 0);
    return {"HOST_KEY=" + name};
}

std::vector<json> lines_of(const std::string& printed) {
    std::vector<json> out;
    std::istringstream lines(printed);
    for (std::string line; std::getline(lines, line);) {
        json parsed = json::parse(line, nullptr, false);
        REQUIRE_MESSAGE(!parsed.is_discarded(), line);
        out.push_back(std::move(parsed));
    }
    return out;
}

void judge(const std::string& place, const std::string& printed, const Names& granted) {
    for (const json& line : lines_of(printed)) {
        if (!line.contains("name") || line["result"] == "absent") continue;
        const std::string name = line["name"];
        if (granted.contains(name)) continue;
        std::string attempt = place;
        for (const std::string& part : {name, line["errno"].get<std::string>()}) attempt += ", " + part;
        WITHSTANDS(attempt, line["result"] == "refused");
    }
}

// All of it was tried, unless the kernel has ended the payload at another door.
void check_end(const std::string& place, const std::string& group, const Ended& ended) {
    INFO(place, ", ", group, ", exit code ", ended.status, ": ", ended.err);
    const bool killed = ended.status == 128 + SIGSYS;
    if (killed) WITHSTANDS(place + ", " + group, !group.empty());
    else CHECK((ended.status == 0 && lines_of(ended.out).back().value("attempts", 0) > (group.empty() ? 150 : -1)));
}

struct Place {
    std::string name;
    std::function<Ended(const Command&)> run;
    Names granted = {};
};

void try_to_escape(const Place& place) {
    std::vector<std::string> groups = kOtherDoors;
    groups.insert(groups.begin(), "");
    for (const std::string& group : groups) {
        Command command = {"/probe", "escape"};
        if (!group.empty()) command.push_back(group);
        const Ended ended = place.run(command);
        check_end(place.name, group, ended);
        judge(place.name, ended.out, place.granted);
    }
}

// The caller sits at a terminal, as somebody who tries a program out does.
void sit_at(const Terminal& terminal, SpawnOptions& spawn) {
    spawn.own_terminal = true;
    spawn.fds.push_back({0, terminal.slave()});
}

void escape_from_sandbox(const std::vector<std::string>& options, As as) {
    Bundle bundle;
    const Host host(bundle);
    const Terminal terminal(24, 80);
    Job job{host.job_options(), {}, as == As::user ? normal_user(bundle) : SpawnOptions{}};
    host.confide_in(job.spawn);
    sit_at(terminal, job.spawn);
    for (const std::string& variable : host_key(bundle)) job.options.insert(job.options.end(), {"-e", variable});
    job.options.insert(job.options.end(), {"--ro-bind", std::string(bundle.rootfs() / "probe") + ":/probe"});
    job.options.insert(job.options.end(), options.begin(), options.end());
    std::string printed;
    const auto run = [&](const Command& command) {
        job.command = command;
        Ended ended = run_job(bundle, job);
        printed += ended.out + ended.err;
        return ended;
    };
    try_to_escape({json(options).dump() + (as == As::root ? " as root" : " as a normal user"), run});
    host.check_unharmed(printed);
}

// The bundle's config becomes this one, its root and payload stay.
void take_config(Bundle& bundle, json config, const Host& host) {
    config["root"]["path"] = "rootfs";
    config["process"]["terminal"] = false;
    const std::vector<std::string> options = host.job_options();
    for (size_t i = 1; i < options.size(); i += 2) config["process"]["env"].push_back(options[i]);
    for (const std::string& variable : host_key(bundle)) config["process"]["env"].push_back(variable);
    bundle.config = std::move(config);
}

Ended run_in_bundle(Bundle& bundle, const Command& command, RunOptions options) {
    const Terminal terminal(24, 80);
    sit_at(terminal, options.spawn);
    bundle.config["process"]["args"] = command;
    const Outcome outcome = run(bundle, options);
    return {outcome.status, outcome.out, outcome.err};
}

void escape_from_bundle(const std::string& name, const json& config, const Names& granted) {
    Bundle bundle;
    const Host host(bundle);
    take_config(bundle, config, host);
    std::string printed;
    const auto run = [&](const Command& command) {
        RunOptions options;
        host.confide_in(options.spawn);
        Ended ended = run_in_bundle(bundle, command, options);
        printed += ended.out + ended.err;
        return ended;
    };
    try_to_escape({name, run, granted});
    host.check_unharmed(printed);
}

json written_by_spec() {
    Bundle bundle;
    const Ended ended = verb(bundle, {"spec", "--bundle", bundle.path()});
    REQUIRE_MESSAGE(ended.status == 0, ended.err);
    return json::parse(read_text(bundle.path() / "config.json"));
}

json shipped_profile(const std::string& name) {
    std::vector<std::string> command = runtime_command();
    command.insert(command.end(), {"seccomp", "show", name, "--json"});
    return json::parse(run_program(command).out);
}

// What Docker wrote for `docker run`, without what belongs to the machine that it was on.
json written_by_docker() {
    json config = json::parse(read_text(pinfold::testing::source_root() / "tests/data/configs/docker-default-v2.json"));
    std::erase_if(config["mounts"].get_ref<json::array_t&>(), [](const json& m) { return m["type"] == "bind"; });
    config["process"].erase("apparmorProfile");
    config["linux"].erase("cgroupsPath");
    config.erase("hooks");
    return config;
}

// All capabilities and devices, nothing masked or read-only, the host's network and files.
json all_allowed(const Bundle& bundle) {
    json config = bundle.config;
    json all = json::array();
    for (const char* name : kCapabilities) all.push_back(std::string("CAP_") + name);
    config["process"]["capabilities"] = {{"bounding", all}, {"effective", all}, {"permitted", all}};
    config["process"]["noNewPrivileges"] = false;
    config["linux"] = {{"namespaces", {{{"type", "mount"}}, {{"type", "uts"}}, {{"type", "pid"}}}},
                       {"resources", {{"devices", {{{"allow", true}, {"access", "rwm"}}}}}}};
    config["mounts"] = {{{"destination", "/proc"}, {"type", "proc"}, {"source", "proc"}}};
    for (const std::string& path : std::vector<std::string>{"/sys", "/dev", bundle.host()}) {
        config["mounts"].push_back(
            {{"destination", path}, {"type", "bind"}, {"source", path}, {"options", {"rbind", "rprivate"}}});
    }
    return config;
}

bool expected_nowhere(const json& line) {
    const std::string name = line["name"];
    if (name.find("oom_score_adj") != std::string::npos || name == "a higher hard limit") {
        return !has_capability(CAP_SYS_RESOURCE);  // where the test itself has not got it
    }
    return line["result"] == "absent" || kNotOfThisMachine.contains(line["errno"]) || kNowhere.contains(name);
}

// How many attempts were successful; all the others have an excuse.
long check_reached(const Ended& ended) {
    REQUIRE_MESSAGE(ended.status == 0, ended.err);
    long reached = 0;
    for (const json& line : lines_of(ended.out)) {
        if (!line.contains("name")) continue;
        if (line["result"] == "reached") ++reached;
        else CHECK_MESSAGE(expected_nowhere(line), line.dump());
    }
    return reached;
}

}  // namespace

TEST_CASE("escapes: from a sandbox with each of the shipped profiles") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    for (const char* profile : {"strict", "default", "network", "build"}) {
        for (const As as : {As::root, As::user}) escape_from_sandbox({"--seccomp", profile}, as);
    }
}

TEST_CASE("escapes: from a sandbox as root inside") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    escape_from_sandbox({"--user", "0"}, As::root);
    escape_from_sandbox({"--user", "0"}, As::user);
}

TEST_CASE("escapes: from a bundle with the config that spec writes") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    json config = written_by_spec();
    escape_from_bundle("spec", config, kWithoutFilter);
    config["linux"]["seccomp"] = shipped_profile("default");
    escape_from_bundle("spec with the profile default", config, {});
}

TEST_CASE("escapes: from a bundle like Docker's") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    escape_from_bundle("Docker's default", written_by_docker(), kOfDocker);
}

TEST_CASE("escapes: by a setuid program in the root of a bundle") {
    NEEDS_ROOT();
    Bundle bundle;
    const fs::path program = bundle.rootfs() / "setuid";
    fs::copy_file(bundle.rootfs() / "probe", program);
    REQUIRE(::chmod(program.c_str(), 06755) == 0);
    bundle.config["process"]["user"] = {{"uid", 1000}, {"gid", 1000}};
    const auto raised = [](const std::string& printed) {
        const json report = json::parse(printed);
        return report["credentials"]["uid"] != json({1000, 1000, 1000, 1000}) ||
               report["credentials"]["gid"] != json({1000, 1000, 1000, 1000}) ||
               report["capabilities"]["permitted"] != json::array();
    };
    bundle.config["process"]["args"] = {"/setuid", "report"};
    WITHSTANDS("run of a setuid program", !raised(run(bundle).out));
    bundle.probe({"wait-signal"});
    const Container container(bundle, Container::As::running);
    WITHSTANDS("exec of a setuid program", !raised(container.exec({}, {"/setuid", "report"}).out));
}

// Without this, attempts that cannot succeed anywhere would pass for guards that hold.
TEST_CASE("escapes: where everything is allowed, the same attempts succeed") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    Bundle bundle;
    const Host host(bundle);
    take_config(bundle, all_allowed(bundle), host);
    CHECK(check_reached(run_in_bundle(bundle, {"/probe", "escape"}, {.args = {"--no-new-keyring"}})) > 80);
    bundle.probe({"wait-signal"});
    const Container first(bundle, Container::As::running);
    CHECK(check_reached(first.exec({}, {"/probe", "escape", "processes"})) > 10);
}

}  // namespace pinfold::integration
