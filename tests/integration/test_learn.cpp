// `seccomp learn`: a profile from what a program does, under which it does the same again.
#include <signal.h>

#include "sandbox.hpp"

using namespace pinfold::integration;

namespace {

// Opens a socket of a kind that none of the programs below needs; perl is on every Debian.
const Command kOpensSocket = {"perl", "-e", "socket(my $s, 2, 1, 0) or exit($! == 1 ? 7 : 8)"};

Ended learn(const Bundle& bundle, const Job& job) {
    std::vector<std::string> words = bundle.verb({"seccomp", "learn", "--name", bundle.id()});
    words.insert(words.end(), job.options.begin(), job.options.end());
    words.push_back("--");
    words.insert(words.end(), job.command.begin(), job.command.end());
    return run_program(words, job.spawn);
}

bool allows(const json& profile, const std::string& call) {
    for (const json& rule : profile["syscalls"]) {
        if (rule["action"] == "SCMP_ACT_ALLOW" && has(rule["names"], call)) return true;
    }
    return false;
}

}  // namespace

TEST_CASE("learn: the same program runs under what was learned with nothing denied, another does not") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    const Command programs[] = {
        {"sh", "-c",
         "ls / | sort | head -n 3; echo x > f; mv f g; cat g; trap 'echo t' TERM; kill -TERM $$; (sleep 0.1; exit 3) & "
         "wait"},
        {"perl", "-e", "my $p = fork // die; exit 3 if !$p; waitpid $p, 0; print $? >> 8, \" $$ \", -s '/etc/passwd'"},
        {"python3", "-c", "import threading, json; t = threading.Thread(target=print); t.start(); t.join()"},
        {"node", "-e", "require('fs').readdir('/', (e, l) => console.log(l.length))"},
    };
    for (const Command& command : programs) {
        for (const bool rootless : {false, true}) {
            CAPTURE(command[0]);
            CAPTURE(rootless);
            Bundle bundle;
            const SpawnOptions spawn = rootless ? normal_user(bundle) : SpawnOptions{};
            const std::string file = bundle.host() / "learned.json";
            // Not every machine has all of them.
            const Ended there = run_job(bundle, {{}, {command[0], "--version"}, spawn});
            if (there.err.find("not found in $PATH") != std::string::npos) continue;
            // Threads do not take the same way each time.
            for (int i = 0; i < 3; ++i) {
                const Ended learned = learn(bundle, {{"-o", file, "--pids", "100", "--memory", "1g"}, command, spawn});
                REQUIRE_MESSAGE(learned.status == 0, learned.err);
            }
            const Judged again =
                judge_job(bundle, {{"--seccomp", file, "--pids", "100", "--memory", "1g"}, command, spawn});
            CAPTURE(again.result.dump());
            CHECK(again.status == 0);
            CHECK(again.result["denied"] == json::array());
            const Judged other = judge_job(bundle, {{"--seccomp", file}, kOpensSocket, spawn});
            CHECK(other.status != 0);
            CHECK(other.result["denied"] != json::array());
        }
    }
}

TEST_CASE("learn: a family of sockets that was seen is allowed, others are not") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    const Bundle bundle;
    const std::string file = bundle.host() / "learned.json";
    REQUIRE(learn(bundle, {{"-o", file}, {"perl", "-e", "socket(my $s, 1, 1, 0) or die $!"}, {}}).status == 0);
    const Judged refused = judge_job(bundle, {{"--seccomp", file}, kOpensSocket, {}});
    CHECK(refused.status == 7);
    CHECK(denied_call(refused.result, "socket") != nullptr);
    REQUIRE(learn(bundle, {{"-o", file}, kOpensSocket, {}}).status == 0);
    CHECK(run_job(bundle, {{"--seccomp", file}, kOpensSocket, {}}).status == 0);
    CHECK(run_job(bundle, {{"--seccomp", file}, {"perl", "-e", "socket(my $s, 1, 1, 0) or die $!"}, {}}).status == 0);
}

TEST_CASE("learn: what no profile allows is denied, told and not learned") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    const Bundle bundle;
    const std::string file = bundle.host() / "learned.json";
    const Ended ended = learn(bundle, {{"-o", file}, {"unshare", "--user", "true"}, {}});
    CHECK(ended.status == 1);
    CHECK_MESSAGE(ended.err.find("unshare was denied and not learned") != std::string::npos, ended.err);
    CHECK(ended.err.find("1 time, first by 'unshare'") != std::string::npos);
    const json profile = json::parse(read_text(file));
    CHECK_FALSE(allows(profile, "unshare"));
    CHECK(allows(profile, "openat"));
    CHECK(profile["defaultAction"] == "SCMP_ACT_ERRNO");
    CHECK(profile["description"] == "learned from unshare");
    for (const json& rule : profile["syscalls"]) CHECK_FALSE(rule["reason"].get<std::string>().empty());
}

TEST_CASE("learn: the same calls give the same file, and an earlier one is kept") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    const Bundle bundle;
    const std::string first = bundle.host() / "first.json", second = bundle.host() / "second.json";
    const Command command = {"sh", "-c", "ls /; echo x > f; rm f"};
    REQUIRE(learn(bundle, {{"-o", first}, command, {}}).status == 0);
    REQUIRE(learn(bundle, {{"-o", second}, command, {}}).status == 0);
    CHECK(read_text(first) == read_text(second));
    CHECK_FALSE(allows(json::parse(read_text(first)), "symlinkat"));
    REQUIRE(learn(bundle, {{"-o", first}, {"ln", "-s", "a", "b"}, {}}).status == 0);
    CHECK(allows(json::parse(read_text(first)), "symlinkat"));
    CHECK(json::parse(read_text(first))["description"] == "learned from sh");
    CHECK(run_job(bundle, {{"--seccomp", first}, command, {}}).status == 0);
}

