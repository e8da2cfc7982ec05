// The audit log and policies through the real binary: what is logged, what is found, what is refused.
#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "sandbox.hpp"
#include "support/source_root.hpp"

using namespace pinfold::integration;

namespace {

class Log {
public:
    explicit Log(const Bundle& bundle) : bundle_(bundle), path_(bundle.host() / "audit.log") {}

    const fs::path& path() const { return path_; }
    RunOptions on() const { return {{"--audit", path_}, {}, {}}; }
    std::vector<std::string> with(std::vector<std::string> words) const {
        words.insert(words.begin(), {"--audit", path_});
        return words;
    }

    std::vector<std::string> lines() const {
        std::vector<std::string> found;
        std::istringstream text(read_text(path_));
        for (std::string line; std::getline(text, line);) found.push_back(line);
        return found;
    }
    std::vector<json> events() const {
        std::vector<json> found;
        for (const std::string& line : lines()) found.push_back(json::parse(line));
        return found;
    }
    std::vector<std::string> names() const {
        std::vector<std::string> found;
        for (const json& event : events()) found.push_back(event["event"]);
        return found;
    }
    void write(const std::vector<std::string>& lines) const {
        std::string text;
        for (const std::string& line : lines) text += line + "\n";
        write_text(path_, text);
    }
    Ended verify() const { return verb(bundle_, {"audit", "verify", path_}); }

private:
    const Bundle& bundle_;
    fs::path path_;
};

using Names = std::vector<std::string>;

std::string quoted_path(const fs::path& path) { return json(path.string()).dump(); }

}  // namespace

TEST_CASE("audit: a run and its end") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    Bundle bundle;
    const Log log(bundle);
    CHECK(run_probe(bundle, {{"exit", "7"}}, log.on()).status == 7);
    REQUIRE(log.names() == Names{"run", "end"});
    const json first = log.events()[0];
    CHECK(first["seq"] == 1);
    CHECK(first["id"] == bundle.id());
    CHECK(first["args"] == bundle.config["process"]["args"]);
    CHECK(first["bundle"] == bundle.path().string());
    CHECK(first["caller"]["uid"] == 0);
    CHECK(first["caller"]["pid"] == ::getpid());
    const Ended sum = run_program({"/usr/bin/sha256sum", bundle.path() / "config.json"});
    CHECK(first["config_sha256"] == sum.out.substr(0, 64));
    CHECK(log.events()[1]["exit_code"] == 7);
    const Ended verified = log.verify();
    CHECK(verified.status == 0);
    CHECK(verified.out == log.path().string() + ": 2 lines, chain whole\n");
}

TEST_CASE("audit: the life of a container, step by step, and what failed") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    Bundle bundle;
    const Log log(bundle);
    bundle.probe({"wait-signal"});
    {
        const Container container(bundle, Container::As::created, log.on());
        container.must(log.with({"start", bundle.id()}));
        container.must(log.with({"exec", bundle.id(), "/probe", "exit", "0"}));
        CHECK(verb(bundle, log.with({"start", bundle.id()})).status == 1);
        container.must(log.with({"kill", bundle.id(), "KILL"}));
        container.await_end();
        container.must(log.with({"delete", bundle.id()}));
    }
    CHECK(log.names() == Names{"create", "start", "exec", "start", "start", "kill", "delete"});
    const std::vector<json> events = log.events();
    CHECK(events[2]["args"] == json::array({"/probe", "exit", "0"}));
    CHECK(events[2]["config_sha256"] == events[0]["config_sha256"]);
    CHECK_FALSE(events[3].contains("error"));
    CHECK(events[4]["error"].get<std::string>().find("running") != std::string::npos);
    CHECK(events[5]["signal"] == 9);
    CHECK(log.verify().status == 0);
}

TEST_CASE("audit: an update is logged as it was asked for") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    Bundle bundle;
    const Log log(bundle);
    bundle.probe({"wait-signal"});
    const Container container(bundle, Container::As::running);
    const SpawnOptions input{.input = R"({"pids": {"limit": 0}})"};
    run_program(bundle.verb(log.with({"update", "--resources", "-", bundle.id()})), input);
    REQUIRE(log.events().size() >= 1);
    const json event = log.events()[0];
    CHECK(event["event"] == "update");
    CHECK(event["document"] == input.input);
    CHECK(has(event["options"], "--resources"));
}

