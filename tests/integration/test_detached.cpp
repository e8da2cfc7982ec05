// Sandboxes that stay: exec with a deadline and a result, cp, and their end by delete, time or prune.
#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <memory>
#include <optional>

#include "sandbox.hpp"

using namespace pinfold::integration;

namespace {

// An exec with a deadline whose supervisor gets a signal once it runs. They run side by side; all of them have to be
// checked before one of them goes.
class Unsupervised {
public:
    Unsupervised(bool rootless, int number)
        : rootless_(rootless), number_(number), spawn_(rootless ? normal_user(bundle_) : SpawnOptions{}) {
        box_.emplace(bundle_, std::vector<std::string>{}, Command{}, spawn_);
        exec_.emplace(bundle_.verb({"exec", "--timeout", brief(), bundle_.id(), "sh", "-c",
                                    "(setsid sleep 2000 &); echo in; sleep 3000"}),
                      spawn_);
        CHECK(exec_->read_line() == "in");
        exec_->signal(number);
        if (number == SIGKILL) CHECK(exec_->finish().status == 128 + SIGKILL);
    }
    void check() {
        CAPTURE(rootless_);
        CAPTURE(number_);
        const auto start = std::chrono::steady_clock::now();
        while (box_->programs().find("sleep ") != std::string::npos) {
            if (std::chrono::steady_clock::now() - start > patience()) FAIL("it still runs");
        }
        if (number_ == SIGSTOP) {
            exec_->signal(SIGCONT);
            CHECK(exec_->finish().status == 124);
        }
        while (::waitpid(-1, nullptr, WNOHANG) > 0) continue;  // what a killed parent has left to us
        box_.reset();
    }

private:
    bool rootless_;
    int number_;
    Bundle bundle_;
    SpawnOptions spawn_;
    std::optional<DetachedSandbox> box_;
    std::optional<Process> exec_;
};

}  // namespace

TEST_CASE("detached: what one exec leaves is there for the next, until delete") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    for (const bool rootless : {false, true}) {
        CAPTURE(rootless);
        Bundle bundle;
        const SpawnOptions spawn = rootless ? normal_user(bundle) : SpawnOptions{};
        const DetachedSandbox box(bundle, {}, {}, spawn);
        CHECK(box.exec({}, {"sh", "-c", "id -u > /workspace/f"}).status == 0);
        CHECK(box.exec({}, {"cat", "/workspace/f"}).out == "1000\n");
        CHECK(box.run({"cp", "-", bundle.id() + ":/workspace/in"}, {.input = "bytes"}).status == 0);
        CHECK(box.exec({}, {"cat", "/workspace/in"}).out == "bytes");
        CHECK(box.run({"cp", bundle.id() + ":/workspace/f", "-"}).out == "1000\n");
        const json judged = box.judge({"--timeout", "100s"}, {"unshare", "-m", "true"});
        CHECK(judged["status"] == "exited");
        CHECK(judged["exit_code"] != 0);
        CHECK(judged["denied"].is_null() == rootless);
        CHECK(judged["receipt_sha256"].is_null() == rootless);
        CHECK(box.run({"list", "-q"}).out == bundle.id() + "\n");
        CHECK(box.run({"delete", "--force", bundle.id()}).status == 0);
        CHECK(box.run({"list", "-q"}).out == "");
    }
}

