// `sandbox`: what a friendly job sees, and what is told of it.
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <chrono>

#include "sandbox.hpp"
#include "support/source_root.hpp"

using namespace pinfold::integration;

TEST_CASE("sandbox: a program's output, exit code and end are its own") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    const Bundle bundle;
    const Ended plain = run_job(bundle, {{}, {"sh", "-c", "echo out; echo err >&2; exit 3"}, {}});
    CHECK(plain.status == 3);
    CHECK(plain.out == "out\n");
    CHECK(plain.err == "err\n");
    const Judged judged = judge_job(bundle, {{}, {"sh", "-c", "echo out; echo err >&2; exit 3"}, {}});
    CHECK(judged.status == 3);
    CHECK(judged.result["status"] == "exited");
    CHECK(judged.result["exit_code"] == 3);
    CHECK(judged.result["signal"] == nullptr);
    CHECK(judged.result["stdout"] == "out\n");
    CHECK(judged.result["stderr"] == "err\n");
    CHECK(judged.result["truncated"] == false);
    CHECK(judged.result["denied"] == json::array());
    CHECK(judged.result["usage"]["wall_seconds"] > 0);
    CHECK(judged.result["usage"]["cpu_seconds"] > 0);
    const Judged killed = judge_job(bundle, {{}, {"sh", "-c", "kill -SEGV $$"}, {}});
    CHECK(killed.status == 128 + 11);
    CHECK(killed.result["status"] == "signaled");
    CHECK(killed.result["signal"] == 11);
    CHECK(killed.result["exit_code"] == nullptr);
}

TEST_CASE("sandbox: a normal user has the same") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    Bundle bundle;
    const Judged judged = judge_job(
        bundle, {{}, {"sh", "-c", "id -u; touch /workspace/f && stat -c %u /workspace/f"}, normal_user(bundle)});
    CHECK(judged.result["stdout"] == "1000\n1000\n");
    CHECK(limit_of(judged.result, "memory_mb")["enforced_by"] != nullptr);
    CHECK(limit_of(judged.result, "max_processes")["value"] == 51);
}

TEST_CASE("sandbox: its root has this machine's programs and nothing else of it") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    const Bundle bundle;
    const Ended ended =
        run_job(bundle, {{}, {"sh", "-c", "ls -A / /etc; touch /x /usr/x /etc/x; cat /etc/shadow"}, {}});
    for (const char* hidden : {"home", "root", "shadow", "sudoers", "ssh\n"}) {
        CAPTURE(hidden);
        CHECK(ended.out.find(std::string(hidden) + "\n") == std::string::npos);
    }
    CHECK(ended.out.find("workspace") != std::string::npos);
    for (const char* path : {"'/x'", "'/usr/x'", "'/etc/x'"}) {
        CAPTURE(path);
        CHECK(ended.err.find(path) != std::string::npos);
    }
    CHECK(ended.status != 0);
}

TEST_CASE("sandbox: without a network it serves and fetches on its own loopback") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    constexpr const char* kScript = R"(
use Socket qw(:all);
sub meet {
    my ($family, $type, $where) = @_;
    my ($server, $client, $said);
    socket($server, $family, $type, 0) && bind($server, $where) or die "serve: $!";
    $type == SOCK_DGRAM || listen($server, 1) or die "listen: $!";
    socket($client, $family, $type, 0) && connect($client, getsockname($server)) or die "connect: $!";
    syswrite($client, "met") or die "write: $!";
    my $receiver = $server;
    if ($type == SOCK_STREAM) { accept($receiver = undef, $server) or die "accept: $!" }
    sysread($receiver, $said, 3) && print "$said\n";
}
for my $type (SOCK_STREAM, SOCK_DGRAM) {
    meet(AF_INET, $type, pack_sockaddr_in(0, INADDR_LOOPBACK));
    meet(AF_INET6, $type, pack_sockaddr_in6(0, IN6ADDR_LOOPBACK));
}
socket(my $out, AF_INET, SOCK_STREAM, 0) or die $!;
connect($out, pack_sockaddr_in(80, inet_aton("192.0.2.1"))) or print $!{ENETUNREACH} ? "unreachable\n" : "$!\n";
)";
    for (const bool rootless : {false, true}) {
        Bundle bundle;
        const SpawnOptions spawn = rootless ? normal_user(bundle) : SpawnOptions{};
        const Ended ended = run_job(bundle, {{}, {"perl", "-e", kScript}, spawn});
        CHECK(ended.err == "");
        CHECK(ended.out == "met\nmet\nmet\nmet\nunreachable\n");
    }
}

TEST_CASE("sandbox: limits are what the kernel says they are") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    const Bundle bundle;
    const Judged judged = judge_job(
        bundle,
        {{"--cpus", "0.5", "--memory", "64m", "--disk", "40m", "--pids", "20", "--timeout", "30s"}, {"true"}, {}});
    REQUIRE(judged.result["status"] == "exited");
    CHECK(limit_of(judged.result, "memory_mb")["value"] == 64 << 20);
    CHECK(limit_of(judged.result, "max_processes")["value"] == 21);
    CHECK(limit_of(judged.result, "disk_mb") ==
          json({{"name", "disk_mb"}, {"asked", 40}, {"enforced_by", "tmpfs"}, {"value", 40 << 20}, {"hit", 0}}));
    CHECK(limit_of(judged.result, "network_enabled")["enforced_by"] == "namespace");
    CHECK(limit_of(judged.result, "network_enabled")["value"] != own_namespace("net"));
    CHECK(limit_of(judged.result, "cpu_cores")["asked"] == 0.5);
    CHECK(limit_of(judged.result, "network_enabled")["asked"] == false);
    const json cpu = limit_of(judged.result, "cpu_cores")["value"];
    CHECK((cpu == "50000 100000" || cpu == 50000));
}

