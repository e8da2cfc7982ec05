// sandbox --publish: ports of this machine lead into a sandbox, whoever calls; nobody on either side holds anything up,
// and nothing is left.
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>

#include <chrono>
#include <functional>

#include "sandbox.hpp"

using namespace pinfold::integration;

namespace {

using Clock = std::chrono::steady_clock;

constexpr uint16_t kInside = 8000;
constexpr size_t kMostConnections = 256;  // src/sandbox/forwarder.cpp

// A perl program that serves one connection (C) after the other; `serve` is what it does with each. It says "ready"
// once it listens.
Command server(const std::string& serve, const std::string& family = "AF_INET", int waiting = 64) {
    const std::string six = "pack_sockaddr_in6(8000, inet_pton(AF_INET6, '::1'))";
    const std::string four = "sockaddr_in(8000, INADDR_ANY)";
    return {"perl", "-e",
            "use Socket qw(:all); $| = 1; socket(S, " + family + ", SOCK_STREAM, 0) or die; bind(S, " +
                (family == "AF_INET" ? four : six) + ") or die $!; listen(S, " + std::to_string(waiting) +
                ") or die; print \"ready\\n\"; while (accept(C, S)) { " + serve + " }"};
}

// Answers when it has heard all: who cannot end one direction alone never gets an answer.
const char* const kAnswerAtEnd =
    "local $/; my $said = join('', <C>); print C 'heard ' . length($said) . \"\\n\" . $said; close C;";

sockaddr_in loopback(uint16_t port) { return {AF_INET, htons(port), {htonl(INADDR_LOOPBACK)}, {}}; }

UniqueFd connect_to(uint16_t port) {
    const sockaddr_in name = loopback(port);
    UniqueFd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&name), sizeof name) != 0) return {};
    return socket;
}

// All that comes until the end; nothing if it was broken off.
std::optional<std::string> read_to_end(int socket) {
    std::string text;
    char bytes[65536];
    while (await_readable(socket)) {
        const ssize_t got = ::recv(socket, bytes, sizeof bytes, 0);
        if (got < 0) return std::nullopt;
        if (got == 0) return text;
        text.append(bytes, size_t(got));
    }
    FAIL("neither an answer nor an end");
    return std::nullopt;
}

std::optional<std::string> ask(uint16_t port, const std::string& question) {
    const UniqueFd socket = connect_to(port);
    if (!socket) return std::nullopt;
    // Whoever was reset is told so once, by whatever comes first.
    const bool said = ::send(socket.get(), question.data(), question.size(), MSG_NOSIGNAL) >= 0;
    if (!said || ::shutdown(socket.get(), SHUT_WR) != 0) return std::nullopt;
    return read_to_end(socket.get());
}

json state_of(const Bundle& bundle, const SpawnOptions& spawn = {}) {
    const Ended ended = run_program(bundle.verb({"state", bundle.id()}), {.uid = spawn.uid, .env = spawn.env});
    REQUIRE_MESSAGE(ended.status == 0, ended.err);
    return json::parse(ended.out);
}

// The first port that leads into the sandbox, as its state has it: "127.0.0.1:40321:8000".
uint16_t published_port(const Bundle& bundle, const SpawnOptions& spawn = {}) {
    const std::string text = state_of(bundle, spawn)["annotations"]["org.pinfold.published"];
    return static_cast<uint16_t>(std::stoi(text.substr(text.find(':') + 1)));
}

Job published(const Command& command, const SpawnOptions& spawn = {}, std::vector<std::string> options = {}) {
    options.insert(options.end(), {"--publish", "0:8000"});
    return {options, command, spawn};
}

// The process that passes connections on, which is in the sandbox's network and not in its pid namespace; 0 as long as
// it is not there.
pid_t find_forwarder(const std::string& init) {
    for (const auto& entry : fs::directory_iterator("/proc")) {
        const std::string name = entry.path().filename();
        if (name.find_first_not_of("0123456789") != std::string::npos) continue;
        std::error_code gone;
        if (read_text(entry.path() / "comm") != "pinfold-publish\n") continue;
        if (fs::read_symlink(entry.path() / "ns/net", gone) == fs::read_symlink(init + "/ns/net", gone))
            return std::stoi(name);
    }
    return 0;
}

