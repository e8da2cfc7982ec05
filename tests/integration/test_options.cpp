// The command line: what each option of `run` does, and the verbs around it.
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <set>
#include <sstream>

#include "harness.hpp"

using namespace pinfold::integration;

namespace {

std::vector<std::string> lines_of(const std::string& text) {
    std::vector<std::string> out;
    std::istringstream stream(text);
    for (std::string line; std::getline(stream, line);) out.push_back(line);
    return out;
}

// With something to do in every step that a normal user has, too.
void ask_for_everything(Bundle& bundle) {
    json& process = bundle.config["process"];
    json& config = bundle.config["linux"];
    process["oomScoreAdj"] = 500;
    process["scheduler"] = {{"policy", "SCHED_BATCH"}, {"nice", 5}};
    process["ioPriority"] = {{"class", "IOPRIO_CLASS_BE"}, {"priority", 6}};
    process["cwd"] = "/data";
    bundle.config["domainname"] = "domain";
    bundle.add_namespace("cgroup");
    config["personality"] = {{"domain", "LINUX32"}};
    config["memoryPolicy"] = {{"mode", "MPOL_BIND"}, {"nodes", "0"}, {"flags", json::array()}};
    config["sysctl"] = {{"net.ipv4.ip_default_ttl", "63"}};
    config["seccomp"] = {{"defaultAction", "SCMP_ACT_ALLOW"}};
    for (const char* kind : {"prestart", "createRuntime", "createContainer"})
        bundle.config["hooks"][kind] = json::array({{{"path", "/bin/true"}}});
    bundle.config["hooks"]["startContainer"] = json::array({{{"path", "/probe"}, {"args", {"probe", "exit", "0"}}}});
    bundle.bind(bundle.host(), "/data").probe({"exit", "0"});
}

using Names = std::vector<std::string>;

struct Told {
    Names all, parent, child;
};

Told told(const std::string& plan) {
    Told names;
    const json whole = json::parse(plan);
    for (const json& step : whole["steps"]) {
        names.all.push_back(step["step"]);
        (step["by"] == "parent" ? names.parent : names.child).push_back(step["step"]);
    }
    REQUIRE(names.all.back() == "exec");
    return names;
}

// Parent and child take theirs beside each other until the child waits ("go"), each in its order: all that may have
// been taken of both after so many steps, by how many of the parent's they are.
bool is_interleaved(const Names& taken, const Names& parent, const Names& child) {
    if (taken.size() != parent.size() + child.size()) return false;
    std::set<size_t> possible = {0};
    for (size_t i = 0; i < taken.size(); ++i) {
        std::set<size_t> next;
        for (const size_t by_parent : possible) {
            const size_t by_child = i - by_parent;
            if (by_parent < parent.size() && parent[by_parent] == taken[i]) next.insert(by_parent + 1);
            if (by_child < child.size() && child[by_child] == taken[i]) next.insert(by_parent);
        }
        possible = std::move(next);
    }
    return !possible.empty();
}

// Of those that were told.
Names taken(const std::string& log, const Names& told) {
    Names names;
    for (const std::string& line : lines_of(log)) {
        const size_t end = line.find(" ms] ");
        if (end == std::string::npos) continue;
        const std::string name = line.substr(end + 5);
        // A pinfold that was started again by itself begins anew.
        if (name == "own binary") names.clear();
        else if (std::ranges::find(told, name) != told.end()) names.push_back(name);
    }
    return names;
}

// Also where it is looked at what the process has become, and where there is a pid file.
void check_order(const Bundle& bundle, const SpawnOptions& spawn = {}, const Names& options = {}) {
    Names args = options;
    args.emplace_back("--dry-run");
    const Outcome plan = run(bundle, {.args = args, .spawn = spawn});
    REQUIRE_MESSAGE(plan.status == 0, plan.err);
    const Outcome outcome = run(bundle, {.global = {"--debug"}, .args = options, .spawn = spawn});
    CHECK_MESSAGE(outcome.status == 0, outcome.err);
    Told names = told(plan.out);
    const Names steps = taken(outcome.err, names.all);
    std::erase(names.parent, "own binary");
    CHECK_MESSAGE(is_interleaved(steps, names.parent, names.child), json(steps) << " is not " << json(names.all));
    // What the child waits for is done when it goes on: of the parent's steps none comes after those of its user.
    const auto user = std::ranges::find(steps, "user");
    CHECK(std::ranges::find(steps, "record") < user);
}

// What a step of the trampoline is, in system calls.
const std::map<std::string, Names> kCallsOfSteps = {{"start", {"prctl", "write", "close", "accept4", "close"}},
                                                    {"ready", {"fcntl", "write"}},
                                                    {"ready after start", {"write"}},
                                                    {"seccomp", {"seccomp"}},
                                                    {"exec", {"execve"}}};

// The calls that the steps below the trampoline's own line are told to be.
Names told_calls(Names names, bool waits) {
    names.erase(names.begin(), std::ranges::find(names, "trampoline") + 1);
    names.erase(names.begin(), std::ranges::find(names, "trampoline") + 1);  // the parent's, then the child's
    Names calls;
    for (const std::string& name : names) {
        const auto known = kCallsOfSteps.find(name == "ready" && waits ? "ready after start" : name);
        REQUIRE_MESSAGE(known != kCallsOfSteps.end(), name);
        calls.insert(calls.end(), known->second.begin(), known->second.end());
    }
    return calls;
}

// Those that were made, from its execve to the payload's.
Names calls_of_trampoline(const std::string& trace) {
    std::string pid;
    Names calls;
    for (const std::string& line : lines_of(trace)) {
        const size_t name = line.find_first_not_of(' ', line.find(' '));
        const std::string call = line.substr(name, line.find_first_of("( ", name) - name);
        if (call == "execveat") pid = line.substr(0, line.find(' '));
        else if (!pid.empty() && line.starts_with(pid + ' ') && call != "<...") calls.push_back(call);
        if (!calls.empty() && calls.back() == "execve") return calls;
    }
    return calls;
}

json keyring_of_the_caller() { return json::parse(run_program({playground() / "probe", "report"}).out)["keyring"]; }

}  // namespace