TEST_CASE("sandbox: scripts by language, from a file or standard input") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    const Bundle bundle;
    write_text(bundle.host() / "s", "echo \"$0 $1 $(pwd)\"\n");
    CHECK(run_job(bundle, {{"--lang", "sh", bundle.host() / "s", "word"}, {}, {}}).out == "s word /workspace\n");
    CHECK(run_job(bundle, {{"--lang", "bash", "-"}, {}, {.input = "echo $((6 * 7))\n"}}).out == "42\n");
    const Ended unknown = run_job(bundle, {{"--lang", "cobol", "-"}, {}, {}});
    CHECK(unknown.status == 125);
    CHECK(unknown.err.find("--lang 'cobol': allowed: awk, bash") != std::string::npos);
}

TEST_CASE("sandbox: standard input and the environment only as they were given") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    const Bundle bundle;
    CHECK(run_job(bundle, {{}, {"cat"}, {.input = "secret\n"}}).out == "");
    CHECK(run_job(bundle, {{"--stdin"}, {"cat"}, {.input = "given\n"}}).out == "given\n");
    const Ended env = run_job(bundle, {{"-e", "A=1", "-e", "HOME=/tmp"}, {"env"}, {.env = {"TOKEN=secret"}}});
    CHECK(env.out.find("A=1\n") != std::string::npos);
    CHECK(env.out.find("HOME=/tmp\n") != std::string::npos);
    CHECK(env.out.find("TOKEN") == std::string::npos);
}

TEST_CASE("sandbox: the first process reaps, and shows nothing of its own") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    for (const bool rootless : {false, true}) {
        CAPTURE(rootless);
        Bundle bundle;
        const SpawnOptions spawn = rootless ? normal_user(bundle) : SpawnOptions{};
        const Ended ended = run_job(
            bundle,
            {{},
             {"sh", "-c",
              "(sleep 0 & exec sleep 0.1) & wait; sleep 0.2; grep -c 'State:.*Z' /proc/[0-9]*/status | grep -v :0;"
              "tr -d '\\0' < /proc/1/cmdline | wc -c; cat /proc/1/environ; ls -l /proc/1/fd > /dev/null; ls "
              "/proc/1/root;"
              "kill -KILL 1; kill -STOP 1; echo alive"},
             spawn});
        CHECK(ended.out == "0\nalive\n");
        for (const char* file : {"environ", "fd", "root"}) {
            CAPTURE(file);
            CHECK(ended.err.find(std::string("/proc/1/") + file) != std::string::npos);
        }
    }
}

TEST_CASE("sandbox: signals reach the program; a second one ends it whatever it does") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    const Bundle bundle;
    const auto start_job = [&](const std::string& script) {
        return std::make_unique<Process>(bundle.verb({"sandbox", "--name", bundle.id(), "--", "sh", "-c", script}),
                                         SpawnOptions{});
    };
    const auto polite = start_job("trap 'echo got; exit 5' TERM; echo ready; while :; do sleep 0.01; done");
    CHECK(polite->read_line() == "ready");
    polite->signal(SIGTERM);
    CHECK(polite->finish().status == 5);
    const auto stubborn = start_job("trap 'echo no' TERM; echo ready; while :; do sleep 0.01; done");
    CHECK(stubborn->read_line() == "ready");
    stubborn->signal(SIGTERM);
    CHECK(stubborn->read_line() == "no");
    stubborn->signal(SIGTERM);
    CHECK(stubborn->finish().status == 128 + SIGKILL);
}

TEST_CASE("sandbox: killed itself, it leaves no process") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    const Bundle bundle;
    const auto running = std::make_unique<Process>(
        bundle.verb({"sandbox", "--name", bundle.id(), "--", "sh", "-c", "echo ready; sleep 1000"}), SpawnOptions{});
    CHECK(running->read_line() == "ready");
    running->signal(SIGKILL);
    CHECK(running->finish().status == 128 + SIGKILL);
    CHECK(verb(bundle, {"delete", "--force", bundle.id()}).status == 0);
}

TEST_CASE("sandbox: another root is used, and never changed") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    for (const bool rootless : {false, true}) {
        CAPTURE(rootless);
        Bundle bundle;
        const SpawnOptions spawn = rootless ? normal_user(bundle) : SpawnOptions{};
        // Without cgroups the profile is compiled anew, and kept with the states.
        const auto files = [&] { return bundle.listing().substr(0, bundle.listing().find("state/")); };
        const std::string before = files();
        const Ended readonly =
            run_job(bundle, {{"--rootfs", bundle.rootfs()}, {"/probe", "create", "/new", "x"}, spawn});
        CHECK(readonly.out.find("EROFS") != std::string::npos);
        const Ended writable = run_job(bundle, {{"--rootfs", bundle.rootfs(), "--writable-root", "--user", "0"},
                                                {"/probe", "create", "/new", "x"},
                                                spawn});
        CHECK_MESSAGE(writable.out.find("\"ok\":true") != std::string::npos, writable.out << writable.err);
        CHECK(files() == before);
    }
}

