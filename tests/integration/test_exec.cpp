// exec: one more process in a container, with the container's restrictions and the caller's wishes.
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <sstream>

#include "harness.hpp"
#include "terminal.hpp"

using namespace pinfold::integration;

namespace {

using As = Container::As;
using Words = std::vector<std::string>;

std::string namespace_of(pid_t pid, const std::string& name) {
    return fs::read_symlink("/proc/" + std::to_string(pid) + "/ns/" + name).string();
}

void check_same_namespaces(const json& report, pid_t pid) {
    for (const char* name : {"cgroup", "ipc", "mnt", "net", "pid", "time", "user", "uts"}) {
        CAPTURE(name);
        CHECK(report["namespaces"][name] == namespace_of(pid, name));
    }
}

// A file with the process of an exec: the container's own, changed.
fs::path process_file(const Bundle& bundle, const json& changes) {
    json process = bundle.config["process"];
    process.merge_patch(changes);
    const fs::path file = bundle.host() / "process.json";
    write_text(file, process.dump());
    return file;
}

}  // namespace

TEST_CASE("exec: output and exit code come back, also for signals") {
    NEEDS_ROOT();
    Bundle bundle;
    const Container container(waiting(bundle), As::running);
    CHECK(container.exec({}, {"/probe", "exit", "7"}).status == 7);
    CHECK(container.exec({}, {"/probe", "signal", "9"}).status == 128 + 9);
    const Ended copied = container.exec({}, {"/probe", "cat"}, {.input = "through standard input"});
    CHECK(copied.status == 0);
    CHECK(copied.out.starts_with("through standard input"));
}

TEST_CASE("exec: in all namespaces, the cgroup and the root of the container") {
    NEEDS_ROOT();
    Bundle bundle;
    bundle.add_namespace("cgroup");
    const Container container(waiting(bundle), As::running);
    const json report = container.exec_report();
    check_same_namespaces(report, container.pid());
    CHECK(report["process"]["ppid"] == 0);
    CHECK(report["hosts"]["hostname"] == "inside");
    CHECK(mount_at(report, "/")["root"].get<std::string>().ends_with("/rootfs"));
    CHECK(report["cwd"] == "/");
    if (!cgroup2_mount().empty())
        CHECK(report["proc"]["cgroup"].get<std::string>().find("0::/\n") != std::string::npos);
}

TEST_CASE("exec: with the restrictions of the container") {
    NEEDS_ROOT();
    Bundle bundle;
    bundle.config["linux"]["seccomp"] = {{"defaultAction", "SCMP_ACT_ALLOW"},
                                         {"syscalls",
                                          {{{"names", {"getcwd"}}, {"action", "SCMP_ACT_ALLOW"}},
                                           {{"names", {"swapon"}}, {"action", "SCMP_ACT_ERRNO"}}}}};
    const Container container(waiting(bundle), As::running);
    const json report = container.exec_report();
    CHECK(report["seccomp"]["mode"] == 2);
    CHECK(report["no_new_privs"] == 1);
    CHECK(report["capabilities"]["bounding"] == json({"CAP_KILL", "CAP_NET_BIND_SERVICE", "CAP_AUDIT_WRITE"}));
    CHECK(report["capabilities"]["effective"] == report["capabilities"]["bounding"]);
    CHECK(report["rlimits"]["RLIMIT_NOFILE"] == json({1024, 1024}));
    CHECK(report["fds"].size() == 3);
    CHECK(report["env"] == json({"PATH=/usr/bin:/bin", "TERM=xterm", "HOME=/"}));
}

TEST_CASE("exec: the command line's wishes") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    Bundle bundle;
    bundle.config["process"]["noNewPrivileges"] = false;
    bundle.config["process"]["env"].push_back("A=0");
    const Container container(waiting(bundle), As::running);
    const json report = container.exec_report({"--cwd", "/tmp", "--env", "A=1", "-e", "B=2", "--user", "7:8", "-g", "9",
                                               "--additional-gids", "10", "--cap", "CAP_CHOWN", "--no-new-privs"});
    CHECK(report["cwd"] == "/tmp");
    CHECK(has(report["env"], "A=1"));
    CHECK_FALSE(has(report["env"], "A=0"));
    CHECK(has(report["env"], "B=2"));
    CHECK(report["credentials"]["uid"] == json({7, 7, 7, 7}));
    CHECK(report["credentials"]["gid"] == json({8, 8, 8, 8}));
    CHECK(report["credentials"]["groups"] == json({9, 10}));
    CHECK(has(report["capabilities"]["bounding"], "CAP_CHOWN"));
    CHECK(report["no_new_privs"] == 1);
    CHECK(container.exec_report()["no_new_privs"] == 0);
    CHECK(container.exec_report({"--cwd", "tmp"})["cwd"] == "/tmp");
    check_refused(container.exec({"--cwd", "/tmp/none"}, {"/probe", "report"}), "/tmp/none: does not exist", 255);
    CHECK_FALSE(fs::exists(bundle.rootfs() / "tmp/none"));
}

