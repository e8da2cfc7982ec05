// Streams of jobs: bytes get through, and nothing else of the caller's files and terminal does.
#include <fcntl.h>
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
        check(followed_by(bundle.verb({"sandbox", "--name", bundle.id(), "--"}), kPry));
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
    CHECK(ended.out == "/dev/null\n/dev/null\n/dev/null\n");
    CHECK(log.text() == "earlier\n");
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