TEST_CASE("options: --pid-file holds the pid in digits, and nothing else") {
    NEEDS_ROOT();
    Bundle bundle;
    bundle.probe({"wait-signal"});
    // Relative to where the caller stands, not to the bundle.
    const auto running = start(bundle, {.args = {"--pid-file", "pid"}, .spawn = {.directory = bundle.host()}});
    REQUIRE(running->read_line() == "READY");
    const std::string pid = await_file(bundle.host() / "pid");
    CHECK(pid.find_first_not_of("0123456789") == std::string::npos);
    CHECK(fs::read_symlink("/proc/" + pid + "/exe").filename() == "probe");
    const std::string status = read_text("/proc/" + pid + "/status");
    CHECK(status.find("NSpid:\t" + pid + "\t1\n") != std::string::npos);
    running->signal(SIGTERM);
    CHECK(running->finish().status == 0);
}

TEST_CASE("options: the bundle is the working directory unless named, --config another file") {
    NEEDS_ROOT();
    Bundle bundle;
    bundle.write_config();
    Ended ended = run_program(bundle.verb({"run", bundle.id()}), {.directory = bundle.path()});
    CHECK(ended.status == 0);
    if (runtime() == Runtime::runc) return;
    bundle.config["hostname"] = "other";
    write_text(bundle.host() / "other.json", bundle.config.dump());
    const Outcome outcome = [&] {
        ended = run_program(
            bundle.verb({"run", "--bundle", bundle.path(), "--config", bundle.host() / "other.json", bundle.id()}));
        return Outcome{ended.status, ended.out, ended.err};
    }();
    CHECK(outcome.answer()["hosts"]["hostname"] == "other");
}