TEST_CASE("exec: users and groups by the container's own names") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    Bundle bundle;
    write_text(bundle.rootfs() / "etc/passwd", "root:x:0:0::/root:/bin/sh\nbob:x:1001:1002::/home/bob:/bin/sh\n");
    write_text(bundle.rootfs() / "etc/group", "root:x:0:\nbob:x:1002:\nstaff:x:50:alice,bob\nwheel:x:10:bob\n");
    const Container container(waiting(bundle), As::running);
    const json bob = container.exec_report({"--user", "bob"});
    CHECK(bob["credentials"]["uid"][0] == 1001);
    CHECK(bob["credentials"]["gid"][0] == 1002);
    CHECK(bob["credentials"]["groups"] == json({10, 50}));
    CHECK(has(bob["env"], "HOME=/home/bob"));
    CHECK(container.exec_report({"--user", "bob:staff"})["credentials"]["gid"][0] == 50);
    CHECK(container.exec_report({"--user", "1001"})["credentials"]["gid"][0] == 1002);
    CHECK(container.exec_report({"--user", "4242"})["credentials"]["gid"][0] == 0);
    check_refused(container.exec({"--user", "eve"}, {"/probe", "report"}), "user 'eve' is not in", 255);
    check_refused(container.exec({"--user", "bob:eve"}, {"/probe", "report"}), "group 'eve' is not in", 255);
}

TEST_CASE("exec: a process from a file") {
    NEEDS_ROOT();
    Bundle bundle;
    const Container container(waiting(bundle), As::running);
    const fs::path file = process_file(
        bundle,
        {{"args", {"/probe", "report"}},
         {"cwd", "/etc"},
         {"env", {"ONLY=this", "HOME=/x"}},
         {"user", {{"uid", 12}, {"gid", 13}}},
         {"capabilities", {{"bounding", {"CAP_KILL"}}, {"permitted", json::array()}, {"effective", json::array()}}},
         {"oomScoreAdj", 600},
         {"rlimits", {{{"type", "RLIMIT_NOFILE"}, {"soft", 50}, {"hard", 60}}}}});
    const Ended ended = run_program(bundle.verb({"exec", "--process", file, bundle.id()}));
    REQUIRE_MESSAGE(ended.status == 0, ended.err);
    const json report = json::parse(ended.out);
    CHECK(report["cwd"] == "/etc");
    CHECK(report["env"] == json({"ONLY=this", "HOME=/x"}));
    CHECK(report["credentials"]["uid"][0] == 12);
    CHECK(report["capabilities"]["bounding"] == json({"CAP_KILL"}));
    CHECK(report["proc"]["oom_score_adj"] == "600\n");
    CHECK(report["rlimits"]["RLIMIT_NOFILE"] == json({50, 60}));
}

TEST_CASE("exec: bad requests are told, all at once, and start nothing") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    Bundle bundle;
    const Container container(waiting(bundle), As::running);
    check_refused(container.exec({}, {}), "nothing to run", 255);
    check_refused(container.exec({}, {"nothing-of-that-name"}), "executable file not found in $PATH", 255);
    check_refused(container.exec({}, {"/etc"}), "permission denied", 255);
    check_refused(container.exec({}, {"/no/such"}), "no such file or directory", 255);
    check_refused(container.exec({"--process", "/nowhere"}, {}), "open /nowhere", 255);
    check_refused(container.exec({"--tty", "--detach"}, {"/probe", "report"}), "--console-socket", 255);
    check_refused(container.exec({"--cgroup", "../.."}, {"/probe", "report"}), "leads elsewhere", 255);
    const fs::path file = process_file(bundle, {{"args", json::array()}, {"cwd", "relative"}});
    const Ended ended = container.exec({"--process", file}, {});
    check_refused(ended, "2 problems", 255);
    CHECK(ended.err.find("cwd: found \"relative\"") != std::string::npos);
}