std::string status_line(pid_t pid, const std::string& name) {
    const std::string status = read_text("/proc/" + std::to_string(pid) + "/status");
    const size_t at = status.find("\n" + name + ":\t") + name.size() + 3;
    return status.substr(at, status.find('\n', at) - at);
}

size_t descriptors_of(pid_t pid) {
    const fs::directory_iterator all("/proc/" + std::to_string(pid) + "/fd");
    return size_t(std::distance(begin(all), end(all)));
}

void await_refusal(uint16_t port) {
    const auto start = Clock::now();
    while (connect_to(port)) {
        if (Clock::now() - start > patience()) FAIL("somebody still listens");
    }
}

void await_that(const char* what, const std::function<bool()>& holds) {
    const auto start = Clock::now();
    while (!holds()) {
        if (Clock::now() - start > patience()) FAIL(what);
    }
}

// The sandbox runs from when its first process is there, which waits for this one.
pid_t forwarder_of(const Bundle& bundle, const SpawnOptions& spawn = {}) {
    const std::string init = "/proc/" + std::to_string(state_of(bundle, spawn)["pid"].get<int>());
    pid_t forwarder = 0;
    await_that("there is no forwarder", [&] { return (forwarder = find_forwarder(init)) != 0; });
    return forwarder;
}

}  // namespace

TEST_CASE("publish: a program without rights serves at the port that others know, in a network of its own") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    as_both([](const Bundle& bundle, const SpawnOptions& spawn) {
        const Command serve = {
            "perl", "-e",
            "use Socket qw(:all); socket(S, AF_INET, SOCK_STREAM, 0) or die; bind(S, sockaddr_in(80, "
            "INADDR_ANY)) or die $!; listen(S, 9) or die; while (accept(C, S)) { print C 'web'; "
            "close C }"};
        const DetachedSandbox box(bundle, {"--publish", "0:80"}, serve, spawn);
        // Until it listens, who connects is cut off.
        std::optional<std::string> answer;
        while (!answer || answer->empty()) answer = ask(published_port(bundle, spawn), "");
        CHECK(answer == "web");
    });
}

TEST_CASE("publish: a program inside is reached, and each direction ends by itself, for root and a normal user") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    for (const bool rootless : {false, true}) {
        CAPTURE(rootless);
        Bundle bundle;
        const SpawnOptions spawn = rootless ? normal_user(bundle) : SpawnOptions{};
        Process running(job_line(bundle, published(server(kAnswerAtEnd), spawn)), spawn);
        CHECK(running.read_line() == "ready");
        const uint16_t port = published_port(bundle, spawn);
        const std::string much(3 << 20, 'x');
        CHECK(ask(port, "hello") == "heard 5\nhello");
        CHECK(ask(port, "") == "heard 0\n");
        const UniqueFd socket = connect_to(port);
        REQUIRE(socket);
        for (size_t sent = 0; sent < much.size();)
            sent += size_t(::send(socket.get(), much.data() + sent, much.size() - sent, MSG_NOSIGNAL));
        ::shutdown(socket.get(), SHUT_WR);
        const bool whole = read_to_end(socket.get()) == "heard " + std::to_string(much.size()) + "\n" + much;
        CHECK(whole);
        running.signal(SIGTERM);
        CHECK(running.finish().status == 128 + SIGTERM);
        CHECK_FALSE(connect_to(port));
    }
}