TEST_CASE("options: a bundle without a config says what is missing") {
    NEEDS_ROOT();
    Bundle bundle;
    const Ended ended = run_program(bundle.verb({"run", "--bundle", bundle.host(), bundle.id()}));
    CHECK(ended.status == 1);
    CHECK(ended.err.find("config.json") != std::string::npos);
}

TEST_CASE("options: --detach returns while the container runs; state, delete") {
    NEEDS_ROOT();
    Bundle bundle;
    bundle.probe({"sleep-forever"});
    CHECK(run(bundle, {.args = {"--detach", "--pid-file", bundle.host() / "pid"}}).status == 0);
    const std::string pid = read_text(bundle.host() / "pid");
    CHECK(fs::exists("/proc/" + pid));

    const json state = json::parse(verb(bundle, {"state", bundle.id()}).out, nullptr, false);
    CHECK(state["id"] == bundle.id());
    CHECK(state["status"] == "running");
    CHECK(state["pid"] == std::stol(pid));
    CHECK(state["bundle"] == bundle.path().string());
    CHECK(state["ociVersion"].get<std::string>().rfind("1.", 0) == 0);

    CHECK(verb(bundle, {"delete", bundle.id()}).status == 1);  // it runs
    CHECK(fs::exists("/proc/" + pid));
    CHECK(verb(bundle, {"delete", "--force", bundle.id()}).status == 0);
    const Ended gone = verb(bundle, {"state", bundle.id()});
    CHECK(gone.status == 1);
    CHECK(gone.err.find("does not exist") != std::string::npos);
}

TEST_CASE("options: a detached container that has ended is stopped, and deleted without force") {
    NEEDS_ROOT();
    Bundle bundle;
    bundle.probe({"sleep-forever"});
    CHECK(run(bundle, {.args = {"--detach", "--pid-file", bundle.host() / "pid"}}).status == 0);
    const auto pid = static_cast<pid_t>(std::stol(read_text(bundle.host() / "pid")));
    const UniqueFd pidfd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
    CHECK(::kill(pid, SIGKILL) == 0);
    CHECK(await_readable(pidfd.get()));
    // Still a zombie of this program's: over for all that matters.
    const json state = json::parse(verb(bundle, {"state", bundle.id()}).out, nullptr, false);
    CHECK(state["status"] == "stopped");
    CHECK(state["pid"] == 0);
    CHECK(verb(bundle, {"delete", bundle.id()}).status == 0);
}

TEST_CASE("options: --keep leaves a stopped container to be deleted") {
    NEEDS_ROOT();
    if (runtime() == Runtime::crun) SKIP_TEST("this crun knows no --keep");
    Bundle bundle;
    CHECK(run_probe(bundle, {{"exit", "3"}}, {.args = {"--keep"}}).status == 3);
    const json state = json::parse(verb(bundle, {"state", bundle.id()}).out, nullptr, false);
    CHECK(state["status"] == "stopped");
    CHECK(state["pid"] == 0);
    CHECK(run(bundle).status == 1);  // the id is taken
    CHECK(verb(bundle, {"delete", bundle.id()}).status == 0);
    CHECK(run_probe(bundle, {{"exit", "3"}}).status == 3);
}

TEST_CASE("options: an id can be used once at a time") {
    NEEDS_ROOT();
    Bundle bundle;
    bundle.probe({"wait-signal"});
    const auto running = start(bundle);
    REQUIRE(running->read_line() == "READY");
    const Ended second = run_program(bundle.command_line({}));
    CHECK(second.status == 1);
    CHECK(second.err.find(bundle.id()) != std::string::npos);
    // The first one is none the worse for it.
    running->signal(SIGUSR1);
    CHECK(running->read_line() == "USR1");
    running->signal(SIGTERM);
    CHECK(running->finish().status == 0);
}