TEST_CASE("audit: also where pinfold starts itself again late, an event is logged once") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    Bundle bundle;
    const Log log(bundle);
    // Looks as if it had id maps, so that the plan decides.
    bundle.config["annotations"]["uidMappings"] = "";
    CHECK(run_probe(bundle, {{"exit", "0"}}, log.on()).status == 0);
    CHECK(log.names() == Names{"run", "end"});
}

TEST_CASE("audit: what is done to the log is found") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    Bundle bundle;
    const Log log(bundle);
    for (int i = 0; i < 3; ++i) CHECK(run_probe(bundle, {{"exit", "0"}}, log.on()).status == 0);
    const std::vector<std::string> whole = log.lines();
    REQUIRE(whole.size() == 6);
    const std::string head = read_text(log.path().string() + ".head");
    const auto finds = [&](const std::vector<std::string>& lines, const std::string& words) {
        CAPTURE(words);
        log.write(lines);
        check_refused(log.verify(), words);
        log.write(whole);
        CHECK(log.verify().status == 0);
    };
    std::vector<std::string> lines = whole;
    lines[2].replace(lines[2].find("\"run\""), 5, "\"ran\"");
    finds(lines, "line 3 was changed");
    lines = whole;
    lines.erase(lines.begin() + 3);
    finds(lines, "lines were removed before line 4");
    lines = whole;
    lines.pop_back();
    finds(lines, "lines were removed after line 5");
    lines = whole;
    std::swap(lines[1], lines[2]);
    finds(lines, "line 2 is out of order");
    lines = whole;
    lines.push_back(lines.back());
    finds(lines, "line 7 was inserted");
    lines = whole;
    lines.push_back(R"({"seq":7,"event":"end","prev":"","hash":""})");
    finds(lines, "line 7 was changed or added");
    CHECK(read_text(log.path().string() + ".head") == head);
}

TEST_CASE("audit: pinfold that is killed while it writes leaves a log that goes on") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    if (!fs::exists("/usr/bin/strace")) SKIP_TEST("needs strace");
    Bundle bundle;
    const Log log(bundle);
    const std::vector<std::string> kill = bundle.verb(log.with({"kill", "nosuch"}));
    run_program(kill);
    REQUIRE(log.verify().status == 0);
    // Each write of the verb: head, line, head, and the same for its failure.
    for (int number = 1; number <= 6; ++number) {
        CAPTURE(number);
        std::vector<std::string> traced = {"/usr/bin/strace",
                                           "-qq",
                                           "-o",
                                           "/dev/null",
                                           "-e",
                                           "trace=write",
                                           "-e",
                                           "inject=write:signal=KILL:when=" + std::to_string(number)};
        traced.insert(traced.end(), kill.begin(), kill.end());
        CHECK(run_program(traced).status == 128 + 9);
        CHECK(log.verify().status == 0);
        run_program(kill);
        CHECK(log.verify().status == 0);
    }
}

TEST_CASE("audit: a head that cannot be read is none that somebody has changed") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    if (!fs::exists("/usr/bin/prlimit")) SKIP_TEST("needs prlimit");
    const Bundle bundle;
    const Log log(bundle);
    run_program(bundle.verb(log.with({"kill", "nosuch"})));
    REQUIRE(log.verify().status == 0);
    // Somewhere between too few descriptors for anything and enough for all.
    for (int most = 4; most <= 16; ++most) {
        std::vector<std::string> line = {"/usr/bin/prlimit", "--nofile=" + std::to_string(most)};
        for (const std::string& word : bundle.verb(log.with({"kill", "nosuch"}))) line.push_back(word);
        run_program(line);
    }
    CHECK(log.verify().status == 0);
    CHECK_FALSE(has(log.names(), "gap"));
}