TEST_CASE("sandbox: what is wrong is told before anything is made") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    const Bundle bundle;
    const std::string link = bundle.host() / "stdout";  // as /dev/stdout is
    fs::create_symlink("/proc/self/fd/1", link);
    const std::string text = bundle.host() / "text";
    write_text(text, "no program");
    fs::permissions(text, fs::perms(0755));
    const std::pair<Job, const char*> wrong[] = {
        {{{}, {}, {}}, "nothing to run: name a program after --"},
        {{{"--memory", "many"}, {"true"}, {}}, "--memory 'many': expected a size, as in 512m"},
        {{{"--timeout", "0s"}, {"true"}, {}}, "timeout_seconds: allowed: a number from 0.001"},
        {{{"--user", "root"}, {"true"}, {}}, "--user 'root': expected UID or UID:GID"},
        {{{"--seccomp", "none"}, {"true"}, {}}, "none"},
        {{{"--rootfs", "/nonexistent"}, {"true"}, {}}, "--rootfs: open /nonexistent"},
        {{{"--bind", "/nonexistent"}, {"true"}, {}}, "--bind '/nonexistent'"},
        {{{"--bind", "/tmp:there"}, {"true"}, {}}, "the destination 'there' is not absolute"},
        {{{}, {"/nonexistent"}, {}}, "\"/nonexistent\""},
        {{{"--result", link}, {"true"}, {}}, "is no file, and would be replaced by one"},
        {{{"--seccomp", "strict", "--ro-bind", text + ":/workspace/t"}, {"/workspace/t"}, {}},
         "exec: \"/workspace/t\": exec format error"},
    };
    for (const auto& pair : wrong) {
        const char* words = pair.second;
        CAPTURE(words);
        const Ended ended = run_job(bundle, pair.first);
        CHECK((ended.status >= 125 && ended.status <= 127));
        CHECK_MESSAGE(ended.err.find(words) != std::string::npos, ended.err);
        CHECK(ended.out == "");
    }
    const Judged judged = judge_job(bundle, {{"--seccomp", "none"}, {"true"}, {}});
    CHECK(judged.status == 125);
    CHECK(judged.result["status"] == "setup_failed");
    CHECK(judged.result["error"] != "");
}

TEST_CASE("sandbox: whatever is wrong, the result tells of it, and none of an earlier job stays") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    const Bundle bundle;
    const std::string result = bundle.host() / "result";
    const std::string log = bundle.host() / "log";
    const auto check_told = [&](std::vector<std::string> words, int status, const std::string& told) {
        write_text(result, "of an earlier job");
        words = bundle.verb(words);
        words.insert(words.begin() + 1, {"--log", log, "--log-format", "json"});
        const Ended ended = run_program(words);
        CAPTURE(told);
        CHECK(ended.status == status);
        CHECK_MESSAGE(ended.err.starts_with("pinfold: "), ended.err);
        CHECK_MESSAGE(ended.err.find(told) != std::string::npos, ended.err);
        const json written = json::parse(read_text(result), nullptr, false);
        REQUIRE_MESSAGE(written.is_object(), read_text(result));
        CHECK(written["status"] == "setup_failed");
        CHECK_MESSAGE(written["error"].get<std::string>().find(told) != std::string::npos, written.dump());
        if (words[7] == "--policy") return;  // what it says of the log is not known
        const json logged = json::parse(read_text(log), nullptr, false);
        CHECK_MESSAGE(logged["msg"].get<std::string>().find(told) != std::string::npos, logged.dump());
        fs::remove(log);
    };
    check_told({"sandbox", "--result", result, "--lang", "python", "/nonexistent.py"}, 125, "--lang");
    check_told({"sandbox", "--memory", "foo", "--result", result, "--", "true"}, 125, "--memory 'foo'");
    check_told({"sandbox", "--limits", "/nonexistent", "--result", result, "--", "true"}, 125, "--limits");
    check_told({"sandbox", "--result", result}, 125, "nothing to run");
    check_told({"sandbox", "--cpus", "all", "--result", result, "--", "true"}, 125, "--cpus");
    check_told({"sandbox", "--timout", "5s", "--result", result, "--", "false"}, 125, "unknown option '--timout'");
    check_told({"sandbox", "--detach", "--result", result}, 125, "nobody stays for --result");
    check_refused(verb(bundle, {"sandbox", "--detach", "--stdin", "--", "cat"}), "--stdin: nobody stays", 125);
    check_refused(verb(bundle, {"sandbox", "--detach", "-v", "--", "true"}), "nobody stays for", 125);
    check_told({"--policy", "/nonexistent", "sandbox", "--result", result, "--", "true"}, 125, "policy");
    check_told({"exec", "--result", result, bundle.id(), "true"}, 255, "does not exist");
    check_told({"exec", "--timeout", "soon", "--result", result, bundle.id(), "true"}, 255, "--timeout 'soon'");
    check_told({"exec", "--result", result, "--tyt", bundle.id(), "true"}, 255, "unknown option '--tyt'");

    // What could be the program's own file is left alone, and without a result to write, nothing is written.
    write_text(result, "its own");
    CHECK(verb(bundle, {"sandbox", "--debug", "true", "--result", result}).status == 125);
    CHECK(read_text(result) == "its own");
    const Ended printed = verb(bundle, {"sandbox", "--result", "-", "--frobnicate"});
    CHECK(printed.status == 125);
    CHECK(judge(printed).result["status"] == "setup_failed");
}

TEST_CASE("sandbox: limits that few ask for are told where they were asked for, also of an exec") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    Bundle bundle;
    const json all = judge_job(bundle, {{"--cpu-timeout", "2500ms", "--output-limit", "1k"}, {"true"}, {}}).result;
    CHECK(limit_of(all, "cpu_timeout_seconds")["asked"] == 2.5);
    CHECK(limit_of(all, "output_bytes") ==
          json{{"name", "output_bytes"}, {"asked", 1024}, {"enforced_by", "pipe"}, {"value", 1024}, {"hit", 0}});
    const json few = judge_job(bundle, {{}, {"true"}, {}}).result;
    CHECK(few["limits"].size() + 2 == all["limits"].size());
    const DetachedSandbox box(bundle, {});
    const json exec = box.judge({"--timeout", "60s", "--output-limit", "1k"}, {"true"});
    CHECK(limit_of(exec, "timeout_seconds")["enforced_by"] == "timer");
    CHECK(limit_of(exec, "output_bytes")["value"] == 1024);
}

TEST_CASE("sandbox: addresses that are only reserved are not memory") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    Bundle bundle;
    // As WebAssembly does: much that nobody may read or write.
    const std::string reserve = "for (1 .. 10) { syscall(" + std::to_string(SYS_mmap) +
                                ", 0, 10 << 30, 0, 0x4022, -1, 0) == -1 and die $! } print 'fine'";
    const Ended ended = run_job(bundle, {{"--memory", "64m"}, {"perl", "-e", reserve}, normal_user(bundle)});
    CHECK_MESSAGE(ended.out == "fine", ended.err);
}

