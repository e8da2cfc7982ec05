// Control groups: where the container's group lies, that it goes away, that limits bite or are refused.
#include <signal.h>

#include <sstream>

#include "harness.hpp"

using namespace pinfold::integration;

namespace {

// The v2 line of /proc/PID/cgroup as this program sees it.
std::string group_of(const std::string& pid) {
    std::istringstream lines(read_text("/proc/" + pid + "/cgroup"));
    for (std::string line; std::getline(lines, line);) {
        if (line.rfind("0::", 0) == 0) return line.substr(3);
    }
    return {};
}

// Runs the payload until it is ready, and says which group it is in.
std::string group_while_running(Bundle& bundle, const RunOptions& options = {}) {
    const fs::path pid_file = bundle.host() / "pid";
    RunOptions with_pid = options;
    with_pid.args.insert(with_pid.args.end(), {"--pid-file", pid_file});
    bundle.probe({"wait-signal"});
    const auto running = start(bundle, with_pid);
    REQUIRE(running->read_line() == "READY");
    const std::string group = group_of(await_file(pid_file));
    if (runtime() == Runtime::pinfold && !cgroup2_mount().empty()) {
        CHECK(fs::is_directory(cgroup2_mount() / fs::path(group).relative_path()));
    }
    running->signal(SIGTERM);
    CHECK(running->finish().status == 0);
    return group;
}

// What a limit without its controller has to be: refused, in words that name it; never ignored.
void check_refused(Bundle& bundle, const std::string& controller) {
    const Outcome outcome = run(bundle);
    CHECK(outcome.status == 1);
    CHECK(outcome.says(controller));
    CHECK(outcome.says("controller"));
}

}  // namespace

TEST_CASE("cgroups: a group of one's own while running, and none afterwards") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    if (cgroup2_mount().empty()) SKIP_TEST("no cgroup v2 on this machine");
    {
        Bundle bundle;
        CHECK(group_while_running(bundle).find("/pinfold/" + bundle.id()) != std::string::npos);
    }
    {
        Bundle bundle;
        bundle.config["linux"]["cgroupsPath"] = "/" + bundle.id() + "-parent/deeper/" + bundle.id();
        const std::string group = group_while_running(bundle);
        CHECK(group.find("/" + bundle.id() + "-parent/deeper/" + bundle.id()) != std::string::npos);
        // Only the group itself is the container's: parents may be somebody else's by now.
        for (const std::string& name : std::vector<std::string>{"deeper", bundle.id() + "-parent"}) {
            for (const std::string& left : cgroups_named(name)) {
                std::error_code error;
                fs::remove(left, error);
            }
        }
    }
}

TEST_CASE("cgroups: --cgroup-manager disabled touches none") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    Bundle bundle;
    bundle.config["linux"].erase("resources");
    CHECK(group_while_running(bundle, {.global = {"--cgroup-manager", "disabled"}}) == group_of("self"));
}

TEST_CASE("cgroups: limits and no manager do not go together") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    Bundle bundle;
    bundle.config["linux"]["resources"]["pids"]["limit"] = 10;
    CHECK(run(bundle, {.global = {"--cgroup-manager", "disabled"}}).status == 1);
}

TEST_CASE("cgroups: a memory limit ends what exceeds it") {
    NEEDS_ROOT();
    Bundle bundle;
    bundle.config["linux"]["resources"]["memory"]["limit"] = 32 << 20;
    bundle.config["linux"]["resources"]["memory"]["swap"] = 32 << 20;
    if (!has_controller("memory") && cgroup1_mount("memory").empty()) {
        PINFOLD_ONLY();
        return check_refused(bundle, "memory");
    }
    CHECK(run_probe(bundle, {{"alloc", "8"}}).status == 0);
    const Outcome outcome = run_probe(bundle, {{"alloc", "64"}});
    CHECK(outcome.status == 128 + SIGKILL);
}

TEST_CASE("cgroups: a limit of processes") {
    NEEDS_ROOT();
    Bundle bundle;
    bundle.config["linux"]["resources"]["pids"]["limit"] = 5;
    if (!has_controller("pids") && cgroup1_mount("pids").empty()) {
        PINFOLD_ONLY();
        return check_refused(bundle, "pids");
    }
    const Outcome outcome = run_probe(bundle, {{"fork", "20"}});
    CHECK(outcome.answer()["children"] == 4);
    CHECK(outcome.answer()["errno"] == "EAGAIN");
}