TEST_CASE("publish: a program that listens by IPv6 alone is found, and nobody is where nothing listens") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    Bundle bundle;
    Job job = published(server(kAnswerAtEnd, "AF_INET6"));
    job.options.insert(job.options.end(), {"--publish", "[::1]:0:8000", "--publish", "127.0.0.1:0:8001"});
    Process running(job_line(bundle, job), {});
    CHECK(running.read_line() == "ready");
    CHECK(ask(published_port(bundle), "six") == "heard 3\nsix");
    const std::string ports = state_of(bundle)["annotations"]["org.pinfold.published"];
    CHECK_MESSAGE(ports.find(",[::1]:") != std::string::npos, ports);
    const auto nobody = static_cast<uint16_t>(std::stoi(ports.substr(ports.rfind("127.0.0.1:") + 10)));
    CHECK(ask(nobody, "hello") == std::nullopt);
    CHECK(ask(published_port(bundle), "again") == "heard 5\nagain");
    running.signal(SIGTERM);
    running.finish();
}

TEST_CASE("publish: what was sent last arrives whole, also when the sandbox has ended") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    Bundle bundle;
    // More than the buffers of this side hold, so that the rest is still on its way when the program has ended.
    constexpr int kSent = 250000;
    const std::string serve =
        "setsockopt(C, SOL_SOCKET, SO_SNDBUF, 400000); print C 'x' x " + std::to_string(kSent) + "; close C; exit 0";
    Process running(job_line(bundle, published(server(serve))), {});
    CHECK(running.read_line() == "ready");
    const UniqueFd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const int little = 4096;
    REQUIRE(::setsockopt(socket.get(), SOL_SOCKET, SO_RCVBUF, &little, sizeof little) == 0);
    const sockaddr_in name = loopback(published_port(bundle));
    REQUIRE(::connect(socket.get(), reinterpret_cast<const sockaddr*>(&name), sizeof name) == 0);
    await_that("it has not ended", [&] { return !fs::exists(bundle.state_root() / bundle.id()); });
    const std::optional<std::string> got = read_to_end(socket.get());
    REQUIRE(got);
    CHECK(got->size() == kSent);
    CHECK(running.finish().status == 0);
}

TEST_CASE("publish: the port that was got is told") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    const Bundle bundle;
    const Judged judged = judge_job(bundle, published({"true"}, {}, {"-v"}));
    REQUIRE(judged.result["published"].size() == 1);
    const json port = judged.result["published"][0];
    CHECK(port["address"] == "127.0.0.1");
    CHECK(port["inside_port"] == kInside);
    CHECK(port["host_port"] > 0);
    const std::string told = "published: 127.0.0.1:" + port["host_port"].dump() + " leads to port 8000\n";
    CHECK_MESSAGE(judged.err.find(told) != std::string::npos, judged.err);
    CHECK_FALSE(judge_job(bundle, {{}, {"true"}, {}}).result.contains("published"));
}

TEST_CASE("publish: what cannot be had is one sentence, and nothing was made") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    Bundle bundle;
    const UniqueFd taken(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in name = loopback(0);
    socklen_t size = sizeof name;
    REQUIRE(::bind(taken.get(), reinterpret_cast<sockaddr*>(&name), size) == 0);
    REQUIRE(::listen(taken.get(), 1) == 0);
    REQUIRE(::getsockname(taken.get(), reinterpret_cast<sockaddr*>(&name), &size) == 0);
    const std::string port = std::to_string(ntohs(name.sin_port));
    const std::string mark = bundle.host() / "mark";
    const auto refused = [&](std::vector<std::string> options, const std::string& words, SpawnOptions spawn = {}) {
        CAPTURE(words);
        options.insert(options.end(), {"--bind", bundle.host().string() + ":/mnt"});
        check_refused(run_job(bundle, {options, {"touch", "/mnt/mark"}, spawn}), words, 125);
        CHECK_FALSE(fs::exists(mark));
        CHECK_FALSE(exists(bundle));
    };
    refused({"--publish", port + ":80"}, "--publish: port " + port + " of 127.0.0.1 is in use");
    refused({"--publish", "192.0.2.1:0:80"}, "this machine has no address 192.0.2.1");
    refused({"--publish", "0:80", "--network", "host"}, "hint: leave it out");
    refused({"--publish", "0:80", "--runtime", "runc"}, "--publish cannot be had with --runtime");
    for (const char* wrong : {"80", "80:0", "a:80", "1:2:3", "65536:1", "localhost:1:2", "::1:1:2", "[::1]", "-1:80"})
        refused({"--publish", wrong}, "expected [ADDR:]HOST:INSIDE");
    refused({"--publish", "80:80"}, "port 80 of 127.0.0.1 takes root", normal_user(bundle));
}

