// Streams of jobs: bytes get through, and nothing else of the caller's files and terminal does.
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "peak.hpp"
#include "sandbox.hpp"
#include "terminal.hpp"

using namespace pinfold::integration;

namespace {

// What a job tries on each of its streams, and then prints what it got. The terminal's echo of what was typed is no
// line of this form.
const Command kPry = {"perl", "-e",
                      "$| = 1; my ($got, $line, $in, $out, $tty) = ('', '');"
                      "for my $fd (0, 1, 2) {"
                      "  if (open($in, '<&', $fd) && sysread($in, $line, 100)) { $got .= $line }"
                      "  open($out, '>&', $fd) or next;"
                      "  truncate($out, 0); sysseek($out, 0, 0); fcntl($out, 4, 04000);"
                      "  my $byte = 'x'; $got .= 'TIOCSTI' if ioctl($out, 0x5412, $byte);"
                      "  $got .= 'terminal' if -t $out;"
                      "}"
                      "$got .= '/dev/tty' if open($tty, '+<', '/dev/tty');"
                      "$got =~ s/\\s//g; print \"got <$got>\\n\""};

// A file that is open for more than a job needs, with something in it.
class Log {
public:
    explicit Log(const Bundle& bundle) : path_(bundle.host() / "log") {
        write_text(path_, "earlier\n");
        file_ = UniqueFd(::open(path_.c_str(), O_RDWR | O_APPEND | O_CLOEXEC));
        flags_ = ::fcntl(file_.get(), F_GETFL);
    }
    int fd() const { return file_.get(); }
    std::string text() const { return read_text(path_); }
    bool has_its_flags() const { return ::fcntl(file_.get(), F_GETFL) == flags_; }

private:
    std::string path_;
    UniqueFd file_;
    int flags_;
};

std::vector<std::string> followed_by(std::vector<std::string> words, const Command& command) {
    words.insert(words.end(), command.begin(), command.end());
    return words;
}

}  // namespace

TEST_CASE("job streams: the caller's terminal is not the job's, to read from or to type into") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    for (const bool rootless : {false, true}) {
        if (rootless && pinfold::testing::sanitised())
            SKIP_TEST("as root alone: the sanitizers take more memory than a job of a normal user has");
        CAPTURE(rootless);
        Bundle bundle;
        SpawnOptions spawn = rootless ? normal_user(bundle) : SpawnOptions{};
        const auto check = [&](const std::vector<std::string>& words) {
            CAPTURE(words[words.size() - kPry.size() - 1]);
            Terminal terminal(24, 80);
            terminal.type("password\n");
            SpawnOptions at = spawn;
            at.own_terminal = true;
            at.fds = {{0, terminal.slave()}, {1, terminal.slave()}, {2, terminal.slave()}};
            Process job(words, at);
            terminal.await_line("got <>");
            CHECK(job.finish().status == 0);
            char typed[100];
            CHECK(std::string(typed, size_t(::read(terminal.slave(), typed, sizeof typed))) == "password\n");
        };
        check(followed_by(bundle.verb({"sandbox", "--name", bundle.id(), "--no-tty", "--"}), kPry));
        check(followed_by(bundle.verb({"sandbox", "--name", bundle.id(), "--output-limit", "1m", "--"}), kPry));
        const DetachedSandbox box(bundle, {}, {}, spawn);
        check(followed_by(bundle.verb({"exec", bundle.id()}), kPry));
        check(followed_by(bundle.verb({"exec", "--timeout", "100s", bundle.id()}), kPry));
    }
}

TEST_CASE("job streams: what pinfold says of its own steps is not the job's") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    Bundle bundle;
    Command words = bundle.verb(
        {"sandbox", "--name", bundle.id(), "--result", "-", "--capture", "--", "sh", "-c", "echo its own >&2"});
    words.insert(words.begin() + 1, "--debug");
    const Ended ended = run_program(words);
    REQUIRE_MESSAGE(ended.status == 0, ended.err);
    CHECK(json::parse(ended.out)["stderr"] == "its own\n");
    CHECK(ended.err.find(" ms] exec\n") != std::string::npos);
}