namespace {

UniqueFd hold(const Log& log) {
    UniqueFd lock(::open(log.path().c_str(), O_RDONLY | O_CLOEXEC));
    REQUIRE(::flock(lock.get(), LOCK_EX) == 0);
    return lock;
}

// Until it wants to log something: then it cannot be stopped.
void await_wish_to_log(const Process& process) {
    const std::string status = "/proc/" + std::to_string(process.pid()) + "/status";
    const auto blocks_stops = [&] {
        constexpr uint64_t kStops = 1U << (SIGTSTP - 1) | 1U << (SIGTTIN - 1) | 1U << (SIGTTOU - 1);
        const std::string text = read_text(status), key = "SigBlk:\t";
        return (std::stoull(text.substr(text.find(key) + key.size()), nullptr, 16) & kStops) == kStops;
    };
    const auto start = std::chrono::steady_clock::now();
    while (!blocks_stops()) {
        if (std::chrono::steady_clock::now() - start > patience()) FAIL("it can be stopped while it takes the lock");
    }
}

// All that could end it, while it waits for the log.
void signal_at_the_log(const Process& process) {
    await_wish_to_log(process);
    for (const int number : {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGALRM}) process.signal(number);
}

}  // namespace

TEST_CASE("audit: who is stopped does not keep the log locked") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    const Bundle bundle;
    const Log log(bundle);
    const std::vector<std::string> kill = bundle.verb(log.with({"kill", "nosuch"}));
    run_program(kill);
    UniqueFd lock = hold(log);
    Process first(kill, {});
    await_wish_to_log(first);
    first.signal(SIGTSTP);
    lock.reset();
    const Ended second = run_program(kill);
    CHECK_MESSAGE(second.err.find("is still held") == std::string::npos, second.err);
    first.signal(SIGCONT);
    first.finish();
    CHECK(log.names() == Names{"kill", "kill", "kill", "kill", "kill", "kill"});
    CHECK(log.verify().status == 0);
}

TEST_CASE("audit: a signal after a job's end costs no event, no result and no exit code") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    Bundle bundle;
    const Log log(bundle);
    const Command script = {"sh", "-c", "trap 'exit 7' USR1; echo up; sleep 1000 & wait"};
    const std::string result = bundle.host() / "result";
    const auto check = [&](Process& job, const std::string& last) {
        REQUIRE(job.read_line() == "up");
        {
            const UniqueFd held = hold(log);
            job.signal(SIGUSR1);
            signal_at_the_log(job);
        }
        const Ended ended = job.finish();
        CHECK_MESSAGE(ended.status == 7, ended.err);
        CHECK(log.names().back() == last);
        CHECK(log.events().back()["code"] == 7);
        CHECK(json::parse(read_text(result))["exit_code"] == 7);
    };
    SUBCASE("sandbox") {
        std::vector<std::string> words = {"sandbox", "--name", bundle.id(), "--result", result, "--"};
        words.insert(words.end(), script.begin(), script.end());
        Process job(bundle.verb(log.with(words)), {});
        check(job, "end");
    }
    SUBCASE("exec") {
        const DetachedSandbox box(bundle, {});
        write_text(log.path(), "");
        fs::permissions(log.path(), fs::perms::owner_read | fs::perms::owner_write);
        std::vector<std::string> words = {"exec", "--result", result, bundle.id()};
        words.insert(words.end(), script.begin(), script.end());
        Process job(bundle.verb(log.with(words)), {});
        check(job, "exec-end");
    }
    SUBCASE("run") {
        bundle.probe({"wait-signal"});
        const auto job = start(bundle, log.on());
        REQUIRE(job->read_line() == "READY");
        {
            const UniqueFd held = hold(log);
            job->signal(SIGTERM);
            signal_at_the_log(*job);
        }
        CHECK(job->finish().status == 0);
        REQUIRE(log.names() == Names{"run", "end"});
    }
    CHECK(log.verify().status == 0);
}

TEST_CASE("audit: a signal keeps no failure out of the log") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    const Bundle bundle;
    const Log log(bundle);
    run_program(bundle.verb(log.with({"delete", "--force", "nosuch"})));
    for (const std::string name : {"delete", "kill", "start", "pause"}) {
        UniqueFd held = hold(log);
        Process verb(bundle.verb(log.with({name, "nosuch"})), {});
        signal_at_the_log(verb);
        held.reset();
        CHECK(verb.finish().status == 1);
        REQUIRE(log.events().size() >= 2);
        CHECK(log.names().back() == name);
        CHECK(log.events().back().contains("error"));
    }
    CHECK(log.verify().status == 0);
}

