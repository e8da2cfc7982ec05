// Terminals: in the foreground on the caller's own, and handed over through a console socket.
#include <fcntl.h>
#include <signal.h>

#include "harness.hpp"
#include "terminal.hpp"

using namespace pinfold::integration;

namespace {

RunOptions on(const Terminal& terminal) {
    const int fd = terminal.slave();
    return {.spawn = {.fds = {{0, fd}, {1, fd}, {2, fd}}, .own_terminal = true}};
}

}  // namespace

TEST_CASE("terminal: the payload gets one of its own, of the caller's size") {
    NEEDS_ROOT();
    Bundle bundle;
    bundle.config["process"]["terminal"] = true;
    bundle.probe({"report"});
    Terminal terminal(33, 111);
    const auto running = start(bundle, on(terminal));
    std::string line;
    while (!(line = terminal.read_line()).starts_with('{')) continue;
    CHECK(running->finish().status == 0);
    const json report = json::parse(line);
    for (const json& each : report["terminals"]) {
        CHECK(each["tty"] == true);
        CHECK(each["foreground"] == true);
        CHECK(each["rows"] == 33);
        CHECK(each["columns"] == 111);
    }
    CHECK(report["proc"]["controlling_terminal"] == true);
    const json console = device_at(report, "/dev/console");
    REQUIRE(!console.is_null());
    CHECK(console["type"] == "char");
    CHECK(console["major"] == 136);
    // A terminal of the container's own devpts, not the caller's.
    for (const json& fd : report["fds"]) CHECK(fd["target"].get<std::string>().rfind("/dev/pts/", 0) == 0);
}

TEST_CASE("terminal: consoleSize sets its size") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    Bundle bundle;
    bundle.config["process"]["terminal"] = true;
    bundle.config["process"]["consoleSize"] = {{"height", 44}, {"width", 99}};
    bundle.probe({"report"});
    const DescriptorSocket console(bundle.host() / "console");
    const auto running = start(bundle, {.args = {"--detach", "--console-socket", console.path()}});
    Terminal terminal(console.receive());
    const json report = json::parse(terminal.read_line());
    CHECK(running->finish().status == 0);
    CHECK(report["terminals"][0]["rows"] == 44);
    CHECK(report["terminals"][0]["columns"] == 99);
    CHECK(verb(bundle, {"delete", "--force", bundle.id()}).status == 0);
}

TEST_CASE("terminal: a change of the window's size is passed on") {
    NEEDS_ROOT();
    Bundle bundle;
    bundle.config["process"]["terminal"] = true;
    bundle.probe({"winsize"});
    Terminal terminal(24, 80);
    const auto running = start(bundle, on(terminal));
    terminal.await_line("24x80");
    terminal.resize(50, 132);
    terminal.await_line("50x132");
    terminal.type("\n");
    CHECK(running->finish().status == 0);
}

TEST_CASE("terminal: the caller's is raw meanwhile, and as before afterwards") {
    NEEDS_ROOT();
    Bundle bundle;
    bundle.config["process"]["terminal"] = true;
    bundle.probe({"wait-signal"});
    Terminal terminal(24, 80);
    const termios before = terminal.settings();
    const auto running = start(bundle, on(terminal));
    terminal.await_line("READY");
    CHECK((terminal.settings().c_lflag & (ICANON | ECHO | ISIG)) == 0);
    running->signal(SIGTERM);
    CHECK(running->finish().status == 0);
    const termios after = terminal.settings();
    CHECK(after.c_lflag == before.c_lflag);
    CHECK(after.c_iflag == before.c_iflag);
    CHECK(after.c_oflag == before.c_oflag);
}