TEST_CASE("job streams: a file of the caller's gets what is printed, and keeps all else") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    for (const bool rootless : {false, true}) {
        if (rootless && pinfold::testing::sanitised())
            SKIP_TEST("as root alone: the sanitizers take more memory than a job of a normal user has");
        CAPTURE(rootless);
        Bundle bundle;
        SpawnOptions spawn = rootless ? normal_user(bundle) : SpawnOptions{};
        const auto check = [&](const std::vector<std::string>& words, const std::string& expected) {
            CAPTURE(words[words.size() - kPry.size() - 1]);
            const Log log(bundle);
            SpawnOptions at = spawn;
            at.fds = {{0, log.fd()}, {1, log.fd()}, {2, log.fd()}};
            CHECK(run_program(words, at).status == 0);
            CHECK(log.text() == expected);
            CHECK(log.has_its_flags());
        };
        const std::string all = "earlier\ngot <earlier>\n", nothing = "earlier\ngot <>\n";
        check(followed_by(bundle.verb({"sandbox", "--name", bundle.id(), "--"}), kPry), nothing);
        check(followed_by(bundle.verb({"sandbox", "--name", bundle.id(), "--stdin", "--"}), kPry), all);
        const DetachedSandbox box(bundle, {}, {}, spawn);
        check(followed_by(bundle.verb({"exec", bundle.id()}), kPry), all);
        check(followed_by(bundle.verb({"exec", "--timeout", "100s", bundle.id()}), kPry), all);
        const std::string pid_file = bundle.host() / "pid";
        check(followed_by(bundle.verb({"exec", "--detach", "--pid-file", pid_file, bundle.id()}), kPry), "earlier\n");
        // It is ours to reap, as its parent has ended.
        CHECK(::waitpid(pid_t(std::stol(await_file(pid_file))), nullptr, 0) > 0);
    }
}

TEST_CASE("job streams: a sandbox that stays holds no stream of its caller's") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    const Bundle bundle;
    const Log log(bundle);
    SpawnOptions spawn;
    spawn.fds = {{0, log.fd()}, {2, log.fd()}};
    const Command command = {"sh", "-c",
                             "echo printed; echo printed >&2; for n in 0 1 2; do readlink /proc/$$/fd/$n; done | cat > "
                             "g; mv g f; sleep 1000"};
    const DetachedSandbox box(bundle, {}, command, spawn);
    const Ended ended = box.exec({}, {"sh", "-c", "until cat f 2> /dev/null; do sleep 0.1; done"});
    CHECK(ended.out.starts_with("/dev/null\npipe:["));  // its monitor's
    CHECK(log.text() == "earlier\n");
    CHECK(box.run({"logs", bundle.id()}).out == "printed\n");
}