// Also without any group, which would tell who belongs to it.
TEST_CASE("detached: a session goes on in its directory, with its environment, and knows no other") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    for (const bool rootless : {false, true}) {
        CAPTURE(rootless);
        Bundle bundle;
        const DetachedSandbox box(bundle, {}, {}, rootless ? normal_user(bundle) : SpawnOptions{});
        const auto in = [&](const char* name, const std::string& words, int status = 0) {
            const Ended ended = box.exec({"--session", name}, {words});
            CHECK_MESSAGE(ended.status == status, ended.err);
            return ended.out;
        };
        CHECK(in("a", "mkdir -p 'x y' && cd 'x y' && export ONE=\"it's 1\" && TWO=2") == "");
        CHECK(in("a", "pwd; echo \"$ONE\" \"<$TWO>\"") == "/workspace/x y\nit's 1 <>\n");
        CHECK(in("b", "pwd; echo \"<$ONE>\"") == "/workspace\n<>\n");
        in("a", "cd /usr; exit 3", 3);
        CHECK(in("a", "pwd") == "/usr\n");
        in("a", "cd /tmp; sh -c 'kill -9 $PPID'", 128 + SIGKILL);  // it has left nothing
        CHECK(in("a", "pwd") == "/usr\n");
        CHECK(box.exec({"--session", "a", "--timeout", "100s"}, {"pwd"}).out == "/usr\n");
        in("a", "mkdir /tmp/gone; cd /tmp/gone; rmdir /tmp/gone");
        const Ended gone = box.exec({"--session", "a"}, {"pwd"});
        CHECK(gone.status != 0);
        CHECK_MESSAGE(gone.err.find("/tmp/gone") != std::string::npos, gone.err);
        CHECK(box.exec({"--session", "a", "--user", "0"}, {"pwd"}).err.find("--user") != std::string::npos);
        CHECK(box.exec({"--session", "../x"}, {"pwd"}).err.find("--session '../x'") != std::string::npos);
        CHECK(box.exec({"--session", "a", "--cwd", "/usr"}, {"pwd"}).out == "/usr\n");
        // Values are for the program, and not for whoever lists processes.
        const Ended secret =
            box.exec({"--session", "a", "-e", "KEY=it's \"4711\" $x", "-e", "OTHER="},
                     {"echo \"$KEY,$OTHER\"; tr '\\0' ' ' < /proc/$$/cmdline | grep -c 47\"\"11; env | grep pinfold"});
        CHECK(secret.out == "it's \"4711\" $x,\n0\n");
        CHECK(box.exec({"--session", "a"}, {"echo \"$KEY\""}).out == "it's \"4711\" $x\n");
        CHECK(box.exec({"--session", "a", "-e", "KEY=new"}, {"echo \"$KEY\""}).out == "new\n");
        CHECK(in("a", "pwd") == "/usr\n");
    }
}

TEST_CASE("detached: a session is kept whatever its words do to their shell, or they fail") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    const Bundle bundle;
    const DetachedSandbox box(bundle, {});
    const auto in = [&](const std::vector<std::string>& words, const std::vector<std::string>& more = {}) {
        std::vector<std::string> options = {"--session", "NAME"};
        options.insert(options.end(), more.begin(), more.end());
        const Ended ended = box.exec(options, words);
        CHECK_MESSAGE(ended.status == 0, ended.err);
        return ended.out;
    };
    for (const char* words :
         {"export PATH=/nowhere", "export IFS=/:", "export session=/workspace/s file=x", "umask 777", "set -eua",
          "trap 'echo bye' EXIT", "cd() { echo no; }", "trap 'true' EXIT; (exit 0)", "set -C -f; PWD=/elsewhere"}) {
        CAPTURE(words);
        box.exec({}, {"sh", "-c", "rm -f /tmp/.pinfold-session-NAME*"});
        in({"mkdir -p '/tmp/it is\n'; cd '/tmp/it is\n'; export A=\"it's\"; cd /usr; command cd -;", words});
        CHECK(in({"command", "pwd;", "echo", "\"$A\"", "$#"}) == "/tmp/it is\n\nit's 0\n");
    }
    box.exec({}, {"sh", "-c", "rm -f /tmp/.pinfold-session-NAME*"});
    // Who names a variable or a directory means it.
    CHECK(in({"pwd; echo $X"}, {"-e", "X=5", "--cwd", "/tmp"}) == "/tmp\n5\n");
    CHECK(in({"pwd; echo $X"}, {"-e", "X=6 7", "--cwd", "/usr"}) == "/usr\n6 7\n");
    CHECK(in({"pwd; echo $X"}) == "/usr\n6 7\n");
    // Several at once: the last one wins, with all that it has left.
    for (int round = 0; round < 5; ++round) {
        std::vector<std::unique_ptr<Process>> at_once;
        for (const char* place : {"/usr", "/etc", "/tmp", "/bin"})
            at_once.push_back(std::make_unique<Process>(
                bundle.verb({"exec", "--session", "NAME", bundle.id(), std::string("cd ") + place + "; export B=$PWD"}),
                SpawnOptions{}));
        for (const auto& one : at_once) CHECK(one->finish().status == 0);
        CHECK(in({"[ \"$PWD\" = \"$B\" ] && echo same"}) == "same\n");
    }
    // What cannot be kept is told.
    const Ended lost = box.exec({"--session", "NAME"}, {"rm -f /tmp/.pinfold-*; mkdir /tmp/.pinfold-session-NAME"});
    CHECK(lost.status == 255);
    CHECK(lost.err.find("could not be kept") != std::string::npos);
    CHECK(box.exec({}, {"sh", "-c", "ls -A /tmp/.pinfold-session-NAME /tmp | grep -c 'NAME[.]'"}).out == "0\n");
}