TEST_CASE("options: ids that could leave the state directory are refused") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    Bundle bundle;
    bundle.write_config();
    const std::string before = bundle.listing();
    for (const std::string& id :
         std::vector<std::string>{"", ".", "..", ".hidden", ".seccomp", "../escape", "a/b", "/absolute", "a b", "a\nb",
                                  "\xc3\xa9", std::string(256, 'x')}) {
        CAPTURE(id);
        for (const std::vector<std::string>& words :
             {std::vector<std::string>{"run", "--bundle", bundle.path(), "--", id},
              {"state", "--", id},
              {"delete", "--force", "--", id}}) {
            CHECK(verb(bundle, words).status == 1);
        }
    }
    CHECK(bundle.listing() == before);
}

TEST_CASE("options: delete and state of what is not there") {
    NEEDS_ROOT();
    Bundle bundle;
    CHECK(verb(bundle, {"delete", "--force", "nothing"}).status == 0);
    for (const std::string& word : std::vector<std::string>{"delete", "state"}) {
        CAPTURE(word);
        const Ended ended = verb(bundle, {word, "nothing"});
        CHECK(ended.status == 1);
        CHECK(ended.err.find("does not exist") != std::string::npos);
    }
}

TEST_CASE("options: a session keyring of its own, unless --no-new-keyring") {
    NEEDS_ROOT();
    Bundle bundle;
    const json ours = keyring_of_the_caller();
    if (ours.contains("error")) SKIP_TEST("this kernel has no keyrings");
    const json fresh = report_of(bundle)["keyring"];
    CHECK(fresh["id"] != ours["id"]);
    CHECK(fresh["description"].get<std::string>().find(bundle.id()) != std::string::npos);
    CHECK(report_of(bundle, {.args = {"--no-new-keyring"}})["keyring"]["id"] == ours["id"]);
}

TEST_CASE("options: --dry-run prints the plan and does nothing, for any user") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    Bundle bundle;
    bundle.mount("/new/place", "tmpfs", "tmpfs", {});
    bundle.config["process"]["cwd"] = "/new/cwd";
    bundle.write_config();
    const std::string before = bundle.listing();
    for (const bool as_root : {true, false}) {
        CAPTURE(as_root);
        RunOptions options{.args = {"--dry-run"}};
        if (!as_root) options.spawn.uid = kNobodySpecial;
        const Outcome outcome = run(bundle, options);
        CHECK_MESSAGE(outcome.status == 0, outcome.err);
        const json plan = json::parse(outcome.out, nullptr, false);
        CHECK(plan.is_object());
        CHECK(outcome.out.find("/new/place") != std::string::npos);
        CHECK(bundle.listing() == before);
    }
    // A config that would be refused is refused here too.
    bundle.config["process"]["cwd"] = "relative";
    CHECK(run(bundle, {.args = {"--dry-run"}}).status == 1);
}

TEST_CASE("options: --dry-run tells the steps in the order in which they are taken") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    for (const bool no_new_privileges : {true, false}) {
        CAPTURE(no_new_privileges);
        Bundle bundle;
        ask_for_everything(bundle);
        json& process = bundle.config["process"];
        process["noNewPrivileges"] = no_new_privileges;
        process["user"] = {{"uid", 7}, {"gid", 7}};
        for (const char* set : {"bounding", "permitted", "effective"})
            process["capabilities"][set].push_back("CAP_SYS_NICE");
        if (no_new_privileges) bundle.config["annotations"] = {{"org.pinfold.landlock", "true"}};
        bundle.config["linux"]["resources"]["pids"] = {{"limit", 100}};
        fs::permissions(bundle.host(), fs::perms(0755));
        check_order(bundle);
        check_order(bundle, {}, {"--strict", "--pid-file", bundle.host() / "pid"});
        // With ids of its own: the parent opens what the child cannot.
        bundle.add_namespace("user");
        bundle.config["linux"]["uidMappings"] = json::array({{{"containerID", 0}, {"hostID", 0}, {"size", 65536}}});
        bundle.config["linux"]["gidMappings"] = bundle.config["linux"]["uidMappings"];
        check_order(bundle);
    }
}