TEST_CASE("job streams: all bytes get through, in their order, whatever the caller's streams are") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    const Bundle bundle;
    const std::vector<std::string> words = bundle.verb({"sandbox", "--name", bundle.id(), "--stdin", "--"});
    // A pipe, in and out: more than pipes hold.
    const Ended much =
        run_program(followed_by(words, {"sh", "-c", "head -c 1000000 /dev/zero; cat; echo e >&2"}), {.input = "input"});
    CHECK(much.out == std::string(1000000, '\0') + "input");
    CHECK(much.err == "e\n");
    // One file for both.
    const fs::path file = bundle.host() / "both";
    const UniqueFd both(::open(file.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    const Command turns = {"sh", "-c", "for i in 1 2 3; do echo o$i; echo e$i >&2; done"};
    CHECK(run_program(followed_by(words, turns), {.fds = {{1, both.get()}, {2, both.get()}}}).status == 0);
    CHECK(read_text(file) == "o1\ne1\no2\ne2\no3\ne3\n");
    // A pipe that is open for appending, as by a shell's >>.
    int appended[2];
    REQUIRE(::pipe2(appended, O_CLOEXEC) == 0);
    const UniqueFd from(appended[0]), to(appended[1]);
    REQUIRE(::fcntl(to.get(), F_SETFL, O_APPEND) == 0);
    CHECK(run_program(followed_by(words, {"echo", "appended"}), {.fds = {{1, to.get()}}}).status == 0);
    char line[100];
    CHECK(std::string(line, size_t(::read(from.get(), line, sizeof line))) == "appended\n");
    // A socket.
    int ends[2];
    REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
    const UniqueFd ours(ends[0]), theirs(ends[1]);
    REQUIRE(::write(ours.get(), "by socket", 9) == 9);
    REQUIRE(::shutdown(ours.get(), SHUT_WR) == 0);
    CHECK(run_program(followed_by(words, {"cat"}), {.fds = {{0, theirs.get()}, {1, theirs.get()}}}).status == 0);
    char bytes[100];
    CHECK(std::string(bytes, size_t(::read(ours.get(), bytes, sizeof bytes))) == "by socket");
    // A reader that goes away is missed by the job, too.
    int pipe[2];
    REQUIRE(::pipe2(pipe, O_CLOEXEC) == 0);
    UniqueFd reader(pipe[0]), writer(pipe[1]);
    Process flood(followed_by(words, {"yes"}), {.fds = {{1, writer.get()}}});
    CHECK(await_readable(reader.get()));
    reader.reset();
    CHECK(flood.finish().status == 128 + SIGPIPE);
}

TEST_CASE("job streams: a terminal that only its owner may open is written and read all the same") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    Bundle bundle;
    SpawnOptions spawn = normal_user(bundle);  // who does not own what root has opened
    Terminal terminal(24, 80);
    spawn.own_terminal = true;
    spawn.fds = {{0, terminal.slave()}, {1, terminal.slave()}, {2, terminal.slave()}};
    Process job(followed_by(bundle.verb({"sandbox", "--name", bundle.id(), "--stdin", "--"}),
                            {"sh", "-c", "read line; echo got $line"}),
                spawn);
    terminal.type("typed\n");
    terminal.await_line("got typed");
    CHECK(job.finish().status == 0);
}

TEST_CASE("job streams: who sits at a terminal gives the job one of its own, with size, signals and TERM") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    for (const bool rootless : {false, true}) {
        if (rootless && pinfold::testing::sanitised())
            SKIP_TEST("as root alone: the sanitizers take more memory than a job of a normal user has");
        CAPTURE(rootless);
        Bundle bundle;
        SpawnOptions at = rootless ? normal_user(bundle) : SpawnOptions{};
        Terminal terminal(33, 44);
        at.own_terminal = true;
        at.fds = {{0, terminal.slave()}, {1, terminal.slave()}, {2, terminal.slave()}};
        at.env.emplace_back("TERM=vt220");
        const termios before = terminal.settings();
        // Bash: dash loses a signal that comes while it starts a program.
        constexpr const char* kScript =
            "trap 'echo interrupted' INT; tty; stty size; echo $TERM; echo here > /dev/tty; read line;"
            "echo \"got $line\"; read line; stty size; exit 7";
        Process job(followed_by(bundle.verb({"sandbox", "--name", bundle.id(), "--"}), {"bash", "-c", kScript}), at);
        terminal.await_line("/dev/pts/0");
        terminal.await_line("33 44");
        terminal.await_line("vt220");
        terminal.await_line("here");
        CHECK((terminal.settings().c_lflag & ICANON) == 0);  // ours is raw, all is the job's
        terminal.type("some words\r");
        terminal.await_line("got some words");
        terminal.type("\x03");
        terminal.await_line("^Cinterrupted");
        terminal.resize(11, 22);
        CHECK(::kill(job.pid(), SIGWINCH) == 0);
        terminal.type("\r");
        terminal.await_line("11 22");
        CHECK(job.finish().status == 7);
        CHECK(terminal.settings().c_lflag == before.c_lflag);
    }
}