TEST_CASE(
    "publish: those who do not read cost little, and neither they nor a program that stalls hold up the deadline") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    Bundle bundle;
    const std::string never_reads = "if (!fork) { print C 'x' x 65536 while 1; exit }";
    const std::string seconds = pinfold::testing::slow_machine() ? "60" : "15";
    Job job = published(server(never_reads, "AF_INET", 1024), {}, {"--timeout", seconds + "s", "--pids", "600"});
    job.options.insert(job.options.end(), {"--publish", "0:8001", "--result", "-"});
    const auto start = Clock::now();
    Process running(job_line(bundle, job), {});
    await_that("nothing was published", [&] { return exists(bundle) && state_of(bundle)["status"] == "running"; });
    const uint16_t port = published_port(bundle);
    const pid_t forwarder = forwarder_of(bundle);
    await_that("nothing listens", [&] {
        const UniqueFd socket = connect_to(port);
        char byte = 0;
        return socket && ::recv(socket.get(), &byte, 1, 0) == 1;
    });
    std::vector<UniqueFd> flood;
    for (size_t i = 0; i < kMostConnections + 60; ++i) {
        flood.push_back(connect_to(port));
        REQUIRE(flood.back());  // those beyond wait to be accepted
    }
    await_that("not as many as there may be", [&] { return descriptors_of(forwarder) >= 2 * kMostConnections; });
    CHECK(descriptors_of(forwarder) < 2 * kMostConnections + 16);
    CHECK(std::stoi(status_line(forwarder, "VmRSS")) < 32 << 10);
    const Judged judged = judge(running.finish());
    CHECK(judged.result["status"] == "timed_out");
    CHECK(Clock::now() - start < std::chrono::seconds(std::stoi(seconds) * 2));
    await_refusal(port);
}

TEST_CASE("publish: one that has gone makes room for the next that waits") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    Bundle bundle;
    const std::string greet = "if (!fork) { syswrite(C, 'hi'); sleep 1000; exit }";
    Process running(job_line(bundle, published(server(greet, "AF_INET", 1024), {}, {"--pids", "600"})), {});
    CHECK(running.read_line() == "ready");
    const uint16_t port = published_port(bundle);
    std::vector<UniqueFd> all;
    char bytes[2];
    for (size_t i = 0; i < kMostConnections; ++i) {
        all.push_back(connect_to(port));
        REQUIRE(all.back());
        REQUIRE(::recv(all.back().get(), bytes, sizeof bytes, MSG_WAITALL) == 2);
    }
    const UniqueFd waits = connect_to(port);
    REQUIRE(waits);
    pollfd slot{waits.get(), POLLIN, 0};
    CHECK(::poll(&slot, 1, 300) == 0);
    const linger at_once{1, 0};
    ::setsockopt(all[7].get(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    all[7].reset();
    CHECK(await_readable(waits.get()));
    CHECK(::recv(waits.get(), bytes, sizeof bytes, MSG_WAITALL) == 2);
    running.signal(SIGTERM);
    running.finish();
}

TEST_CASE("publish: who passes connections on can do nothing else, and is not seen inside") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    for (const bool rootless : {false, true}) {
        CAPTURE(rootless);
        Bundle bundle;
        const SpawnOptions spawn = rootless ? normal_user(bundle) : SpawnOptions{};
        const DetachedSandbox sandbox(bundle, {"--publish", "0:8000"}, {}, spawn);
        const pid_t forwarder = forwarder_of(bundle, spawn);
        const std::string proc = "/proc/" + std::to_string(forwarder);
        for (const char* set : {"CapInh", "CapPrm", "CapEff", "CapAmb"})
            CHECK(status_line(forwarder, set) == "0000000000000000");
        CHECK(status_line(forwarder, "Seccomp") == "2");
        CHECK(status_line(forwarder, "NoNewPrivs") == "1");
        CHECK(status_line(forwarder, "Uid").find("0\t") != 0);
        CHECK(read_text(proc + "/cmdline").find("publish") == std::string::npos);
        CHECK(fs::read_symlink(proc + "/cwd") == "/");
        for (const auto& entry : fs::directory_iterator(proc + "/fd")) {
            const std::string target = fs::read_symlink(entry.path());
            const bool expected =
                target == "/dev/null" || target.starts_with("socket:") || target == "anon_inode:[pidfd]";
            CHECK_MESSAGE(expected, target);
        }
        CHECK(sandbox.exec({}, {"sh", "-c", "cat /proc/[0-9]*/comm"}).out.find("pinfold-publish") == std::string::npos);
        // Its own user cannot look into it.
        if (rootless) {
            CHECK(run_program({"ls", proc + "/fd"}, spawn).status != 0);
            CHECK(run_program({"cat", proc + "/environ"}, spawn).status != 0);
        }
    }
}