TEST_CASE("sandbox: what is known of a job's memory without a cgroup is told") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    Bundle bundle;
    const SpawnOptions user = normal_user(bundle);
    const Command greedy = {"python3", "-c",
                            "import mmap, time\nm = [mmap.mmap(-1, 16 << 20) for _ in range(8)]\n"
                            "for one in m:\n one.write(bytes(16 << 20)); time.sleep(0.05)\ntime.sleep(100)"};
    const json result = judge_job(bundle, {{"--memory", "64m"}, greedy, user}).result;
    if (limit_of(result, "memory_mb")["enforced_by"] != "sampling") SKIP_TEST("this user's sandboxes have cgroups");
    CHECK(result["status"] == "oom_killed");
    CHECK_MESSAGE(result["usage"]["peak_memory_bytes"] > (48 << 20), result.dump());
    CHECK(result["usage"]["oom_kills"].is_null());
}

TEST_CASE("sandbox: no end leaves the result of an earlier job") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    {
        // Killed while the job runs.
        const Bundle bundle;
        const std::string result = bundle.host() / "result";
        write_text(result, "of an earlier job");
        Process job(job_line(bundle, {{"--result", result}, {"sh", "-c", "echo ran; sleep 1000"}, {}}), {});
        CHECK(job.read_line() == "ran");
        job.signal(SIGKILL);
        job.finish();
        CHECK(verb(bundle, {"delete", "--force", bundle.id()}).status == 0);
        CHECK(!fs::exists(result));
    }
    Bundle bundle;
    const SpawnOptions user = normal_user(bundle);
    const std::string result = bundle.host() / "result";
    const std::string target = bundle.host() / "target";
    const auto run_after = [&](const SpawnOptions& spawn) {
        write_text(result, "of an earlier job");
        return run_job(bundle, {{"--result", result}, {"true"}, spawn}).status;
    };
    const SystemPolicy policy(bundle, "{");
    for (const SpawnOptions& spawn : {SpawnOptions(), user}) {
        CHECK(run_after(spawn) == 125);
        CHECK(!fs::exists(result));
    }
    // By sudo, with the rights of who called.
    SpawnOptions sudo{.env = {"SUDO_UID=" + std::to_string(*user.uid), "SUDO_GID=" + std::to_string(*user.uid)}};
    CHECK(run_after(sudo) == 125);
    CHECK(!fs::exists(result));
    const std::string closed = bundle.host() / "closed";
    fs::create_directory(closed);
    REQUIRE(::chown(closed.c_str(), 0, 0) == 0);
    write_text(closed + "/result", "root's");
    CHECK(run_job(bundle, {{"--result", closed + "/result"}, {"true"}, sudo}).status == 125);
    CHECK(read_text(closed + "/result") == "root's");
    // Links stay, and what they lead to.
    write_text(target, "its own");
    fs::create_symlink(target, result);
    CHECK(run_job(bundle, {{"--result", result}, {"true"}, {}}).status == 125);
    CHECK(fs::is_symlink(result));
    CHECK(read_text(target) == "its own");
}

TEST_CASE("sandbox: a result that could not be written is refused before the program runs") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    Bundle bundle;
    const SpawnOptions user = normal_user(bundle);
    const std::string closed = bundle.host() / "closed";
    const std::string shared = bundle.host() / "shared";
    for (const std::string& directory : {closed, shared}) fs::create_directory(directory);
    fs::permissions(closed, fs::perms(0755));
    fs::permissions(shared, fs::perms(01777));
    for (const std::string& directory : {closed, shared}) REQUIRE(::chown(directory.c_str(), 0, 0) == 0);
    write_text(shared + "/taken", "");
    const std::pair<std::string, const char*> rows[] = {{closed + "/result", "EACCES"},
                                                        {shared + "/taken", "belongs to another user"}};
    for (const auto& row : rows) {
        CAPTURE(row.first);
        const Ended ended = run_job(bundle, {{"--result", row.first}, {"echo", "it ran"}, user});
        CHECK(ended.status == 125);
        CHECK(ended.out == "");
        CHECK_MESSAGE(ended.err.find(row.second) != std::string::npos, ended.err);
    }
    CHECK(run_job(bundle, {{"--result", shared + "/free"}, {"echo", "it ran"}, user}).out == "it ran\n");
    CHECK(std::distance(fs::directory_iterator(shared), {}) == 2);
}

TEST_CASE("sandbox: a variable has a name and a value, also for exec") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    const Bundle bundle;
    const DetachedSandbox box(bundle, {});
    for (const std::string wrong : {"=x", ""}) {
        const std::string told = "--env '" + wrong + "': expected NAME=VALUE, or NAME";
        const Ended job = run_job(bundle, {{"-e", wrong}, {"true"}, {}});
        CHECK(job.status == 125);
        CHECK_MESSAGE(job.err.find(told) != std::string::npos, job.err);
        const Ended exec = box.exec({"-e", wrong}, {"true"});
        CHECK(exec.status == 255);
        CHECK_MESSAGE(exec.err.find(told) != std::string::npos, exec.err);
    }
    CHECK(box.exec({"-e", "A="}, {"sh", "-c", "echo ${A-none}"}).out == "\n");
}