// Told and taken: a trampoline, or pinfold started again from a read-only file.
TEST_CASE("options: --dry-run tells how the container is kept from pinfold's own file") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    Bundle bundle;
    ask_for_everything(bundle);
    bundle.config["hooks"].erase("startContainer");
    json& process = bundle.config["process"];
    json& profile = bundle.config["linux"]["seccomp"];
    const auto steps = [&](const Names& options = {}) {
        Names args = options;
        args.emplace_back("--dry-run");
        check_order(bundle, {}, options);
        return told(run(bundle, {.args = args}).out).all;
    };
    const auto has = [](const Names& names, const char* name) { return std::ranges::count(names, name) > 0; };
    for (const bool no_new_privileges : {true, false}) {
        CAPTURE(no_new_privileges);
        process["noNewPrivileges"] = no_new_privileges;
        profile["syscalls"] = json::array();
        CHECK(has(steps(), "trampoline"));
        CHECK_FALSE(has(steps(), "own binary"));
        CHECK(has(steps({"--strict"}), "own binary"));
        CHECK_FALSE(has(steps({"--strict"}), "trampoline"));
        // Without no_new_privs the filter has to be loaded while there is the right to, and is in force then.
        profile["syscalls"] = {{{"names", {"execveat"}}, {"action", "SCMP_ACT_ERRNO"}}};
        CHECK(has(steps(), "trampoline") == no_new_privileges);
    }
}

// The trampoline speaks to nobody but by system calls: these are what a step of it does.
TEST_CASE("options: --dry-run tells the steps of the trampoline, whose system calls are made in that order") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    const auto check = [](const Bundle& bundle, bool waits) {
        const std::string trace = bundle.host() / "trace";
        Names words = {"/usr/bin/strace", "-f", "-qq", "-o", trace};
        const Names run_or_create = bundle.verb({waits ? "create" : "run", "--bundle", bundle.path(), bundle.id()});
        words.insert(words.end(), run_or_create.begin(), run_or_create.end());
        bundle.write_config();
        Names dry = run_or_create;
        dry.insert(dry.end() - 1, "--dry-run");
        const Names names = told(run_program(dry).out).all;
        Process traced(words, {.env = {"ASAN_OPTIONS=detect_leaks=0"}});
        if (waits) {
            while (verb(bundle, {"state", bundle.id()}).out.find("\"created\"") == std::string::npos) ::sched_yield();
            CHECK(verb(bundle, {"start", bundle.id()}).status == 0);
        }
        CHECK(traced.finish().status == 0);
        CHECK(json(calls_of_trampoline(read_text(trace))) == json(told_calls(names, waits)));
        if (waits) CHECK(verb(bundle, {"delete", "--force", bundle.id()}).status == 0);
    };
    for (const bool filter : {true, false}) {
        CAPTURE(filter);
        Bundle bundle;
        bundle.config["process"]["noNewPrivileges"] = true;
        // Forbids to wait, so that it is loaded last.
        if (filter)
            bundle.config["linux"]["seccomp"] = {
                {"defaultAction", "SCMP_ACT_ALLOW"},
                {"syscalls", {{{"names", {"accept4"}}, {"action", "SCMP_ACT_ERRNO"}}}}};
        bundle.probe({"exit", "0"});
        check(bundle, false);
        check(bundle, true);
    }
}

TEST_CASE("options: where no file in memory may be executed, pinfold starts again from a read-only one") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    if (!fs::exists("/proc/sys/vm/memfd_noexec")) SKIP_TEST("this kernel has no vm.memfd_noexec");
    Bundle bundle;
    bundle.probe({"exit", "7"});
    bundle.write_config();
    // It is a setting of a pid namespace.
    Names words = {
        "unshare", "--pid", "--fork", "--mount-proc", "sh", "-c", "echo 2 > /proc/sys/vm/memfd_noexec && exec \"$@\"",
        "sh"};
    const Names command = bundle.command_line({.global = {"--debug"}});
    words.insert(words.end(), command.begin(), command.end());
    const Ended ended = run_program(words);
    CHECK_MESSAGE(ended.status == 7, ended.err);
    CHECK(ended.err.find("] own binary") != std::string::npos);
    CHECK(ended.err.find("] trampoline") == std::string::npos);
}