TEST_CASE("publish: a sandbox that stays keeps its ports, and takes them along") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    for (const bool rootless : {false, true}) {
        for (const bool with_command : {false, true}) {
            CAPTURE(rootless);
            CAPTURE(with_command);
            Bundle bundle;
            const SpawnOptions spawn = rootless ? normal_user(bundle) : SpawnOptions{};
            const Command command = server(kAnswerAtEnd);
            const DetachedSandbox sandbox(bundle, {"--publish", "0:8000"}, with_command ? command : Command{}, spawn);
            const uint16_t port = published_port(bundle, spawn);
            std::unique_ptr<Process> more;
            if (!with_command) {
                std::vector<std::string> words = bundle.verb({"exec", bundle.id()});
                words.insert(words.end(), command.begin(), command.end());
                more = std::make_unique<Process>(words, spawn);
                CHECK(more->read_line() == "ready");
            }
            await_that("nothing answers", [&] { return ask(port, "hello") == "heard 5\nhello"; });
            CHECK(sandbox.run({"stop", bundle.id()}).status == 0);
            await_refusal(port);
            if (!with_command) continue;
            const json result = json::parse(sandbox.run({"wait", "--result", "-", bundle.id()}).out);
            CHECK(result["published"][0]["host_port"] == port);
        }
    }
}

TEST_CASE("publish: nothing is left of a pinfold that was killed") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    Bundle bundle;
    Process running(job_line(bundle, published(server(kAnswerAtEnd))), {});
    CHECK(running.read_line() == "ready");
    const uint16_t port = published_port(bundle);
    const UniqueFd stalls = connect_to(port);
    REQUIRE(stalls);
    running.signal(SIGKILL);
    CHECK(running.finish().status == 128 + SIGKILL);
    await_refusal(port);
    CHECK(verb(bundle, {"delete", "--force", bundle.id()}).status == 0);
}

TEST_CASE("publish: whoever is bound by a policy has the ports that it lists, and without a list none") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    Bundle bundle;
    const auto outcome = [&](const std::string& port) {
        return run_job(bundle, {{"--publish", port + ":80"}, {"true"}, {}});
    };
    CHECK(outcome("0.0.0.0:0").status == 0);
    {
        const SystemPolicy policy(bundle, "{}");
        check_refused(outcome("127.0.0.1:0"), "policy: publish: '127.0.0.1:0' is not in an empty list", 125);
    }
    fs::remove_all(bundle.host() / "etc");
    const SystemPolicy policy(bundle, R"({"publish": ["127.0.0.1", "[::1]:40000-40999"]})");
    CHECK(outcome("127.0.0.1:0").status == 0);
    for (const char* more : {"0.0.0.0:0", "0.0.0.0:8080", "127.0.0.1:80", "127.0.0.2:0", "[::1]:0", "[::1]:39999"}) {
        CAPTURE(more);
        check_refused(outcome(more), "policy: publish: ", 125);
    }
}