TEST_CASE("sandbox: variables come from the caller by name, and from a file") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    const Bundle bundle;
    const std::string file = bundle.host() / "env";
    write_text(file, "# a comment\n\nA=from file\r\nB='as it is' # here, too\nPASSED\nC=file\n");
    SpawnOptions spawn;
    spawn.env = {"PASSED=on", "OTHER=kept out"};
    const std::vector<std::string> options = {"--env-file", file, "-e", "C=line", "-e", "PASSED"};
    const Command print = {"sh", "-c", "echo \"$A|$B|$PASSED|$C|$OTHER\""};
    constexpr const char* kExpected = "from file|'as it is' # here, too|on|line|\n";
    CHECK(run_job(bundle, {options, print, spawn}).out == kExpected);
    const DetachedSandbox box(bundle, {}, {}, spawn);
    CHECK(box.exec(options, print).out == kExpected);
    const Ended missing = run_job(bundle, {{"-e", "NOT_THERE"}, {"true"}, spawn});
    check_refused(missing, "--env 'NOT_THERE': there is no such variable in your environment\nhint: ", 125);
    write_text(file, "A=1\n=2\n");
    check_refused(run_job(bundle, {{"--env-file", file}, {"true"}, {}}), ", line 2: '=2': expected NAME=VALUE", 125);
    CHECK(run_job(bundle, {{"--env-file", file + "x"}, {"true"}, {}}).status == 125);
    for (const std::string line : {"export X=1", "B = 2", " C=3", "D\t=4", "export X", "E\x7f=5"}) {
        CAPTURE(line);
        write_text(file, "A=1\n" + line + "\n");
        const Ended wrong = run_job(bundle, {{"--env-file", file}, {"true"}, {}});
        check_refused(wrong, ": a blank or control character in the name ", 125);
        CHECK(wrong.err.find(file + "', line 2: ") != std::string::npos);
        CHECK(wrong.err.find("hint: write NAME=VALUE") != std::string::npos);
        CHECK(box.exec({"-e", line}, {"true"}).status == 255);
    }
    CHECK(box.exec({"-e", "A= b c "}, {"sh", "-c", "echo \"<$A>\""}).out == "< b c >\n");
}

TEST_CASE("sandbox: a secret is a file in memory for the job's user alone, and is told nowhere") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    for (const bool rootless : {false, true}) {
        CAPTURE(rootless);
        Bundle bundle;
        const SpawnOptions spawn = rootless ? normal_user(bundle) : SpawnOptions{};
        const std::string file = bundle.host() / "token";
        write_text(file, "hushhush");
        fs::permissions(file, fs::perms(0644));
        const std::string secret = "token=" + file;
        const Command look = {
            "sh", "-c",
            "stat -c '%a %u %n' /run/secrets /run/secrets/*; cat /run/secrets/token; "
            "grep -c h[u]shhush /proc/*/environ /proc/*/cmdline | grep -v ':0'; head -c 9000 /dev/zero > "
            "/run/secrets/more"};
        const Judged judged = judge_job(bundle, {{"--secret", secret}, look, spawn});
        CHECK(judged.result["stdout"] == "700 1000 /run/secrets\n400 1000 /run/secrets/token\nhushhush");
        CHECK(judged.result["exit_code"] == 1);  // there is no room for more than the secrets
        {
            const DetachedSandbox box(bundle, {"--secret", secret}, {}, spawn);
            CHECK(box.exec({}, {"cat", "/run/secrets/token"}).out == "hushhush");
            for (const auto& entry : fs::recursive_directory_iterator(bundle.state_root()))
                if (entry.is_regular_file()) CHECK(read_text(entry.path()).find("hushhush") == std::string::npos);
        }
        const std::pair<std::vector<std::string>, const char*> rows[] = {
            {{"--secret", "../x=" + file}, "a name has letters"},
            {{"--secret", ".x=" + file}, "a name has letters"},
            {{"--secret", "token"}, "expected NAME=FILE"},
            {{"--secret", secret, "--secret", secret}, "is given twice"},
            {{"--secret", "x=" + bundle.host().string()}, "is no regular file"},
            {{"--secret", "x=" + file + "x"}, "does not exist"},
            {{"--secret", secret, "--bind", bundle.host().string() + ":/run/secrets/x"}, "where a directory is bound"}};
        for (const auto& [options, told] : rows) {
            const Ended ended = run_job(bundle, {options, {"echo", "it ran"}, spawn});
            CHECK(ended.status == 125);
            CHECK_MESSAGE(ended.err.find(told) != std::string::npos, ended.err);
        }
    }
}

TEST_CASE("sandbox: a directory is copied in as what it holds where its name has no last part") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    const Bundle bundle;
    const std::string tree = bundle.host() / "tree";
    fs::create_directory(tree);
    write_text(tree + "/file", "copied\n");
    for (const std::string& source : {tree + "/.", tree + "/./", tree + "/../tree/."}) {
        CAPTURE(source);
        const Ended ended = run_job(bundle, {{"--copy-in", source + ":/workspace"}, {"cat", "file"}, {}});
        CHECK_MESSAGE(ended.out == "copied\n", ended.err);
    }
    CHECK(run_job(bundle, {{"--copy-in", tree + ":/workspace"}, {"cat", "tree/file"}, {}}).out == "copied\n");
}

TEST_CASE("sandbox: nothing is captured that nobody would see") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    const Bundle bundle;
    const Ended lost = run_job(bundle, {{"--capture"}, {"echo", "it ran"}, {}});
    CHECK(lost.status == 125);
    CHECK_MESSAGE(lost.err.find("--capture: what it prints would be lost") != std::string::npos, lost.err);
    const DetachedSandbox box(bundle, {});
    const Ended exec = box.exec({"--capture"}, {"echo", "it ran"});
    CHECK(exec.status == 255);
    CHECK_MESSAGE(exec.err.find("--capture: what it prints would be lost") != std::string::npos, exec.err);
    constexpr const char* kNoResult = "--receipt: it is a part of the result, which nobody asked for\nhint: ";
    check_refused(run_job(bundle, {{"--receipt", "--name", bundle.id() + "-2"}, {"true"}, {}}), kNoResult, 125);
    check_refused(box.exec({"--receipt"}, {"true"}), kNoResult, 255);
}