TEST_CASE("learn: many processes are all recorded") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    const Bundle bundle;
    const std::string file = bundle.host() / "learned.json";
    const Command command = {"sh", "-c",
                             "i=0; while [ $i -lt 60 ]; do (ls / > /dev/null; /bin/true) & i=$((i + 1));"
                             " [ $((i % 20)) = 0 ] && wait; done; echo $i"};
    const Ended ended = learn(bundle, {{"-o", file, "--pids", "100"}, command, {}});
    CHECK(ended.status == 0);
    CHECK(ended.out == "60\n");
    CHECK(allows(json::parse(read_text(file)), "getdents64"));
    CHECK(judge_job(bundle, {{"--seccomp", file, "--pids", "100"}, command, {}}).result["denied"] == json::array());
}

TEST_CASE("learn: signals interrupt no more than they do otherwise, and stop and continue as ever") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    const Bundle bundle;
    const std::string file = bundle.host() / "learned.json";
    // A handler that does not ask for interrupted calls to be made again. The sender looks where its parent is between
    // two signals: with one always pending, a process that is traced would do nothing but handle them.
    const char* script =
        "use POSIX; my ($came, $failed) = (0, 0); my $set = POSIX::SigSet->new;"
        "sigaction(SIGUSR1, POSIX::SigAction->new(sub { $came++ }, $set, 0)); my $parent = $$;"
        "my $child = fork; while (!$child) { kill USR1 => $parent or exit; stat('/') for 1 .. 20 }"
        "for (my $i = 0; $i < 3000 || !$came; $i++) { stat('/') or $failed++ }"
        "kill KILL => $child; print $failed, $came ? ' came' : '';";
    CHECK(learn(bundle, {{"-o", file}, {"perl", "-e", script}, {}}).out == "0 came");
    const char* job =
        "(read line < g; echo on) & kill -STOP $!; until grep -q 'State:.[Tt]' /proc/$!/status; do :; done; kill -CONT "
        "$!; echo > g; wait $!";
    CHECK(learn(bundle, {{"-o", file}, {"sh", "-c", std::string("mkfifo g; ") + job}, {}}).out == "on\n");
}

TEST_CASE("learn: killed itself, it leaves no process and no profile") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    const Bundle bundle;
    const fs::path file = bundle.host() / "learned.json";
    const std::vector<std::string> words = bundle.verb({"seccomp", "learn", "-o", file, "--name", bundle.id(), "--",
                                                        "sh", "-c", "sleep 1000 & echo ready; sleep 1000"});
    Process running(words, SpawnOptions{});
    CHECK(running.read_line() == "ready");
    running.signal(SIGKILL);
    CHECK(running.finish().status == 128 + SIGKILL);
    CHECK_FALSE(fs::exists(file));
    CHECK(verb(bundle, {"delete", "--force", bundle.id()}).status == 0);
}

TEST_CASE("learn: without a file the profile is printed, apart from what the program prints") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    const Bundle bundle;
    const Ended ended = learn(bundle, {{}, {"sh", "-c", "echo words; exit 5"}, {}});
    CHECK(ended.status == 5);
    CHECK(allows(json::parse(ended.out), "execve"));
    CHECK(ended.err == "words\n");
}

TEST_CASE("learn: a program that is ended has been recorded until then") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    const Bundle bundle;
    const std::string file = bundle.host() / "learned.json";
    Process running(bundle.verb({"seccomp", "learn", "-o", file, "--name", bundle.id(), "--", "sh", "-c",
                                 "ls / > /dev/null; echo ready; sleep 1000; rmdir x"}),
                    SpawnOptions{});
    CHECK(running.read_line() == "ready");
    running.signal(SIGTERM);
    CHECK(running.finish().status == 128 + SIGTERM);
    const json profile = json::parse(read_text(file));
    CHECK(allows(profile, "getdents64"));
    CHECK_FALSE(allows(profile, "rmdir"));
}

TEST_CASE("learn: what is wrong is told, and no file is changed") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    Bundle bundle;
    bundle.write_config();
    const std::string config = bundle.path() / "config.json", broken = bundle.host() / "broken.json";
    const std::string before = read_text(config);
    write_text(broken, R"({"defaultAction": "SCMP_ACT_NONSENSE"})");
    check_refused(learn(bundle, {{"-o", config}, {"true"}, {}}), "is a config.json, not a profile", 125);
    check_refused(learn(bundle, {{"-o", broken}, {"true"}, {}}), "SCMP_ACT_NONSENSE", 125);
    check_refused(learn(bundle, {{"-o", "/nowhere/file"}, {"true"}, {}}), "seccomp learn: -o: open /nowhere/", 125);
    check_refused(learn(bundle, {{"-o", bundle.host() / "f"}, {}, {}}), "nothing to run", 125);
    check_refused(learn(bundle, {{"-o", bundle.host() / "f"}, {"/nowhere"}, {}}), "/nowhere", 127);
    write_text(bundle.host() / "policy.json", R"({"profiles": ["default"]})");
    std::vector<std::string> words = bundle.verb({"seccomp", "learn", "-o", bundle.host() / "f", "--", "true"});
    words.insert(words.begin() + 1, {"--policy", bundle.host() / "policy.json"});
    check_refused(run_program(words), "learn", 125);
    CHECK(read_text(config) == before);
    CHECK_FALSE(fs::exists(bundle.host() / "f"));
}