TEST_CASE("audit: an event takes little room, whatever the caller has said") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    const Bundle bundle;
    const Log log(bundle);
    const std::string rubbish(100'000, '\x01');
    std::vector<std::string> words = {"sandbox", "--name", bundle.id(), "--", "true"};
    words.insert(words.end(), 5, rubbish);
    CHECK(run_program(bundle.verb(log.with(words))).status == 0);
    run_program(bundle.verb(log.with({"kill", rubbish})));
    run_program(bundle.verb(log.with({"exec", rubbish, rubbish})));
    CHECK(fs::file_size(log.path()) < 200'000);
    const json command = log.events().at(0);
    CHECK(command["command"][0] == "true");
    CHECK(command["command_cut"]["bytes"] > 3'000'000);
    CHECK(command["command_cut"]["sha256"].get<std::string>().size() == 64);
    CHECK(log.verify().status == 0);
}

TEST_CASE("audit: many at once leave one chain") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    Bundle bundle;
    const Log log(bundle);
    std::vector<std::unique_ptr<Process>> processes;
    for (int i = 0; i < 20; ++i) {
        processes.push_back(std::make_unique<Process>(
            bundle.verb(log.with({"delete", "--force", "x" + std::to_string(i)})), SpawnOptions()));
    }
    for (const auto& process : processes) CHECK(process->finish().status == 0);
    CHECK(log.verify().out == log.path().string() + ": 20 lines, chain whole\n");
}

TEST_CASE("audit: what cannot be logged is not done") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    Bundle bundle;
    bundle.probe({"write", "/data/ran", "yes"});
    write_text(bundle.rootfs() / "data/ran", "no");
    bundle.write_config();
    const std::string before = bundle.listing();
    for (const std::string verb_name : {"run", "create"}) {
        check_refused(verb(bundle, {"--audit", "/nonexistent/log", verb_name, "--bundle", bundle.path(), bundle.id()}),
                      "audit: open /nonexistent/log: does not exist");
    }
    CHECK(bundle.listing() == before);
    const fs::path headless = bundle.host() / "headless.log";
    fs::create_directory(headless.string() + ".head");
    check_refused(verb(bundle, {"--audit", headless, "run", "--bundle", bundle.path(), bundle.id()}),
                  "headless.log.head");
    CHECK(read_text(bundle.rootfs() / "data/ran") == "no");
    CHECK_FALSE(exists(bundle));

    bundle.probe({"wait-signal"});
    const Container container(bundle, Container::As::running);
    for (const std::vector<std::string>& words :
         {Command{"kill", bundle.id(), "KILL"}, {"delete", "--force", bundle.id()}, {"update", bundle.id()}}) {
        Command line = {"--audit", "/nonexistent/log"};
        line.insert(line.end(), words.begin(), words.end());
        check_refused(verb(bundle, line), "audit: ");
    }
    check_refused(verb(bundle, {"--audit", "/nonexistent/log", "exec", bundle.id(), "/probe", "exit", "0"}),
                  "audit: ", 255);
    CHECK(container.status() == "running");
}

TEST_CASE("audit: no job is given the log to write to") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    const Bundle bundle;
    const fs::path logs = bundle.host() / "logs";
    fs::create_directories(logs / "below");
    const std::string log = logs / "audit";
    const auto call = [&](const std::vector<std::string>& options) {
        std::vector<std::string> words = {"--audit", log, "sandbox", "--name", bundle.id()};
        words.insert(words.end(), options.begin(), options.end());
        words.insert(words.end(), {"--", "true"});
        return verb(bundle, words);
    };
    CHECK(call({}).status == 0);
    const std::string all = bundle.host().string(), head = log + ".head";
    for (const std::string& what : {logs.string(), all, log, head}) {
        CAPTURE(what);
        check_refused(call({"--bind", what + ":/data"}), " the audit log ", 125);
        CHECK(call({"--ro-bind", what + ":/data"}).status == 0);
    }
    check_refused(call({"--copy-out", "/etc/passwd:" + log}), " the audit log ", 125);
    CHECK(call({"--bind", (logs / "below").string() + ":/data"}).status == 0);
}