TEST_CASE("sandbox: files are copied in before it starts, and out when it has ended") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    for (const bool rootless : {false, true}) {
        CAPTURE(rootless);
        Bundle bundle;
        const fs::path host = bundle.host();
        fs::create_directories(host / "in/deep");
        write_text(host / "in/deep/file", "given\n");
        fs::create_directories(host / "out");
        const SpawnOptions spawn = rootless ? normal_user(bundle) : SpawnOptions{};
        const Ended ended = run_job(
            bundle,
            {{"--copy-in", (host / "in").string() + ":/workspace/data", "--copy-out",
              "/workspace/result:" + (host / "out/one").string(), "--copy-out",
              "/workspace/data:" + (host / "out").string()},
             {"sh", "-c", "stat -c %u data/deep/file; cp data/deep/file result; ln -s /etc/hostname data/link; exit 4"},
             spawn});
        CHECK_MESSAGE(ended.status == 4, ended.err);  // a link that leads out of the tree is no file of its own
        CHECK(ended.err.find("link") != std::string::npos);
        CHECK(ended.out == "1000\n");
        CHECK(read_text(host / "out/one") == "given\n");
        const Ended missing =
            run_job(bundle, {{"--copy-out", "/workspace/none:" + (host / "out/two").string()}, {"true"}, spawn});
        CHECK(missing.status == 0);
        CHECK(missing.err.find("--copy-out") != std::string::npos);
        CHECK(!fs::exists(host / "out/two"));
    }
}

TEST_CASE("sandbox: the program, its interpreter and its directory may be among what is copied in") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    for (const bool rootless : {false, true}) {
        CAPTURE(rootless);
        Bundle bundle;
        const fs::path host = bundle.host();
        const auto write_program = [](const fs::path& path, const std::string& text) {
            write_text(path, text);
            fs::permissions(path, fs::perms(0755));
        };
        fs::create_directories(host / "tree/deep");
        write_program(host / "prog", "#!/tmp/interpreter\n");
        write_program(host / "tree/deep/tool", "#!/bin/sh\npwd\n");
        const std::string prog = (host / "prog").string(), tree = (host / "tree").string();
        const SpawnOptions spawn = rootless ? normal_user(bundle) : SpawnOptions{};
        const auto check_says = [&](const Job& job, const std::string& out) {
            const Ended ended = run_job(bundle, job);
            CHECK_MESSAGE(ended.status == 0, ended.err);
            CHECK(ended.out == out);
        };
        check_says({{"--copy-in", "/bin/echo:/tmp/prog"}, {"/tmp/prog", "here"}, spawn}, "here\n");
        check_says(
            {{"--copy-in", prog + ":/tmp/prog", "--copy-in", "/bin/echo:/tmp/interpreter"}, {"/tmp/prog"}, spawn},
            "/tmp/prog\n");
        check_says({{"--copy-in", tree + ":/tmp/tree", "--cwd", "/tmp/tree/deep"}, {"./tool"}, spawn},
                   "/tmp/tree/deep\n");
        check_says({{"--copy-in", tree + ":/tmp/tree", "--env", "PATH=/tmp/tree/deep"}, {"tool"}, spawn},
                   "/workspace\n");
        const Ended missing = run_job(bundle, {{"--copy-in", prog + ":/tmp/prog"}, {"/tmp/none"}, spawn});
        CHECK(missing.status == 127);
        CHECK_MESSAGE(missing.err.find("\"/tmp/none\": no such file or directory") != std::string::npos, missing.err);
        const Ended broken = run_job(bundle, {{"--copy-in", prog + ":/tmp/prog"}, {"/tmp/prog"}, spawn});
        CHECK(broken.status == 127);
        CHECK_MESSAGE(broken.err.find("interpreter") != std::string::npos, broken.err);
    }
}

TEST_CASE("sandbox: host paths are bound as the policy says, by what they lead to") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    Bundle bundle;
    const fs::path host = bundle.host();
    write_text(host / "file", "text\n");
    fs::create_symlink("/etc/shadow", host / "innocent");
    fs::create_directory_symlink("/root", host / "home");
    const std::string name = (host / "file").string();
    CHECK(run_job(bundle, {{"--ro-bind", name + ":/workspace/f"}, {"cat", "/workspace/f"}, {}}).out == "text\n");
    const Ended readonly =
        run_job(bundle, {{"--ro-bind", host.string() + ":/data"}, {"sh", "-c", "echo x > /data/new"}, {}});
    CHECK(readonly.status != 0);
    for (const fs::path& source :
         {host / "home", fs::path("/etc/shadow"), fs::path("/"), fs::path("/proc"), host / "innocent"}) {
        CAPTURE(source);
        const Ended refused = run_job(bundle, {{"--ro-bind", source.string() + ":/x"}, {"true"}, {}});
        CHECK(refused.status == 125);
        const std::string words = source == "/" ? "policy: / contains" : "forbidden_paths";
        CHECK_MESSAGE(refused.err.find(words) != std::string::npos, refused.err);
    }
    const Ended copied = run_job(bundle, {{"--copy-in", (host / "innocent").string() + ":/workspace/x"}, {"true"}, {}});
    CHECK(copied.status == 125);
}

TEST_CASE("sandbox: a policy caps what may be asked for") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    const Bundle bundle;
    write_text(bundle.host() / "policy.json",
               R"({"limits": {"memory_mb": 100, "timeout_seconds": 10}, "network": ["none"], "profiles": ["strict"]})");
    std::vector<std::string> words = bundle.verb({"sandbox", "--name", bundle.id()});
    words.insert(words.begin() + 1, {"--policy", bundle.host() / "policy.json"});
    const auto run_with = [&](std::vector<std::string> options) {
        options.insert(options.begin(), words.begin(), words.end());
        options.insert(options.end(), {"--", "true"});
        return run_program(options);
    };
    const Ended refused = run_with({"--network", "host"});
    CHECK(refused.status == 125);
    for (const char* rule :
         {"limits.memory_mb: 512 is above 100", "limits.timeout_seconds: 60 is above 10", "network", "profiles"}) {
        CAPTURE(rule);
        CHECK_MESSAGE(refused.err.find(rule) != std::string::npos, refused.err);
    }
    CHECK(run_with({"--memory", "100m", "--timeout", "10s", "--seccomp", "strict"}).status == 0);
}