TEST_CASE(
    "job streams: Ctrl-C at the caller's terminal is for all that the program has started, also without one of its "
    "own") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    Bundle bundle;
    const DetachedSandbox box(bundle, {});
    // Bash waits for a command, and expects that to hear of it as well.
    const Command command = {"bash", "-c", "perl -e '$| = 1; print qq(on\\n); sleep 30'; exit $?"};
    const std::vector<std::string> lines[] = {
        bundle.verb({"sandbox", "--name", bundle.id() + "-2", "--no-tty", "--"}),
        bundle.verb({"exec", bundle.id()}),
        bundle.verb({"exec", "--timeout", "60s", bundle.id()}),
    };
    for (const auto& [typed, number] : {std::pair("\x03", SIGINT), std::pair("\x1c", SIGQUIT)}) {
        for (const std::vector<std::string>& line : lines) {
            CAPTURE(line);
            Terminal terminal(24, 80);
            SpawnOptions at{.fds = {{0, terminal.slave()}, {1, terminal.slave()}, {2, terminal.slave()}}};
            at.own_terminal = true;
            Process job(followed_by(line, command), at);
            terminal.await_line("on");
            terminal.type(typed);
            CHECK(job.finish().status == 128 + number);
        }
    }
}

TEST_CASE("job streams: standard input that cannot be read from is refused, and not waited for") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    const Bundle bundle;
    int ends[2];
    REQUIRE(::pipe2(ends, O_CLOEXEC) == 0);
    const UniqueFd reader(ends[0]), writer(ends[1]);
    const Ended ended = run_job(bundle, {{"--stdin"}, {"cat"}, {.fds = {{0, writer.get()}}}});
    check_refused(ended, "--stdin: standard input can only be written to", 125);
}

TEST_CASE("job streams: a signal that somebody sends is the program's alone") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    const Bundle bundle;
    constexpr const char* kScript =
        "trap 'echo outer; kill -TERM $!' INT;"
        "perl -e '$SIG{INT} = sub { syswrite STDOUT, qq(inner\\n) }; $SIG{TERM} = sub { exit 3 };"
        "         syswrite STDOUT, qq(on\\n); sleep 30 while 1' & wait $!; status=$?;"
        "[ $status = 3 ] || { wait $!; status=$?; }; echo $status";
    Process job(job_line(bundle, {{}, {"bash", "-c", kScript}, {}}), {});
    REQUIRE(job.read_line() == "on");
    job.signal(SIGINT);
    CHECK(job.read_line() == "outer");
    CHECK(job.read_line() == "3");
    CHECK(job.finish().status == 0);
}

TEST_CASE("job streams: a job with a terminal has its deadline, and what it printed last is not lost") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    const Bundle bundle;
    Terminal terminal(24, 80);
    SpawnOptions at;
    at.own_terminal = true;
    at.fds = {{0, terminal.slave()}, {1, terminal.slave()}, {2, terminal.slave()}};
    Process late(followed_by(bundle.verb({"sandbox", "--name", bundle.id(), "-t", "--timeout", brief(), "--"}),
                             {"sh", "-c", "trap '' INT TERM HUP; echo on; cat; sleep 1000"}),
                 at);
    terminal.await_line("on");
    while (!terminal.read_line().starts_with("pinfold: killed after ")) continue;
    CHECK(late.finish().status == 124);
    Process quick(followed_by(bundle.verb({"sandbox", "--name", bundle.id(), "--"}), {"sh", "-c", "seq 1 500"}), at);
    terminal.await_line("500");
    CHECK(quick.finish().status == 0);
}

TEST_CASE("job streams: a terminal is refused where there is none, and beside what has no use for it") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    const Bundle bundle;
    check_refused(run_job(bundle, {{"-t"}, {"true"}, {}}), "--tty: standard input is no terminal\nhint: ", 125);
    const std::vector<std::string> others[] = {{"--capture", "--result", bundle.host() / "r"},
                                               {"--stdin"},
                                               {"--output-limit", "1m"},
                                               {"--detach"},
                                               {"--no-tty"},
                                               {"--merge-output"}};
    for (std::vector<std::string> options : others) {
        const std::string told = "--tty and " + options[0] + " exclude each other";
        options.emplace_back("--tty");
        CHECK_MESSAGE(run_job(bundle, {options, {"true"}, {}}).err.find(told) != std::string::npos, told);
    }
}