TEST_CASE("detached: exec with a deadline ends all that it started, and nothing else") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    for (const bool rootless : {false, true}) {
        CAPTURE(rootless);
        Bundle bundle;
        const SpawnOptions spawn = rootless ? normal_user(bundle) : SpawnOptions{};
        const DetachedSandbox box(bundle, {}, {}, spawn);
        Process other(bundle.verb({"exec", bundle.id(), "sh", "-c", "echo in; exec sleep 1000"}), spawn);
        CHECK(other.read_line() == "in");
        const json result =
            box.judge({"--timeout", brief()}, {"sh", "-c",
                                               "trap '' TERM; echo before; (setsid sleep 2000 &); (sleep 2500 &);"
                                               "unshare -m; sleep 3000"});
        CHECK(result["status"] == "timed_out");
        CHECK(result["stdout"] == "before\n");
        if (!rootless) REQUIRE(denied_call(result, "unshare") != nullptr);
        const std::string left = box.programs();
        CHECK(left.find("sleep 1000") != std::string::npos);
        for (const char* gone : {"sleep 2000", "sleep 2500", "sleep 3000"}) {
            CAPTURE(std::string(gone));
            CHECK(left.find(gone) == std::string::npos);
        }
        CHECK(box.exec({"--timeout", brief()}, {"sleep", "1000"}).status == 124);
        CHECK(box.exec({"--timeout", "100s"}, {"sh", "-c", "exit 7"}).status == 7);
        const json flood = box.judge({"--output-limit", "1000"}, {"sh", "-c", "yes | head -c 100000"});
        CHECK(flood["status"] == "output_limit");
        CHECK(flood["stdout"].get<std::string>().size() == 1000);
        const Ended much = box.exec({"--capture", "--output-limit", "257m"}, {"true"});
        CHECK(much.status != 0);
        CHECK_MESSAGE(much.err.find("--output-limit: found '257m'") != std::string::npos, much.err);
        CHECK(cgroups_named("exec-").empty());
        other.signal(SIGTERM);
        CHECK(other.finish().status == 128 + SIGTERM);
    }
}

TEST_CASE("detached: an exec is not told to have run out of memory because another one did") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    const Bundle bundle;
    const DetachedSandbox box(bundle, {"--memory", "64m"});
    const std::string result = bundle.host() / "result";
    REQUIRE(box.exec({}, {"mkfifo", "begun", "go"}).status == 0);
    Process waits(
        bundle.verb({"exec", "--result", result, bundle.id(), "sh", "-c", "echo > begun; read x < go; exit 3"}), {});
    REQUIRE(box.exec({}, {"sh", "-c", "read x < begun"}).status == 0);
    const json eater = box.judge({}, {"perl", "-e", "$x = 'x' x (200 << 20)"});
    CHECK(eater["status"] == "oom_killed");
    CHECK(box.judge({}, {"sh", "-c", "perl -e '$x = \"x\" x (200 << 20)'"})["status"] == "oom_killed");
    REQUIRE(box.exec({}, {"sh", "-c", "echo > go"}).status == 0);
    CHECK(waits.finish().status == 3);
    const json waited = json::parse(read_text(result));
    CHECK(waited["status"] == "exited");
    CHECK(waited["exit_code"] == 3);
    CHECK(waited["usage"]["oom_kills"] == 0);
}