TEST_CASE("exec: detached, with a pid file and a pidfd") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    Bundle bundle;
    const Container container(waiting(bundle), As::running);
    const std::string pid_file = bundle.host() / "exec.pid";
    const DescriptorSocket pidfds(bundle.host() / "pidfds");
    const Ended ended = container.exec({"--detach", "--pid-file", pid_file, "--pidfd-socket", pidfds.path()},
                                       {"/probe", "wait-signal"});
    REQUIRE_MESSAGE(ended.status == 0, ended.err);
    const pid_t pid = static_cast<pid_t>(std::stol(read_text(pid_file)));
    CHECK(namespace_of(pid, "pid") == namespace_of(container.pid(), "pid"));
    const UniqueFd pidfd = pidfds.receive();
    if (!cgroup2_mount().empty()) {
        const json pids = json::parse(container.must({"ps", "--format", "json", bundle.id()}));
        CHECK(std::find(pids.begin(), pids.end(), pid) != pids.end());
    }
    // The container's first process does not end before this one is reaped, which is our duty now.
    CHECK(::kill(pid, SIGKILL) == 0);
    CHECK(await_readable(pidfd.get()));
    CHECK(::waitpid(pid, nullptr, 0) == pid);
}

TEST_CASE("exec: preserved descriptors and no others") {
    NEEDS_ROOT();
    Bundle bundle;
    const Container container(waiting(bundle), As::running);
    write_text(bundle.host() / "passed", "through");
    const UniqueFd file(::open((bundle.host() / "passed").c_str(), O_RDONLY | O_CLOEXEC));
    const SpawnOptions spawn{.fds = {{3, file.get()}, {4, file.get()}}};
    const Ended read = container.exec({"--preserve-fds", "1"}, {"/probe", "read-fd", "3"}, spawn);
    CHECK(read.out.find("through") != std::string::npos);
    const Ended report = container.exec({"--preserve-fds", "1"}, {"/probe", "report"}, spawn);
    CHECK(json::parse(report.out)["fds"].size() == 4);
}

TEST_CASE(
    "exec: descriptors that the caller did not pass are refused, and nothing of pinfold's own takes their place") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    Bundle bundle;
    const Container container(waiting(bundle), As::running);
    check_refused(container.exec({"--preserve-fds", "1"}, {"/probe", "report"}), "descriptor 3 is not open", 255);
}

TEST_CASE("exec: on the CPUs that its configuration names, first and in the end") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    Bundle bundle;
    const Container container(waiting(bundle), As::running);
    const json own = container.exec_report()["scheduling"]["cpus"];
    if (own.size() < 2) SKIP_TEST("a single CPU");
    const auto cpus_with = [&](const json& affinity) {
        const fs::path file = process_file(bundle, {{"execCPUAffinity", affinity}, {"args", {"/probe", "report"}}});
        return json::parse(container.exec({"--process", file}, {}).out)["scheduling"]["cpus"];
    };
    CHECK(cpus_with({{"final", "1"}}) == json::array({1}));
    CHECK(cpus_with({{"initial", "1"}, {"final", "0"}}) == json::array({0}));
    CHECK(cpus_with({{"initial", "1"}}) == own);
    const fs::path none = process_file(bundle, {{"execCPUAffinity", {{"final", "65535"}}}});
    check_refused(container.exec({"--process", none}, {}), "process.execCPUAffinity.final", 255);
}

TEST_CASE("exec: a terminal in the foreground") {
    NEEDS_ROOT();
    Bundle bundle;
    const Container container(waiting(bundle), As::running);
    Terminal terminal(33, 44);
    const int fd = terminal.slave();
    Process running(bundle.verb({"exec", "--tty", bundle.id(), "/probe", "winsize"}),
                    {.fds = {{0, fd}, {1, fd}, {2, fd}}, .own_terminal = true});
    terminal.await_line("33x44");
    terminal.type("\n");
    CHECK(running.finish().status == 0);
}

TEST_CASE("exec: a terminal through the console socket") {
    NEEDS_ROOT();
    Bundle bundle;
    const Container container(waiting(bundle), As::running);
    const DescriptorSocket console(bundle.host() / "console");
    const std::string pid_file = bundle.host() / "exec.pid";
    const Ended ended =
        container.exec({"--tty", "--detach", "--pid-file", pid_file, "--console-socket", console.path()},
                       {"/probe", "report", ";", "wait-signal"});
    REQUIRE_MESSAGE(ended.status == 0, ended.err);
    Terminal terminal(console.receive());
    const json report = json::parse(terminal.read_line());
    CHECK(report["terminals"][0]["tty"] == true);
    CHECK(report["proc"]["controlling_terminal"] == true);
    const pid_t pid = static_cast<pid_t>(std::stol(read_text(pid_file)));
    CHECK(::kill(pid, SIGKILL) == 0);
    CHECK(::waitpid(pid, nullptr, 0) == pid);
}