TEST_CASE("job streams: what is captured can be watched, and a watcher that goes away takes nothing with it") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    const Bundle bundle;
    const std::string file = bundle.host() / "result";
    const std::vector<std::string> options = {"--capture", "--tee", "--result", file};
    const Ended seen = run_job(bundle, {options, {"sh", "-c", "seq 1 30000; echo err >&2"}, {}});
    CHECK(seen.status == 0);
    CHECK(seen.err == "err\n");
    const json kept = json::parse(read_text(file));
    CHECK(kept["stdout"] == seen.out);
    CHECK(seen.out.ends_with("\n30000\n"));
    CHECK(kept["stderr"] == "err\n");
    // Of both, as much as the limit allows, and the same.
    std::vector<std::string> limited = options;
    limited.insert(limited.end(), {"--output-limit", "1000"});
    const Ended cut = run_job(bundle, {limited, {"seq", "1", "30000"}, {}});
    CHECK(cut.out.size() == 1000);
    CHECK(json::parse(read_text(file))["stdout"] == cut.out);
    {
        int ends[2];
        REQUIRE(::pipe2(ends, O_CLOEXEC) == 0);
        pinfold::UniqueFd reader(ends[0]);
        const pinfold::UniqueFd writer(ends[1]);
        Process job(job_line(bundle, {options, {"sh", "-c", "seq 1 30000; echo end"}, {}}),
                    {.fds = {{1, writer.get()}}});
        reader.reset();
        CHECK(job.finish().status == 0);
        CHECK(json::parse(read_text(file))["stdout"].get<std::string>().ends_with("\n30000\nend\n"));
    }
    // Nobody reads: that holds up the job, and neither its deadline nor its result.
    int ends[2];
    REQUIRE(::pipe2(ends, O_CLOEXEC) == 0);
    const pinfold::UniqueFd reader(ends[0]), writer(ends[1]);
    std::vector<std::string> brief_one = options;
    brief_one.insert(brief_one.end(), {"--timeout", brief()});
    Process job(job_line(bundle, {brief_one, {"seq", "1", "3000000"}, {}}), {.fds = {{1, writer.get()}}});
    CHECK(job.finish().status == 124);
    CHECK(json::parse(read_text(file))["status"] == "timed_out");
    check_refused(run_job(bundle, {{"--result", "-", "--tee"}, {"true"}, {}}),
                  "--tee: standard output is for the result", 125);
}

TEST_CASE("job streams: both streams as one keep the order in which they were written") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    const Bundle bundle;
    const Command both = {"sh", "-c", "for i in 1 2 3; do echo o$i; echo e$i >&2; done"};
    constexpr const char* kInOrder = "o1\ne1\no2\ne2\no3\ne3\n";
    const json result = judge_job(bundle, {{"--merge-output"}, both, {}}).result;
    CHECK(result["stdout"] == kInOrder);
    CHECK(result["stderr"] == "");
    const Ended passed = run_job(bundle, {{"--merge-output"}, both, {}});
    CHECK(passed.out == kInOrder);
    CHECK(passed.err == "");
    {
        const DetachedSandbox box(bundle, {"--merge-output"}, both);
        box.run({"wait", bundle.id()});
        CHECK(box.run({"logs", bundle.id()}).out == kInOrder);
    }
    const DetachedSandbox box(bundle, {});
    CHECK(box.exec({"--merge-output"}, both).out == kInOrder);
}

// What JSON makes of a byte takes up to six: none of that is ever held as a whole.
TEST_CASE("job streams: what is kept has a bound that no option lifts") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    const Bundle bundle;
    using Options = std::vector<std::string>;
    for (const Options& kept : {Options{"--capture"}, {"--result", "-"}}) {
        for (const std::string size : {"100g", "268435457"}) {
            Options options = kept;
            options.insert(options.end(), {"--output-limit", size});
            const Ended ended = run_job(bundle, {options, {"true"}, {}});
            CHECK(ended.status == 125);
            const std::string told = "--output-limit: found '" + size + "', allowed with --capture: at most 256m";
            CHECK_MESSAGE(ended.err.find(told) != std::string::npos, ended.err);
        }
    }
    CHECK(run_job(bundle, {{"--result", "-", "--output-limit", "256m"}, {"true"}, {}}).status == 0);
    CHECK(run_job(bundle, {{"--output-limit", "100g"}, {"true"}, {}}).status == 0);
}