TEST_CASE("sandbox: the audit log tells what was asked for, denied, hit, copied and refused") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    const Bundle bundle;
    const std::string log = bundle.host() / "audit.log";
    const auto run_logged = [&](std::vector<std::string> words) {
        words = bundle.verb(words);
        words.insert(words.begin() + 1, {"--audit", log});
        return run_program(words);
    };
    run_logged({"sandbox", "--name", bundle.id(), "--timeout", brief(), "--", "sh", "-c", "unshare -m; sleep 100"});
    run_logged({"sandbox", "--name", bundle.id(), "--ro-bind", "/root:/x", "--", "true"});
    run_logged({"sandbox", "--name", bundle.id(), "--detach"});
    run_logged({"cp", bundle.host() / "audit.log", bundle.id() + ":/workspace/"});
    run_logged({"exec", "--output-limit", "1m", bundle.id(), "unshare", "-m"});
    run_logged({"pause", bundle.id()});
    run_logged({"resume", bundle.id()});
    run_logged({"prune"});  // nothing is to go
    run_logged({"kill", bundle.id(), "KILL"});
    const auto start = std::chrono::steady_clock::now();
    while (run_logged({"prune", "--dry-run"}).out.empty()) {
        if (std::chrono::steady_clock::now() - start > patience()) FAIL("it still runs");
    }
    CHECK(run_logged({"prune"}).out == bundle.id() + "\n");
    const std::string text = read_text(log);
    std::string events;
    for (size_t place = 0; (place = text.find("\"event\":\"", place)) != std::string::npos;) {
        place += 9;
        events += text.substr(place, text.find('"', place) - place) + " ";
    }
    CHECK(events ==
          "sandbox receipt denied limit end policy sandbox copy exec receipt denied exec-end pause resume "
          "kill prune ");
    CHECK(text.find("\"seccomp\":\"default\"") != std::string::npos);
    CHECK(text.find("\"seccomp\":\"\"") == std::string::npos);
    CHECK(text.find("\"of\":\"exec\"") != std::string::npos);
    CHECK(text.find("forbidden_paths") != std::string::npos);
    CHECK(verb(bundle, {"audit", "verify", log}).status == 0);
    // What cannot be logged is not done.
    std::vector<std::string> words = bundle.verb({"sandbox", "--name", bundle.id(), "--", "echo", "ran"});
    words.insert(words.begin() + 1, {"--audit", "/nonexistent/log"});
    const Ended refused = run_program(words);
    CHECK(refused.status == 125);
    CHECK(refused.out == "");
}

TEST_CASE("sandbox: a template shows a part of this machine, and a wrong one says what is wrong") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    for (const bool rootless : {false, true}) {
        CAPTURE(rootless);
        Bundle bundle;
        const std::string good = bundle.host() / "good.json";
        write_text(good, R"({"description": "d", "show": ["/bin/busybo*"], "links": {"bin/deep/sh": "../busybox"}})");
        const std::string bad = bundle.host() / "bad.json";
        write_text(bad, R"({"description": 1, "show": ["bin", "/a/../b"], "links": {"../x": "y"}, "extra": 1})");
        const SpawnOptions spawn = rootless ? normal_user(bundle) : SpawnOptions{};
        const Ended seen = run_job(
            bundle, {{"--template", good}, {"/bin/deep/sh", "-c", "/bin/busybox ls / /bin; echo x > /bin/y"}, spawn});
        CHECK_MESSAGE(seen.out == "/:\nbin\ndev\netc\nproc\ntmp\nworkspace\n\n/bin:\nbusybox\ndeep\n",
                      seen.out << seen.err);
        CHECK(seen.status != 0);
        const Ended wrong = run_job(bundle, {{"--template", bad}, {"true"}, spawn});
        CHECK(wrong.status == 125);
        for (const char* words :
             {"description: found 1", "show[0]: found \"bin\"", "show[1]", "links", "extra: is unknown"}) {
            CAPTURE(words);
            CHECK_MESSAGE(wrong.err.find(words) != std::string::npos, wrong.err);
        }
    }
    const Bundle bundle;
    CHECK(run_job(bundle, {{"--template", "none"}, {"true"}, {}}).err.find("there is no such template") !=
          std::string::npos);
    CHECK(run_job(bundle, {{"--template", "busybox", "--rootfs", "/"}, {"true"}, {}}).err.find("exclude each other") !=
          std::string::npos);
}

TEST_CASE("sandbox: what stands before -- says what was forgotten") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    const Bundle bundle;
    const SpawnOptions here{.directory = bundle.host()};
    const Ended nowhere = run_job(bundle, {{"--result"}, {"ls"}, here});
    check_refused(nowhere, "--result needs a value", 125);
    CHECK(fs::is_empty(bundle.host()));
    const Ended early = verb(bundle, {"exec", "--", bundle.id(), "ls"});
    check_refused(early, "ID is expected before --\nhint: put -- behind it: pinfold exec ID -- ", 255);
    CHECK(verb(bundle, {"sandbox", "--help"})
              .out.find("Usage: pinfold sandbox [OPTIONS] [--] [COMMAND [ARGUMENT...]]\n") != std::string::npos);
    CHECK(verb(bundle, {"exec", "--help"}).out.find("ID [--] [COMMAND [ARGUMENT...]]\n") != std::string::npos);
    check_refused(run_job(bundle, {{"--cwd", ""}, {"true"}, {}}), "--cwd needs a value", 125);
    const Ended none = run_job(bundle, {{"--memory", "0"}, {"true"}, {}});
    check_refused(none, "--memory '0': that is 0 bytes, allowed: at least 1m", 125);
    CHECK(none.err.find("hint: ") == std::string::npos);
}