TEST_CASE("audit: show prints a table, or the lines, of all or some events") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    Bundle bundle;
    const Log log(bundle);
    CHECK(run_probe(bundle, {{"exit", "3"}}, log.on()).status == 3);
    verb(bundle, log.with({"kill", "no\033such"}));
    const auto show = [&](const std::vector<std::string>& options) {
        std::vector<std::string> words = {"audit", "show"};
        words.insert(words.end(), options.begin(), options.end());
        const Ended shown = verb(bundle, words);
        CHECK(shown.status == 0);
        return shown.out;
    };
    const std::string table = show({log.path()});
    CHECK(table.starts_with("SEQ  TIME                  EVENT  ID"));
    CHECK(table.find("exit_code=3") != std::string::npos);
    CHECK(table.find("\\x1b") != std::string::npos);
    CHECK(table.find('\033') == std::string::npos);
    CHECK(show({"--json", log.path()}) == read_text(log.path()));
    CHECK(show({"--json", "--event", "end", log.path()}) == log.lines()[1] + "\n");
    CHECK(show({"--json", "--id", bundle.id(), log.path()}) == log.lines()[0] + "\n" + log.lines()[1] + "\n");
    CHECK(verb(bundle, log.with({"audit", "show", "--json"})).out == read_text(log.path()));
    check_refused(verb(bundle, {"audit", "verify", "/nonexistent/log"}), "audit verify: open /nonexistent/log");
}

TEST_CASE("audit: who came by sudo is told by the number of who called it, and only root is believed") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    Bundle bundle;
    const Log log(bundle);
    const auto callers = [&](const SpawnOptions& spawn) {
        std::vector<std::string> line = job_line(bundle, {{}, {"true"}, {}});
        line.insert(line.begin() + 1, {"--audit", log.path()});
        CHECK(run_program(line, spawn).status == 0);
        const json caller = log.events()[0]["caller"];
        fs::remove(log.path());
        fs::remove(log.path().string() + ".head");
        return caller;
    };
    CHECK(callers({.env = {"SUDO_UID=1234"}})["sudo_uid"] == 1234);
    CHECK(callers({.env = {"SUDO_UID=none"}}).contains("sudo_uid") == false);
    CHECK(callers({}).contains("sudo_uid") == false);
    SpawnOptions user = normal_user(bundle);
    user.env.push_back("SUDO_UID=0");
    CHECK(callers(user).contains("sudo_uid") == false);
}

TEST_CASE("audit: all events of a sandbox that stays name who has started it") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    const Bundle bundle;
    const Log log(bundle);
    std::vector<std::string> line = job_line(bundle, {{"--detach"}, {"sh", "-c", "unshare -U true; exit 3"}, {}});
    line.insert(line.begin() + 1, {"--audit", log.path()});
    CHECK(run_program(line, {.env = {"SUDO_UID=1234"}}).status == 0);
    CHECK(verb(bundle, {"wait", bundle.id()}).status == 3);
    const std::vector<json> events = log.events();
    std::string names;
    for (const json& event : events) {
        names += event["event"].get<std::string>() + ' ';
        CHECK(event["caller"] == events[0]["caller"]);
    }
    CHECK(names == "sandbox receipt denied end ");
    CHECK(events[0]["caller"]["sudo_uid"] == 1234);
    CHECK(events[0]["caller"]["pid"] == ::getpid());
    CHECK(verb(bundle, {"delete", bundle.id()}).status == 0);
}

TEST_CASE("audit: show refuses an event that there is not, and knows all that the manual lists") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    Bundle bundle;
    const Log log(bundle);
    CHECK(run_probe(bundle, {{"exit", "0"}}, log.on()).status == 0);
    check_refused(verb(bundle, {"audit", "show", "--event", "deneid", log.path()}),
                  "--event 'deneid': there is no such event, only run, create, ");
    std::istringstream manual(read_text(pinfold::testing::source_root() / "man/pinfold-audit.1.scd"));
    size_t known = 0;
    bool in_table = false;
    for (std::string line; std::getline(manual, line);) {
        in_table = (in_table || line == "# EVENTS") && line != "# FORMAT";
        if (!in_table || !line.starts_with("|")) continue;
        for (size_t at = 0; (at = line.find('*', at)) != std::string::npos;) {
            const size_t end = line.find('*', at + 1);
            CHECK(verb(bundle, {"audit", "show", "--event", line.substr(at + 1, end - at - 1), log.path()}).status ==
                  0);
            at = end + 1;
            ++known;
        }
    }
    CHECK(known > 10);
}