TEST_CASE("job streams: to keep what a job prints takes memory in proportion, whatever the bytes are") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    const Bundle bundle;
    constexpr size_t kCaptured = 16 << 20;
    const std::string result = bundle.host() / "result";
    const auto most_memory = [&](const std::string& program) {
        const Measured measured = measure(bundle, {"sandbox", "--name", bundle.id(), "--memory", "64m", "--capture",
                                                   "--result", result, "--", "perl", "-e", program});
        CHECK_MESSAGE(measured.status == 0, measured.err);
        return measured.peak;
    };
    const size_t before = most_memory("1");
    const std::string start = "\"stdout\": \"", end = "\",\n";
    for (const auto& row : {std::pair("\\x01", 6), {"\\xff", 3}, {"\\x22", 2}, {"a", 1}}) {
        const std::string byte = row.first;
        const int length = row.second;
        CAPTURE(byte);
        const std::string program = "print \"" + byte + "\" x 65536 for 1 .. 256";
        CHECK(most_memory(program) < before + 4 * kCaptured);
        const std::string told = read_text(result);
        const size_t place = told.find(start) + start.size();
        CHECK(told.find(end, place) - place == kCaptured * size_t(length));
        CHECK((told.find("stdout_base64") != std::string::npos) == (length == 3));
    }
}

TEST_CASE("job streams: a result that is larger than a file may be is told, and the job has no signal ignored") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    Bundle bundle;
    const auto limited = [&](const std::vector<std::string>& words) {
        std::vector<std::string> line = {"/bin/bash", "-c", "ulimit -f 100 && exec \"$@\"", "bash"};
        const std::vector<std::string> called = bundle.verb(words);
        line.insert(line.end(), called.begin(), called.end());
        return run_program(line);
    };
    const std::string result = bundle.host() / "result.json";
    const Ended ended = limited({"sandbox", "--name", bundle.id(), "--capture", "--result", result, "--", "sh", "-c",
                                 "head -c 300000 /dev/zero | tr '\\0' x"});
    check_refused(ended, "--result", 125);
    CHECK(ended.err.find("EFBIG") != std::string::npos);
    CHECK(!fs::exists(result));
    const Ended job = limited({"sandbox", "--name", bundle.id(), "--", "grep", "SigIgn", "/proc/self/status"});
    CHECK_MESSAGE(job.out == "SigIgn:\t0000000000000000\n", job.err);
    const std::string file = bundle.host() / "hook";
    bundle.config["hooks"]["createRuntime"] = {
        {{"path", "/bin/sh"}, {"args", {"sh", "-c", "grep SigIgn /proc/self/status > " + file}}}};
    bundle.probe({"report"});
    CHECK(run(bundle).status == 0);
    CHECK(read_text(file) == "SigIgn:\t0000000000000000\n");
}