TEST_CASE("exec: not in a paused container, except when told so") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    if (cgroup2_mount().empty()) SKIP_TEST("no cgroup v2 on this machine");
    Bundle bundle;
    const Container container(waiting(bundle), As::running);
    container.must({"pause", bundle.id()});
    const Ended refused = container.exec({}, {"/probe", "exit", "0"});
    check_refused(refused, "is paused", 255);
    CHECK(refused.err.find("hint: resume it first") != std::string::npos);
    Process waits(bundle.verb({"exec", "--ignore-paused", bundle.id(), "/probe", "exit", "6"}), {});
    container.must({"resume", bundle.id()});
    CHECK(waits.finish().status == 6);
}

TEST_CASE("exec: into a group below the container's") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    if (cgroup2_mount().empty()) SKIP_TEST("no cgroup v2 on this machine");
    Bundle bundle;
    const Container container(waiting(bundle), As::running);
    const std::string group = cgroups_named(bundle.id()).at(0);
    fs::create_directory(fs::path(group) / "below");
    const json report = container.exec_report({"--cgroup", "below"});
    CHECK(report["proc"]["cgroup"].get<std::string>().find(bundle.id() + "/below\n") != std::string::npos);
}

TEST_CASE("exec: in a created container, whose payload still waits") {
    NEEDS_ROOT();
    Bundle bundle;
    const Container container(waiting(bundle), As::created);
    check_same_namespaces(container.exec_report(), container.pid());
    CHECK(container.status() == "created");
}

TEST_CASE("exec: where the container has a user namespace") {
    NEEDS_ROOT();
    Bundle bundle;
    bundle.add_namespace("user");
    bundle.config["linux"]["uidMappings"] = {{{"containerID", 0}, {"hostID", 100000}, {"size", 65536}}};
    bundle.config["linux"]["gidMappings"] = bundle.config["linux"]["uidMappings"];
    const Container container(waiting(bundle), As::running);
    const json report = container.exec_report({"--user", "5:6"});
    check_same_namespaces(report, container.pid());
    CHECK(report["credentials"]["uid"][0] == 5);
    CHECK(report["credentials"]["groups"] == json::array());
}

TEST_CASE("exec: for a user without privileges") {
    NEEDS_ROOT();
    Bundle bundle;
    waiting(bundle).make_rootless(kNobodySpecial);
    const SpawnOptions spawn{.uid = kNobodySpecial};
    const Container container(bundle, As::running, {.spawn = spawn});
    const Ended ended = container.exec({}, {"/probe", "report"}, spawn);
    REQUIRE_MESSAGE(ended.status == 0, ended.err);
    check_same_namespaces(json::parse(ended.out), container.pid());
}

TEST_CASE("exec: a shifted clock and a shared pid namespace") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    Bundle bundle;
    bundle.drop_namespace("pid").add_namespace("time");
    bundle.config["linux"]["timeOffsets"] = {{"boottime", {{"secs", 1000000}}}};
    const Container container(waiting(bundle), As::running);
    const json report = container.exec_report();
    check_same_namespaces(report, container.pid());
    CHECK(report["clocks"]["boottime"].get<int64_t>() > 1000000);
}

TEST_CASE("exec: signals reach the program") {
    NEEDS_ROOT();
    Bundle bundle;
    const Container container(waiting(bundle), As::running);
    Process running(bundle.verb({"exec", bundle.id(), "/probe", "wait-signal"}), {});
    REQUIRE(running.read_line() == "READY");
    running.signal(SIGUSR1);
    CHECK(running.read_line().find("USR1") != std::string::npos);
    running.signal(SIGTERM);
    CHECK(running.finish().status == 0);
}