TEST_CASE("sandbox: what is wrong with a bind is answered with one that works") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    const Bundle bundle;
    write_text(bundle.host() / "a.txt", "text\n");
    const SpawnOptions here{.directory = bundle.host()};
    const auto hint_of = [&](const std::vector<std::string>& options) {
        const Ended ended = run_job(bundle, {options, {"true"}, here});
        CHECK(ended.status == 125);
        const size_t hint = ended.err.find("hint: ");
        return hint == std::string::npos ? ended.err : ended.err.substr(hint);
    };
    CHECK(hint_of({"--bind", "a.txt"}) == "hint: say where it is to be inside: --bind a.txt:/workspace/a.txt\n");
    CHECK(run_job(bundle, {{"--bind", "a.txt:/workspace/a.txt"}, {"cat", "a.txt"}, here}).out == "text\n");
    CHECK(hint_of({"--bind", "."}) == "hint: say where it is to be inside: --bind .:/workspace\n");
    CHECK(hint_of({"--bind", ".:/workspace:ro"}) ==
          "hint: one that is read-only is another option: --ro-bind .:/workspace\n");
    CHECK(hint_of({"--ro-bind", ".:/workspace:rw"}) ==
          "hint: one that is written to is another option: --bind .:/workspace\n");
    CHECK(hint_of({"--ro-bind", (bundle.host() / "x.sock").string()}) ==
          "hint: make it first: what is shown inside has to be there\n");
    CHECK(hint_of({"--bind", "x/:/workspace"}) == "hint: make it first: mkdir -p x/\n");
    const Ended over = run_job(bundle, {{"--bind", "a.txt:/workspace"}, {"true"}, here});
    check_refused(over,
                  "--bind 'a.txt': /workspace: neither can a file lie over a directory, nor a directory over a file\n"
                  "hint: give it another place inside",
                  125);
    for (const char* place : {"/usr/d", "/proc"}) {
        const Ended taken = run_job(bundle, {{"--bind", std::string(".:") + place}, {"true"}, here});
        check_refused(taken, std::string("--bind '.': ") + place + ": ", 125);
        CHECK_MESSAGE(taken.err.find("hint: give it another place inside, as below /workspace") != std::string::npos,
                      taken.err);
    }
}

TEST_CASE("sandbox: an unknown option is no program") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    const Bundle bundle;
    const Ended ended = run_job(bundle, {{"--memroy", "64m"}, {"true"}, {}});
    CHECK(ended.status == 125);
    CHECK(ended.err.find("--memroy") != std::string::npos);
    CHECK(run_job(bundle, {{}, {"sh", "-c", "echo $# $*", "a", "--", "-b"}, {}}).out == "2 -- -b\n");
}

TEST_CASE("sandbox: a result has the members that its manual names, and no others") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    const Bundle bundle;
    std::string manual = read_text(pinfold::testing::source_root() / "man/pinfold-result.5.scd");
    std::erase(manual, '\\');
    const json result =
        judge_job(bundle, {{"--receipt"}, {"sh", "-c", "unshare -m; printf '\\377'; exit 1"}, {}}).result;
    REQUIRE(!result["denied"].empty());
    const json parts[] = {result, result["usage"], result["denied"][0], result["limits"][0], result["receipt"][0]};
    for (const json& part : parts) {
        for (const auto& member : part.items()) {
            const std::string& name = member.key();
            CAPTURE(name);
            const bool named = manual.find("*" + name + "*") != std::string::npos ||
                               manual.find("_" + name + "_") != std::string::npos;
            CHECK(named);
        }
    }
    const char* const top[] = {"status",        "exit_code", "signal",  "stopped_by",     "stdout",
                               "stdout_base64", "stderr",    "usage",   "denied",         "truncated",
                               "limits",        "landlock",  "receipt", "receipt_sha256", "hint"};
    for (const char* name : top) {
        CAPTURE(name);
        CHECK(result.contains(name));
    }
    CHECK(result.size() == std::size(top));
    CHECK(result["stdout_base64"] == "/w==");
}

TEST_CASE("sandbox: a supervisor that is killed before files go in leaves nothing that waits for it") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    if (!fs::exists("/usr/bin/strace")) SKIP_TEST("needs strace");
    const Bundle bundle;
    write_text(bundle.host() / "file", "text");
    // Its own first clone(2) is the one for the copy; the sandbox comes of clone3(2).
    std::vector<std::string> line = {
        "/usr/bin/strace", "-qq", "-o", "/dev/null", "-e", "trace=clone", "-e", "inject=clone:signal=KILL:when=1"};
    for (const std::string& word : bundle.verb(
             {"sandbox", "--name", bundle.id(), "--copy-in", bundle.host() / "file:/workspace/file", "--", "true"}))
        line.push_back(word);
    CHECK(run_program(line).status == 128 + SIGKILL);
    const Ended deleted = run_program(bundle.verb({"delete", "--force", bundle.id()}));
    CHECK_MESSAGE(deleted.status == 0, deleted.err);
}

TEST_CASE("sandbox: the time in the result is that from the program's start to its end") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    const Bundle bundle;
    CHECK(judge_job(bundle, {{}, {"sleep", "1"}, {}}).result["usage"]["wall_seconds"].get<double>() >= 1);
    CHECK(run_job(bundle, {{"--detach"}, {}, {}}).status == 0);
    const Ended ended = verb(bundle, {"exec", "--result", "-", bundle.id(), "sleep", "1"});
    CHECK(json::parse(ended.out)["usage"]["wall_seconds"].get<double>() >= 1);
    CHECK(verb(bundle, {"delete", "--force", bundle.id()}).status == 0);
}