TEST_CASE("detached: hints that can be followed: a name that is taken, a deadline in a paused sandbox") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    const Bundle bundle;
    const DetachedSandbox box(bundle, {});
    const Ended taken = run_job(bundle, {{}, {"true"}, {}});
    CHECK(taken.status == 125);
    CHECK_MESSAGE(taken.err.find("pinfold delete --force " + bundle.id()) != std::string::npos, taken.err);
    REQUIRE(box.run({"pause", bundle.id()}).status == 0);
    const Ended paused = box.exec({"--timeout", "2s"}, {"true"});
    CHECK(paused.status == 255);
    CHECK_MESSAGE(paused.err.find("hint: resume it first\n") != std::string::npos, paused.err);
    CHECK(box.run({"resume", bundle.id()}).status == 0);
}

TEST_CASE("detached: an exec whose supervisor is stopped or killed ends at its deadline all the same") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    std::vector<std::unique_ptr<Unsupervised>> execs;
    for (const bool rootless : {false, true}) {
        for (const int number : {SIGSTOP, SIGKILL}) execs.push_back(std::make_unique<Unsupervised>(rootless, number));
    }
    for (const auto& exec : execs) exec->check();
}

// At each of the messages that it sends while the program is on its way.
TEST_CASE("detached: an exec that is killed before its program began ends at its deadline all the same") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    Bundle bundle;
    const DetachedSandbox box(bundle, {});
    for (int message = 1; message <= 4; ++message) {
        std::vector<std::string> line = {
            "/usr/bin/strace",       "-qq", "-o",
            bundle.host() / "trace", "-e",  "inject=sendmsg:signal=SIGKILL:when=" + std::to_string(message)};
        const std::vector<std::string> exec =
            bundle.verb({"exec", "--timeout", brief(), bundle.id(), "sleep", std::to_string(2000 + message)});
        line.insert(line.end(), exec.begin(), exec.end());
        run_program(line, {.env = {"ASAN_OPTIONS=detect_leaks=0"}});
    }
    const auto start = std::chrono::steady_clock::now();
    while (box.programs().find("sleep ") != std::string::npos) {
        if (std::chrono::steady_clock::now() - start > patience()) FAIL("it still runs: " << box.programs());
    }
    while (::waitpid(-1, nullptr, WNOHANG) > 0) continue;  // what its parents have left to us
}

// Its number may come round again, and what it has left may live.
TEST_CASE("detached: a group that an exec has left is no obstacle to the next, and goes with it if it is empty") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    if (cgroup2_mount().empty()) SKIP_TEST("no cgroup v2 on this machine");
    const Bundle bundle;
    const DetachedSandbox box(bundle, {});
    fs::path group;
    for (const std::string& one : cgroups_named(bundle.id())) {
        if (one.starts_with(cgroup2_mount().string())) group = one;
    }
    REQUIRE(!group.empty());
    std::string exec = "exec";
    for (const std::string& word : bundle.verb({"exec", "--timeout", "100s", bundle.id(), "echo", "ran"}))
        exec += " " + word;
    fs::create_directory(group / "exec-4194303");  // of one that was killed
    const std::string left = group / "exec-$$";
    const Ended again = run_program({"/bin/sh", "-c", "mkdir " + left + "; " + exec});
    CHECK_MESSAGE(again.out == "ran\n", again.err);
    CHECK(cgroups_named("exec-").empty());
    Process lives({"/bin/sleep", "1000"}, SpawnOptions{});
    const std::string in_use = "mkdir " + left + " && echo " + std::to_string(lives.pid()) + " > " + left +
                               "/cgroup.procs && echo $$ && " + exec;
    const Ended beside = run_program({"/bin/sh", "-c", in_use});
    CHECK_MESSAGE(beside.out.ends_with("ran\n"), beside.err);
    CHECK(::kill(lives.pid(), 0) == 0);
    CHECK(fs::exists(group / ("exec-" + beside.out.substr(0, beside.out.find('\n')))));
    lives.signal(SIGKILL);
    CHECK(lives.finish().status == 128 + SIGKILL);
    CHECK(box.exec({"--timeout", "100s"}, {"true"}).status == 0);
    CHECK(cgroups_named("exec-").empty());
}