namespace {

// Of any process of this machine that was started with this word: the files of its first thread may have gone with it.
bool runs(const std::string& word) {
    for (const auto& process : fs::directory_iterator("/proc")) {
        std::error_code has_ended;
        for (const auto& thread : fs::directory_iterator(process.path() / "task", has_ended)) {
            std::ifstream file(thread.path() / "cmdline");
            std::ostringstream words;
            words << file.rdbuf();  // which throws nothing where the process has ended
            const std::string text = words.str();
            if (text.find("probe") != std::string::npos && text.find("flee") != std::string::npos &&
                text.find(word) != std::string::npos)
                return true;
        }
    }
    return false;
}

// The program ends, and what it has left is nowhere any more.
void check_ends_all(const Container& container, const Command& flight, const std::string& word,
                    const SpawnOptions& spawn = {}) {
    CAPTURE(flight);
    const Ended ended = container.exec({"--timeout", "100s"}, flight, spawn);
    CHECK_MESSAGE(ended.status == 0, ended.err);
    const auto start = std::chrono::steady_clock::now();
    while (runs(word)) {
        if (std::chrono::steady_clock::now() - start > std::chrono::seconds(5)) FAIL("it still runs: " << ended.out);
    }
}

}  // namespace

TEST_CASE("exec: with a deadline, what a program starts ends with it, also in namespaces of its own") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    Bundle bundle;
    waiting(bundle).make_rootless(kNobodySpecial);
    const SpawnOptions spawn{.uid = kNobodySpecial};
    const Container container(bundle, As::running, {.spawn = spawn});
    for (const char* way : {"namespaces", "threads", "relay"})
        check_ends_all(container, {"/probe", "flee", way, bundle.id()}, bundle.id(), spawn);
}

TEST_CASE("exec: with a deadline, what a program starts ends with it, also in another group") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    if (cgroup2_mount().empty()) SKIP_TEST("no cgroup v2 on this machine");
    for (const char* mode : {"ro", "rw"}) {
        CAPTURE(std::string(mode));
        Bundle bundle;
        bundle.add_namespace("cgroup");
        bundle.mount("/sys/fs/cgroup", "cgroup", "cgroup", {"nosuid", mode});
        const Container container(waiting(bundle), As::running);
        for (const char* way : {"namespaces", "write", "clone3", "threads", "relay"})
            check_ends_all(container, {"/probe", "flee", way, "/sys/fs/cgroup", bundle.id()}, bundle.id());
    }
}

TEST_CASE("exec: a deadline that the program could escape is refused") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    const Words timed = {"--timeout", "100s"};
    const Command nothing = {"/probe", "exit", "0"};
    const auto refused = [&](const Container& container, const Words& options, const std::string& words,
                             const SpawnOptions& spawn = {}) {
        const Ended ended = container.exec(options, nothing, spawn);
        CHECK(ended.status != 0);
        CHECK_MESSAGE(ended.err.find(words) != std::string::npos, ended.err);
    };
    const std::string users = "its seccomp profile allows new user namespaces";
    const SpawnOptions spawn{.uid = kNobodySpecial};
    const json allowing = {{"defaultAction", "SCMP_ACT_ALLOW"}};
    {
        Bundle bundle;
        bundle.config["linux"]["seccomp"] = allowing;
        waiting(bundle).make_rootless(kNobodySpecial);
        const Container container(bundle, As::running, {.spawn = spawn});
        refused(container, timed, "the container has no cgroup, and " + users, spawn);
        CHECK(container.exec({}, nothing, spawn).status == 0);
    }
    {
        // The flag alone is denied, but not among others.
        Bundle bundle;
        const json exactly = {{{"index", 0}, {"value", CLONE_NEWUSER}, {"op", "SCMP_CMP_EQ"}}};
        bundle.config["linux"]["seccomp"] = allowing;
        bundle.config["linux"]["seccomp"]["syscalls"] = {
            {{"names", {"unshare", "clone"}}, {"action", "SCMP_ACT_ERRNO"}, {"args", exactly}},
            {{"names", {"clone3"}}, {"action", "SCMP_ACT_ERRNO"}}};
        waiting(bundle).make_rootless(kNobodySpecial);
        const Container container(bundle, As::running, {.spawn = spawn});
        refused(container, timed, users, spawn);
    }
    Bundle bundle;
    bundle.add_namespace("cgroup");
    bundle.mount("/sys/fs/cgroup", "cgroup", "cgroup", {"nosuid", "rw"});
    bundle.config["linux"]["seccomp"] = allowing;
    const Container container(waiting(bundle), As::running);
    refused(container, timed, "the container may write to its cgroup, and " + users);
    refused(container, {"--timeout", "100s", "--cap", "CAP_SYS_ADMIN"}, "the program may have CAP_SYS_ADMIN");
}