TEST_CASE("policy: the system's asks for a log, whatever the caller says") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    Bundle bundle;
    const Log log(bundle);
    const SystemPolicy policy(bundle, "{\"audit\": " + quoted_path(log.path()) + "}");
    const fs::path own = bundle.host() / "own.log";
    CHECK(run_probe(bundle, {{"exit", "0"}}).status == 0);
    CHECK(run_probe(bundle, {{"exit", "0"}}, {{"--audit", own}, {}, {}}).status == 0);
    CHECK(log.names() == Names{"run", "end", "run", "end"});
    CHECK(verb(bundle, {"audit", "verify", own}).out == own.string() + ": 2 lines, chain whole\n");
    CHECK(verb(bundle, {"audit", "verify"}).out == log.path().string() + ": 4 lines, chain whole\n");
}

TEST_CASE("policy: one that others could have changed, or with a mistake, stops everything") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    Bundle bundle;
    bundle.probe({"exit", "0"});
    const SystemPolicy policy(bundle, "{}");
    CHECK(run(bundle).status == 0);
    const auto refused = [&](const std::string& words) {
        const Outcome outcome = run(bundle);
        CHECK(outcome.status == 1);
        CHECK(outcome.says(words));
    };
    REQUIRE(::chmod(policy.path.c_str(), 0664) == 0);
    refused("hint: chmod go-w /etc/pinfold/policy.json");
    REQUIRE(::chmod(policy.path.c_str(), 0644) == 0);
    REQUIRE(::chown(policy.path.c_str(), kNobodySpecial, 0) == 0);
    refused("hint: chown root:root /etc/pinfold/policy.json");
    REQUIRE(::chown(policy.path.c_str(), 0, 0) == 0);
    REQUIRE(::chmod("/etc/pinfold", 0775) == 0);
    refused("hint: chmod go-w /etc/pinfold");
    REQUIRE(::chmod("/etc/pinfold", 0755) == 0);
    write_text(policy.path, R"({"limits": {"memory": 1}, "audit": 7})");
    refused(
        "policy: /etc/pinfold/policy.json: 2 problems\n  audit: found 7, allowed: a string\n  limits.memory: unknown");
    fs::remove(policy.path);
    CHECK(run(bundle).status == 0);
}

TEST_CASE("policy: a further one is read, too") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    Bundle bundle;
    const Log log(bundle);
    const fs::path file = bundle.host() / "policy.json";
    write_text(file, "{\"audit\": " + quoted_path(log.path()) + "}");
    CHECK(run_probe(bundle, {{"exit", "0"}}, {{"--policy", file}, {}, {}}).status == 0);
    CHECK(log.names() == Names{"run", "end"});
    check_refused(verb(bundle, {"--policy", "/nonexistent", "kill", bundle.id()}), "policy: open /nonexistent");
}

TEST_CASE("policy: it holds for callers without privileges, also where root has no number") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    Bundle bundle;
    const Log log(bundle);
    const SystemPolicy policy(bundle, "{\"audit\": " + quoted_path(log.path()) + "}");
    const std::vector<std::string> kill = bundle.verb({"kill", "nosuch"});
    std::vector<std::string> in_namespace = {"/usr/bin/unshare", "--user", "--map-root-user"};
    in_namespace.insert(in_namespace.end(), kill.begin(), kill.end());
    for (const std::vector<std::string>& line : {kill, in_namespace}) {
        check_refused(run_program(line, {.uid = kNobodySpecial}),
                      "audit: open " + log.path().string() + ": access denied");
    }
    REQUIRE(::chmod(policy.path.c_str(), 0600) == 0);
    check_refused(run_program(kill, {.uid = kNobodySpecial}), "hint: let those who run sandboxes read it");
}