// As where an exec removes its own group: what is opened then has nothing behind it.
TEST_CASE("detached: a group that vanishes while it is removed is removed") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    if (pinfold::testing::sanitised())
        SKIP_TEST("a program with shared libraries reads them by the call that is made to fail");
    if (!fs::exists("/usr/bin/strace")) SKIP_TEST("needs strace");
    if (cgroup2_mount().empty()) SKIP_TEST("no cgroup v2 on this machine");
    const Bundle bundle;
    const DetachedSandbox box(bundle, {});
    std::vector<std::string> words = {"/usr/bin/strace",
                                      "-o",
                                      bundle.host() / "trace",
                                      "-e",
                                      "trace=rmdir,unlinkat,pread64",
                                      "-e",
                                      "inject=rmdir:error=EBUSY:when=1",
                                      "-e",
                                      "inject=unlinkat:error=EBUSY:when=1",
                                      "-e",
                                      "inject=pread64:error=ENODEV:when=1"};
    const std::vector<std::string> removal = bundle.verb({"delete", "--force", bundle.id()});
    words.insert(words.end(), removal.begin(), removal.end());
    const Ended removed = run_program(words, {.env = {"ASAN_OPTIONS=detect_leaks=0"}});
    CHECK_MESSAGE(removed.status == 0, removed.err);
    CHECK(read_text(bundle.host() / "trace").find("ENODEV") != std::string::npos);
}

TEST_CASE("detached: with a command it ends with that; with a timeout, by itself") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    for (const bool rootless : {false, true}) {
        if (rootless && pinfold::testing::sanitised())
            SKIP_TEST("as root alone: the sanitizers take more memory than a job of a normal user has");
        CAPTURE(rootless);
        Bundle bundle;
        const SpawnOptions spawn = rootless ? normal_user(bundle) : SpawnOptions{};
        {
            const DetachedSandbox box(bundle, {"--timeout", brief()}, {"sh", "-c", "trap '' TERM; sleep 1000"}, spawn);
            box.await_end();
        }
        const DetachedSandbox box(bundle, {}, {"sh", "-c", "exec sleep 1000"}, spawn);
        CHECK(box.run({"kill", bundle.id(), "TERM"}).status == 0);
        box.await_end();
        CHECK(box.run({"prune"}).out == bundle.id() + "\n");
    }
}

TEST_CASE("detached: a user without a key left has sandboxes, but no keyrings where they are asked for") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    constexpr uid_t kOther = kNobodySpecial + 1;  // its keys are missed by nobody else
    Bundle bundle;
    bundle.make_rootless(kOther);
    const SpawnOptions user{.uid = kOther, .env = {"HOME=/", "XDG_RUNTIME_DIR="}};
    Process hoard({playground() / "probe", "fill-keys"}, user);
    REQUIRE(hoard.read_line() == "READY");
    {
        const DetachedSandbox sandbox(bundle, {}, {}, user);
        CHECK(sandbox.exec({}, {"sh", "-c", "exit 7"}).status == 7);
    }
    const fs::path profile = bundle.host() / "keys.json";
    std::ofstream(profile)
        << R"({"extends": "default", "syscalls": [{"names": ["add_key"], "action": "SCMP_ACT_ALLOW"}]})";
    const Ended refused = run_job(bundle, {{"--seccomp", profile}, {"true"}, user});
    CHECK(refused.status == 125);
    CHECK_MESSAGE(refused.err.find("raise kernel.keys.maxkeys, or use a profile") != std::string::npos, refused.err);
    bundle.probe({"exit", "0"}).write_config();
    const Ended run = run_program(bundle.command_line({}), user);
    CHECK_MESSAGE(run.err.find("raise kernel.keys.maxkeys, or use --no-new-keyring") != std::string::npos, run.err);
    CHECK(run_program(bundle.command_line({.args = {"--no-new-keyring"}}), user).status == 0);
}