TEST_CASE("terminal: Ctrl-C is the payload's") {
    NEEDS_ROOT();
    Bundle bundle;
    bundle.config["process"]["terminal"] = true;
    bundle.probe({"wait-signal"});
    Terminal terminal(24, 80);
    const auto running = start(bundle, on(terminal));
    terminal.await_line("READY");
    terminal.type("\x03");
    std::string line = "WINCH";
    while (line == "WINCH") line = terminal.read_line();  // of the terminal's first size, if it comes late
    if (line.rfind("^C", 0) == 0) line.erase(0, 2);       // the echo
    CHECK(line == "INT");
    // Its last line is not awaited: when a session's leader ends, the kernel drops what is still on its way.
    running->signal(SIGTERM);
    CHECK(running->finish().status == 0);
}

TEST_CASE("terminal: the console socket receives the master") {
    NEEDS_ROOT();
    Bundle bundle;
    bundle.config["process"]["terminal"] = true;
    bundle.probe_each({{"cat"}, {"report"}, {"wait-signal"}});
    const DescriptorSocket console(bundle.host() / "console");
    const auto running = start(bundle, {.args = {"--detach", "--console-socket", console.path()}});
    Terminal terminal(console.receive());
    CHECK(running->finish().status == 0);
    terminal.type("hello\n\x04");
    CHECK(terminal.read_line() == "hello");  // the echo
    CHECK(terminal.read_line() == "hello");
    CHECK(terminal.read_line() == "{\"ok\":true}");
    const json report = json::parse(terminal.read_line());
    CHECK(report["terminals"][0]["tty"] == true);
    CHECK(report["proc"]["controlling_terminal"] == true);
    CHECK(verb(bundle, {"delete", "--force", bundle.id()}).status == 0);
}

TEST_CASE("terminal: a console socket is for terminals, and must be one") {
    NEEDS_ROOT();
    Bundle bundle;
    const DescriptorSocket console(bundle.host() / "console");
    CHECK(run(bundle, {.args = {"--detach", "--console-socket", console.path()}}).status == 1);
    bundle.config["process"]["terminal"] = true;
    const Outcome outcome = run(bundle, {.args = {"--detach", "--console-socket", bundle.host() / "nothing"}});
    CHECK(outcome.status == 1);
    CHECK(outcome.says("nothing"));
}

TEST_CASE("terminal: with nobody who could ever type it is refused, before anything is made") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    Bundle bundle;
    const UniqueFd null(::open("/dev/null", O_RDWR | O_CLOEXEC));
    const SpawnOptions silent{.fds = {{0, null.get()}}};
    const auto check_refused = [](const Ended& ended, int status) {
        CHECK(ended.status == status);
        CHECK_MESSAGE(ended.err.find("standard input is a device such as /dev/null\nhint: ") != std::string::npos,
                      ended.err);
    };
    bundle.config["process"]["terminal"] = true;
    bundle.probe({"cat"}).write_config();
    check_refused(run_program(bundle.command_line({}), silent), 1);
    CHECK(!exists(bundle));
    CHECK(run_program(bundle.command_line({.args = {"--dry-run"}}), silent).status == 0);
    bundle.config["process"]["terminal"] = false;
    bundle.probe({"wait-signal"});
    const auto running = start(bundle, {});
    REQUIRE(running->read_line() == "READY");
    check_refused(run_program(bundle.verb({"exec", "--tty", bundle.id(), "/probe", "cat"}), silent), 255);
    // The end of a pipe cannot be typed: the program would wait for more.
    const Ended piped =
        run_program(bundle.verb({"exec", "-t", bundle.id(), "/probe", "exit", "0"}), {.input = "data\n"});
    CHECK(piped.status == 255);
    CHECK_MESSAGE(piped.err.find("--tty: standard input is no terminal\nhint: ") != std::string::npos, piped.err);
    running->signal(SIGTERM);
    CHECK(running->finish().status == 0);
}

TEST_CASE("terminal: detached without a console socket is refused") {
    NEEDS_ROOT();
    Bundle bundle;
    bundle.config["process"]["terminal"] = true;
    CHECK(run(bundle, {.args = {"--detach"}}).status == 1);
}