TEST_CASE("options: --dry-run tells the steps of a process that takes over where others live") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    Bundle others;
    others.probe({"wait-signal"});
    Bundle bundle;
    ask_for_everything(bundle);
    const Container container(others, Container::As::running);
    for (json& one : bundle.config["linux"]["namespaces"]) {
        if (one["type"] == "pid") one["path"] = "/proc/" + std::to_string(container.pid()) + "/ns/pid";
    }
    for (const bool no_new_privileges : {true, false}) {
        CAPTURE(no_new_privileges);
        bundle.config["process"]["noNewPrivileges"] = no_new_privileges;
        check_order(bundle);
        Names options = {"--pid-file", bundle.host() / "pid"};
        // Without it, what is looked at would have a right that those who live there could take over.
        if (no_new_privileges) options.emplace_back("--strict");
        check_order(bundle, {}, options);
    }
}

TEST_CASE("options: --dry-run tells a normal user's steps in the order in which they are taken") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    Bundle bundle;
    ask_for_everything(bundle);
    bundle.make_rootless(kNobodySpecial);
    check_order(bundle, {.uid = kNobodySpecial});
}

TEST_CASE("options: --debug shows the steps with their times") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    Bundle bundle;
    const Outcome outcome = run_probe(bundle, {{"exit", "0"}}, {.global = {"--debug"}});
    const std::vector<std::string> lines = lines_of(outcome.err);
    CHECK(lines.size() >= 10);
    double last = 0;
    for (const std::string& line : lines) {
        CAPTURE(line);
        const size_t open = line.find('[');
        REQUIRE(line.find(" ms] ") != std::string::npos);
        // Parent and child write to one place and share one clock.
        const double now = std::stod(line.substr(open + 1));
        CHECK(now >= 0);
        last = std::max(last, now);
    }
    CHECK(last > 0);
    for (const std::string& step : std::vector<std::string>{"clone", "mounts", "root", "hostname", "network"}) {
        CAPTURE(step);
        CHECK(outcome.says(step));
    }
    // Quiet without it.
    CHECK(run(bundle).err == "");
}

TEST_CASE("options: --log takes the messages, as JSON lines if asked") {
    NEEDS_ROOT();
    Bundle bundle;
    const fs::path log = bundle.host() / "log.json";
    bundle.config["process"]["args"] = {"/not/there"};
    CHECK(run(bundle, {.global = {"--log", log, "--log-format", "json"}}).status != 0);
    CHECK(run(bundle, {.global = {"--debug", "--log", log, "--log-format", "json"}}).status != 0);  // appends
    const std::vector<std::string> lines = lines_of(read_text(log));
    REQUIRE(!lines.empty());
    std::string last_error;
    int errors = 0;
    for (const std::string& line : lines) {
        CAPTURE(line);
        const json entry = json::parse(line, nullptr, false);
        REQUIRE(entry.is_object());
        CHECK(entry.contains("level"));
        CHECK(entry.contains("msg"));
        const std::string time = entry.value("time", "");
        CHECK(time.size() >= 20);
        CHECK(time[10] == 'T');
        if (entry["level"] == "error") {
            last_error = entry["msg"];
            ++errors;
        }
    }
    CHECK(errors >= 2);
    CHECK(last_error.find("/not/there") != std::string::npos);
}