TEST_CASE("detached: prune removes what is not used, and what is used it leaves") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    const Bundle bundle;
    const DetachedSandbox box(bundle, {"--idle-timeout", "1s"});
    CHECK(box.run({"prune"}).out == "");
    Process busy(bundle.verb({"exec", bundle.id(), "sh", "-c", "echo in; exec sleep 1000"}), SpawnOptions{});
    CHECK(busy.read_line() == "in");
    // As if it had been unused for long.
    const fs::path record = bundle.state_root() / bundle.id() / "state.json";
    const auto long_ago = fs::last_write_time(record) - std::chrono::hours(1);
    fs::last_write_time(record, long_ago);
    CHECK(box.run({"prune"}).out == "");
    busy.signal(SIGTERM);
    CHECK(busy.finish().status == 128 + SIGTERM);
    const std::vector<std::string> rest = {"exec", bundle.id(), "true"};
    CHECK(box.run(rest).status == 0);  // which uses it
    CHECK(box.run({"prune"}).out == "");
    fs::last_write_time(record, long_ago);
    CHECK(box.run({"prune", "--dry-run"}).out == bundle.id() + "\n");
    CHECK(box.run({"prune"}).out == bundle.id() + "\n");
    CHECK(box.run({"prune"}).out == "");
}

TEST_CASE("detached: prune leaves containers alone that are no sandboxes") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    Bundle bundle;
    bundle.probe({"exit", "0"});
    const Container container(bundle, Container::As::running);
    container.await_end();
    CHECK(verb(bundle, {"prune"}).out == "");
    CHECK(verb(bundle, {"state", bundle.id()}).status == 0);
}

// Whoever makes a state is killed when its directory is there, and not yet locked.
TEST_CASE("detached: prune removes a directory whose maker died at once, but none that somebody is just making") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    if (!fs::exists("/usr/bin/strace")) SKIP_TEST("needs strace");
    const Bundle bundle;
    std::vector<std::string> killed = {"/usr/bin/strace", "-o", bundle.host() / "trace",          "-e",
                                       "trace=flock",     "-e", "inject=flock:signal=KILL:when=1"};
    const std::vector<std::string> job = bundle.verb({"sandbox", "--name", bundle.id(), "--", "true"});
    killed.insert(killed.end(), job.begin(), job.end());
    run_program(killed, {.env = {"ASAN_OPTIONS=detect_leaks=0"}});
    const fs::path left = bundle.state_root() / bundle.id();
    REQUIRE(fs::is_empty(left));
    const auto prune = [&] { return verb(bundle, {"prune"}).out; };
    CHECK(prune() == "");  // its maker may be about to lock it
    const auto long_ago = fs::last_write_time(left) - std::chrono::minutes(2);
    fs::last_write_time(left, long_ago);
    {
        const UniqueFd maker(::open(left.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
        REQUIRE(::flock(maker.get(), LOCK_EX) == 0);
        CHECK(prune() == "");
    }
    CHECK(verb(bundle, {"prune", "--dry-run"}).out == bundle.id() + "\n");
    CHECK(fs::exists(left));
    CHECK(prune() == bundle.id() + "\n");
    CHECK(!fs::exists(left));
    // A record that has no configuration beside it yet is the next thing that can be left.
    const DetachedSandbox box(bundle, {});
    const fs::path other = bundle.state_root() / (bundle.id() + "-2");
    fs::create_directory(other);
    json record = json::parse(read_text(left / "state.json"));
    record["id"] = bundle.id() + "-2";
    record["cgroup"] = json::object();
    write_text(other / "state.json", record.dump());
    CHECK(prune() == bundle.id() + "-2\n");
    CHECK(!fs::exists(other));
}

TEST_CASE("detached: prune ends what was paused before its time was over") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    const Bundle bundle;
    const DetachedSandbox box(bundle, {"--timeout", "1s"}, {"sleep", "1000"});
    const Ended paused = box.run({"pause", bundle.id()});
    REQUIRE_MESSAGE(paused.status == 0, paused.err);
    const auto start = std::chrono::steady_clock::now();
    std::string pruned;
    while ((pruned = box.run({"prune"}).out).empty()) {
        if (std::chrono::steady_clock::now() - start > patience()) FAIL("it is still there");
    }
    CHECK(pruned == bundle.id() + "\n");
    CHECK(std::chrono::steady_clock::now() - start > std::chrono::milliseconds(500));
    CHECK(box.run({"state", bundle.id()}).status == 1);
}