TEST_CASE("cgroups: no processes at all are a limit since 1.3, and were none before") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    if (!has_controller("pids") && cgroup1_mount("pids").empty()) SKIP_TEST("no group can hold processes here");
    Bundle bundle;
    bundle.config["linux"]["resources"]["pids"]["limit"] = 0;
    bundle.config["ociVersion"] = "1.0.2-dev";
    CHECK(run_probe(bundle, {{"fork", "20"}}).answer()["children"] == 20);
    bundle.config["ociVersion"] = "1.3.0";
    CHECK(run_probe(bundle, {{"fork", "20"}}).answer()["children"] == 0);
}

TEST_CASE("cgroups: a processor quota") {
    NEEDS_ROOT();
    Bundle bundle;
    bundle.config["linux"]["resources"]["cpu"] = {{"quota", 10000}, {"period", 100000}};
    if (!has_controller("cpu") && cgroup1_mount("cpu").empty()) {
        PINFOLD_ONLY();
        return check_refused(bundle, "cpu");
    }
    // A tenth of a processor: 60 ms of work take at least 300 ms, whatever else the machine does.
    const Outcome outcome = run_probe(bundle, {{"burn", "60"}});
    CHECK(outcome.answer()["wall_ms"].get<int>() >= 300);
}

TEST_CASE("cgroups: a payload that may write to its hierarchy owns its group, and nothing else does") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    if (cgroup2_mount().empty()) SKIP_TEST("no cgroup v2 on this machine");
    struct Case {
        bool own_namespace;
        const char* mode;
        bool delegated;
    };
    for (const Case& each : {Case{true, "rw", true}, Case{true, "ro", false}, Case{false, "rw", false}}) {
        CAPTURE(each.own_namespace);
        CAPTURE(each.mode);
        Bundle bundle;
        bundle.config["process"]["user"] = {{"uid", 1234}, {"gid", 1234}};
        if (each.own_namespace) bundle.add_namespace("cgroup");
        bundle.config["mounts"].push_back({{"destination", "/sys/fs/cgroup"},
                                           {"type", "cgroup"},
                                           {"source", "cgroup"},
                                           {"options", {"nosuid", each.mode}}});
        const std::string top = each.own_namespace ? "/sys/fs/cgroup" : "/sys/fs/cgroup/pinfold/" + bundle.id();
        const Outcome outcome =
            run_probe(bundle, {{"mkdir", top + "/below"}, {"stat", top}, {"write", top + "/cgroup.procs", "0"}});
        CHECK(outcome.answer(0)["ok"] == each.delegated);
        CHECK(outcome.answer(1)["uid"] == (each.delegated ? 1234 : 0));
        CHECK(outcome.answer(2)["ok"] == each.delegated);
        CHECK(cgroups_named(bundle.id()).empty());
    }
}

TEST_CASE("cgroups: a normal user has groups, and limits, in what was delegated to it") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    if (cgroup2_mount().empty()) SKIP_TEST("no cgroup v2 on this machine");
    constexpr uid_t kUser = 65000;
    Bundle bundle;
    bundle.make_rootless(kUser);
    const fs::path given = cgroup2_mount() / ("given-" + bundle.id());
    const bool limited = has_controller("memory");
    if (limited) bundle.config["linux"]["resources"]["memory"]["limit"] = 32 << 20;
    bundle.probe(limited ? Command{"alloc", "64"} : Command{"report"}).write_config();
    std::string run;
    for (const std::string& word : bundle.verb({"run", "--bundle", bundle.path().string(), bundle.id()}))
        run += " " + word;
    // A group for the caller itself: only one that holds no process passes controllers on.
    const std::string script = "mkdir -p " + given.string() + "/caller && cd " + given.string() +
                               " && chown 65000 . cgroup.procs cgroup.subtree_control caller caller/cgroup.procs"
                               " && echo 0 > caller/cgroup.procs && cd / && exec env XDG_RUNTIME_DIR= HOME=/"
                               " setpriv --reuid 65000 --regid 65000 --clear-groups" +
                               run;
    const Ended ended = run_program({"/bin/sh", "-c", script}, {});
    const std::vector<std::string> left = cgroups_named(bundle.id());
    fs::remove(given / "caller");
    fs::remove(given);
    if (limited) {
        CHECK_MESSAGE(ended.status == 128 + SIGKILL, ended.err);
    } else {
        REQUIRE_MESSAGE(ended.status == 0, ended.err);
        const std::string group = json::parse(ended.out)["proc"]["cgroup"];
        CHECK(group.find("given-" + bundle.id() + "/pinfold/" + bundle.id()) != std::string::npos);
    }
    for (const std::string& one : left) CHECK(one.find("/pinfold/") == std::string::npos);
}