TEST_CASE("options: --log on a FIFO waits for no reader") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    const Bundle bundle;
    const fs::path log = bundle.host() / "log";
    REQUIRE(::mkfifo(log.c_str(), 0600) == 0);
    const Ended unread = verb(bundle, {"--log", log, "list"});
    CHECK(unread.status == 1);
    CHECK_MESSAGE(unread.err.find("open log file '" + log.string() + "'") != std::string::npos, unread.err);
    CHECK_MESSAGE(unread.err.find("hint: a FIFO needs") != std::string::npos, unread.err);
    UniqueFd reader(::open(log.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
    REQUIRE(reader);
    const UniqueFd filler(::open(log.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC));
    REQUIRE(filler);
    const Command wrong = {"--log", log, "state", "not-there"};
    CHECK(verb(bundle, wrong).status == 1);
    char text[4096];
    const ssize_t got = ::read(reader.get(), text, sizeof text);
    REQUIRE(got > 0);
    CHECK(std::string(text, size_t(got)).find("not-there") != std::string::npos);
    const std::string fill(sizeof text, ' ');
    while (::write(filler.get(), fill.data(), fill.size()) > 0) continue;
    const Ended slow = verb(bundle, wrong);  // the reader takes nothing more
    CHECK(slow.status == 1);
    CHECK(slow.err.find("not-there") != std::string::npos);
}

TEST_CASE("options: --log outlives its reader") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    Bundle bundle;
    const fs::path log = bundle.host() / "log";
    REQUIRE(::mkfifo(log.c_str(), 0600) == 0);
    UniqueFd reader(::open(log.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
    REQUIRE(reader);
    bundle.config["process"]["args"] = {"/probe", "wait-signal"};
    const auto running = start(bundle, {.global = {"--debug", "--log", log}});
    REQUIRE(running->read_line() == "READY");
    reader.reset();
    running->signal(SIGTERM);
    CHECK(running->finish().status != 128 + SIGPIPE);
    CHECK(verb(bundle, {"state", bundle.id()}).status == 1);  // it was cleaned up
    // An error that comes when the reader has gone: of a script that is awaited, for a root that is not there.
    reader = UniqueFd(::open(log.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
    REQUIRE(reader);
    const UniqueFd opened(::inotify_init1(IN_CLOEXEC));
    REQUIRE(::inotify_add_watch(opened.get(), log.c_str(), IN_OPEN) >= 0);
    int pipe[2];
    REQUIRE(::pipe2(pipe, O_CLOEXEC) == 0);
    const UniqueFd script(pipe[0]);
    UniqueFd writer(pipe[1]);
    Process job(bundle.verb({"--log", log, "sandbox", "--rootfs", "/not/there", "--lang", "sh", "-"}),
                {.fds = {{0, script.get()}}});
    REQUIRE(await_readable(opened.get()));
    reader.reset();
    writer.reset();
    const Ended ended = job.finish();
    CHECK(ended.status == 125);
    CHECK_MESSAGE(ended.err.find("/not/there") != std::string::npos, ended.err);
}

TEST_CASE("options: what can never be written to is no standard output, and nobody waits for it") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    const Bundle bundle;
    int pipe_ends[2];
    REQUIRE(::pipe2(pipe_ends, O_CLOEXEC) == 0);
    const UniqueFd reader(pipe_ends[0]), writer(pipe_ends[1]);
    const UniqueFd events(::eventfd(0, EFD_CLOEXEC)), clock(::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC));
    const UniqueFd listener(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_un nameless{AF_UNIX, {}};
    REQUIRE(::bind(listener.get(), reinterpret_cast<sockaddr*>(&nameless), sizeof nameless.sun_family) == 0);
    REQUIRE(::listen(listener.get(), 1) == 0);
    const std::vector<Command> lines = {
        {"list"}, {"template", "list"}, {"sandbox", "--name", bundle.id(), "--capture", "--result", "-", "--", "true"}};
    for (const UniqueFd* useless : {&reader, &events, &clock, &listener}) {
        for (const Command& line : lines) {
            CAPTURE(line[0]);
            SpawnOptions spawn;
            spawn.fds = {{1, useless->get()}};
            const Ended ended = run_program(bundle.verb(line), spawn);
            CHECK(ended.status == (line[0] == "sandbox" ? 125 : 1));
            CHECK_MESSAGE(ended.err.find("write to standard output: ") != std::string::npos, ended.err);
        }
    }
}

TEST_CASE("options: wrong ones are refused") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    Bundle bundle;
    bundle.write_config();
    const std::string before = bundle.listing();
    const std::string path = bundle.path();
    for (const std::vector<std::string>& words : {std::vector<std::string>{},
                                                  {"nosuchverb"},
                                                  {"run"},
                                                  {"run", "--nosuchoption", "x"},
                                                  {"run", "--bundle", path, "one", "two"},
                                                  {"run", "--bundle", path, "--preserve-fds", "-1", "x"},
                                                  {"run", "--bundle", path, "--preserve-fds", "many", "x"},
                                                  {"--log-format", "xml", "run", "--bundle", path, "x"},
                                                  {"--cgroup-manager", "other", "run", "--bundle", path, "x"},
                                                  {"run", "--bundle", path + "/nowhere", "x"},
                                                  {"--log", path + "/no/such/log", "run", "--bundle", path, "x"}}) {
        CAPTURE(words.empty() ? std::string() : words.back());
        const Ended ended = verb(bundle, words);
        CHECK(ended.status == 1);
        CHECK(ended.out == "");
        CHECK(ended.err != "");
    }
    CHECK(bundle.listing() == before);
}

TEST_CASE("options: --version names the program, its version and the specification's") {
    NEEDS_ROOT();
    const Ended ended = run_program([] {
        std::vector<std::string> line = {runtime_command().front()};
        line.push_back("--version");
        return line;
    }());
    CHECK(ended.status == 0);
    CHECK(ended.out.find(" version ") != std::string::npos);
    CHECK(ended.out.find("spec: 1.") != std::string::npos);
}

namespace {

// Listens, has all the connections that it allows, and takes none.
class FullSocket {
public:
    explicit FullSocket(const fs::path& path) : path_(path) {
        sockaddr_un address{};
        address.sun_family = AF_UNIX;
        path.string().copy(address.sun_path, sizeof address.sun_path - 1);
        const auto* place = reinterpret_cast<const sockaddr*>(&address);
        REQUIRE(::bind(listener_.get(), place, sizeof address) == 0);
        REQUIRE(::listen(listener_.get(), 0) == 0);
        for (int status = 0; status == 0;) {
            waiting_.emplace_back(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
            status = ::connect(waiting_.back().get(), place, sizeof address);
        }
        REQUIRE(errno == EAGAIN);
    }
    const fs::path& path() const { return path_; }

private:
    fs::path path_;
    UniqueFd listener_{::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)};
    std::vector<UniqueFd> waiting_;
};

}  // namespace

TEST_CASE("options: a socket at which nobody accepts ends the start after a while, and leaves nothing") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    Bundle console;
    Bundle pidfd;
    Bundle listener;
    const FullSocket full(console.host() / "full");
    console.config["process"]["terminal"] = true;
    listener.config["linux"]["seccomp"] = {{"defaultAction", "SCMP_ACT_ALLOW"},
                                           {"listenerPath", full.path()},
                                           {"syscalls", {{{"names", {"getppid"}}, {"action", "SCMP_ACT_NOTIFY"}}}}};
    for (Bundle* bundle : {&console, &pidfd, &listener}) bundle->probe({"exit", "0"}).write_config();
    Process first(console.command_line({.args = {"--detach", "--console-socket", full.path()}}), {});
    Process second(pidfd.command_line({.args = {"--pidfd-socket", full.path()}}), {});
    Process third(listener.command_line({}), {});
    for (Process* process : {&first, &second, &third}) {
        const Ended ended = process->finish();
        CHECK(ended.status == 1);
        CHECK_MESSAGE(ended.err.find("nobody accepts there") != std::string::npos, ended.err);
    }
}