TEST_CASE("detached: a policy's ceiling counts those that run") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    const Bundle bundle;
    write_text(bundle.host() / "policy.json", R"({"max_sandboxes": 1})");
    const DetachedSandbox box(bundle, {});
    std::vector<std::string> words = bundle.verb({"sandbox", "--", "true"});
    words.insert(words.begin() + 1, {"--policy", bundle.host() / "policy.json"});
    const Ended refused = run_program(words);
    CHECK(refused.status == 125);
    CHECK_MESSAGE(refused.err.find("max_sandboxes") != std::string::npos, refused.err);
    CHECK(box.run({"delete", "--force", bundle.id()}).status == 0);
    CHECK(run_program(words).status == 0);
}

TEST_CASE("detached: what nobody would stay for is refused") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    const Bundle bundle;
    for (const std::vector<std::string>& options :
         {std::vector<std::string>{"--capture"}, {"--result", bundle.host() / "result"}}) {
        std::vector<std::string> all = {"--detach"};
        all.insert(all.end(), options.begin(), options.end());
        const Ended ended = run_job(bundle, {all, {"true"}, {}});
        CHECK(ended.status == 125);
        CHECK(ended.err.find("use wait --result, logs, state and cp") != std::string::npos);
    }
    CHECK(run_job(bundle, {{"--idle-timeout", "1s"}, {"true"}, {}}).status == 125);
}

TEST_CASE("detached: options of exec that would do nothing are refused") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    Bundle bundle;
    const SpawnOptions user = normal_user(bundle);
    const DetachedSandbox sandbox(bundle, {}, {}, user);
    const auto refused = [&](const std::vector<std::string>& options, const std::string& words) {
        const Ended ended = sandbox.exec(options, {"true"});
        CHECK(ended.status == 255);
        CHECK_MESSAGE(ended.err.find(words) != std::string::npos, ended.err);
    };
    refused({"-g", "50"}, "--additional-gids: ");
    refused({"--cap", "CAP_NONSENSE"}, "--cap 'CAP_NONSENSE': there is no such capability");
    if (cgroups_named(bundle.id()).empty()) refused({"--cgroup", "sub"}, "--cgroup 'sub': the container has no cgroup");
    const std::string process = bundle.host() / "process.json";
    write_text(process, R"({"args": ["true"], "cwd": "/", "user": {}})");
    for (const std::vector<std::string>& options :
         {std::vector<std::string>{"--cap", "CAP_KILL"}, {"--cwd", "/tmp"}, {"--no-new-privs"}, {"-e", "A=B"}}) {
        std::vector<std::string> words = {"exec", "--process", process};
        words.insert(words.end(), options.begin(), options.end());
        words.push_back(bundle.id());
        const Ended ended = sandbox.run(words);
        CHECK(ended.status == 255);
        CHECK_MESSAGE(ended.err.find("--process names the whole process, and excludes ") != std::string::npos,
                      ended.err);
    }
}

TEST_CASE("detached: a sandbox whose name could not be told is ended and removed") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    Bundle bundle;
    const UniqueFd full(::open("/dev/full", O_WRONLY | O_CLOEXEC));
    int ends[2];
    REQUIRE(::pipe2(ends, O_CLOEXEC) == 0);
    const UniqueFd unread(ends[1]);
    ::close(ends[0]);
    for (const int out : {full.get(), unread.get()}) {
        CAPTURE(out);
        const Ended ended = run_job(bundle, {{"--detach"}, {"sleep", "1000"}, {.fds = {{1, out}}}});
        CHECK(ended.status == 125);
        CHECK_MESSAGE(ended.err.find("write to standard output") != std::string::npos, ended.err);
        CHECK(!fs::exists(bundle.state_root() / bundle.id()));
    }
}