TEST_CASE("job streams: what a job printed and nobody could keep is a failure, unless the reader has gone") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    Bundle bundle;
    const UniqueFd full(::open("/dev/full", O_WRONLY | O_CLOEXEC));
    const std::string log = bundle.host() / "log", result = bundle.host() / "result";
    const std::string lost = "write to standard output: no space left on device";
    const auto echo = [&](const std::string& script, int number, std::vector<std::string> options = {}) {
        return run_job(bundle, {std::move(options), {"sh", "-c", script}, {.fds = {{number, full.get()}}}});
    };
    const Ended ended = echo("echo hi", 1, {"--result", result});
    CHECK(ended.status == 125);
    CHECK_MESSAGE(ended.err.find(lost) != std::string::npos, ended.err);
    const json told = json::parse(read_text(result));
    CHECK(told["status"] == "exited");
    CHECK(told["exit_code"] == 0);
    CHECK(told["truncated"] == true);
    CHECK_MESSAGE(told.value("error", "").starts_with(lost), told.dump());
    CHECK(echo("echo hi >&2", 2).status == 125);
    CHECK(echo("echo hi; exit 3", 1).status == 3);
    CHECK(echo("exit 0", 1).status == 0);

    // In the log, and on standard error as well.
    std::vector<std::string> line = job_line(bundle, {{}, {"echo", "hi"}, {}});
    line.insert(line.begin() + 1, {"--log", log});
    const Ended logged = run_program(line, {.fds = {{1, full.get()}}});
    CHECK(logged.status == 125);
    CHECK(logged.err.find(lost) != std::string::npos);
    CHECK(read_text(log).find(lost) != std::string::npos);

    const DetachedSandbox sandbox(bundle, {});
    for (const std::vector<std::string>& options :
         {std::vector<std::string>(), {"--timeout", "60s"}, {"--result", result}}) {
        const std::vector<std::string> exec = followed_by({"exec"}, options);
        const Ended there = sandbox.run(followed_by(exec, {bundle.id(), "echo", "hi"}), {.fds = {{1, full.get()}}});
        CHECK(there.status == 125);
        CHECK_MESSAGE(there.err.find(lost) != std::string::npos, there.err);
    }
    CHECK(json::parse(read_text(result)).value("error", "").starts_with(lost));
}

TEST_CASE("job streams: an answer that would be printed to a closed standard output is refused") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    Bundle bundle;
    const std::string mark = bundle.host() / "ran";
    const Ended ended = run_job(bundle, {{"--result", "-", "--bind", bundle.host()}, {"touch", mark}, {.closed = {1}}});
    CHECK(ended.status == 125);
    CHECK_MESSAGE(ended.err.find("--result -: standard output is closed") != std::string::npos, ended.err);
    CHECK(!fs::exists(mark));
    for (const char* word : {"features", "--help", "--version"})
        CHECK(run_program({runtime_command()[0], word}, {.closed = {1}}).status == 1);
    CHECK(run_job(bundle, {{}, {"echo", "hi"}, {.closed = {1}}}).status == 0);
    const DetachedSandbox sandbox(bundle, {});
    CHECK(sandbox.run({"cp", bundle.id() + ":/etc/passwd", "-"}, {.closed = {1}}).status == 1);
    CHECK(sandbox.run({"logs", bundle.id()}, {.closed = {1}}).status == 1);
}

TEST_CASE("job streams: a result that nobody reads keeps nobody from ending pinfold") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    const Bundle bundle;
    int ends[2];
    REQUIRE(::pipe2(ends, O_CLOEXEC) == 0);
    const UniqueFd reader(ends[0]);
    const UniqueFd writer(ends[1]);
    Process job(job_line(bundle, {{"--result", "-"}, {"sh", "-c", "head -c 300000 /dev/zero"}, {}}),
                {.fds = {{1, writer.get()}}});
    const auto start = std::chrono::steady_clock::now();
    for (pollfd full{writer.get(), POLLOUT, 0}; ::poll(&full, 1, 0) != 0;) {
        if (std::chrono::steady_clock::now() - start > patience()) FAIL("the pipe is not filled");
    }
    job.signal(SIGTERM);
    const Ended ended = job.finish();
    CHECK(ended.status == 125);
    CHECK_MESSAGE(ended.err.find("nobody takes it") != std::string::npos, ended.err);
}

TEST_CASE("job streams: of a copy that is too large no option is named that sandbox does not have") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    Bundle bundle;
    write_text(bundle.host() / "great", "");
    fs::resize_file(bundle.host() / "great", (uintmax_t{1} << 30) + 1);  // all of it a hole
    const Ended ended =
        run_job(bundle, {{"--copy-in", (bundle.host() / "great").string() + ":/workspace/great"}, {"true"}, {}});
    check_refused(ended, "more than 1073741824 bytes\nhint: --ro-bind shows it without a copy", 125);
}
