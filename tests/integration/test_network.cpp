// --network pasta: the world can be reached from a sandbox, this machine's own services cannot, and nothing is left.
//
// A network namespace stands for the machine, another for the world: its one end of a cable is the machine's gateway,
// and it has an address further away. Services are sockets of this program, made there.
#include <arpa/inet.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <chrono>
#include <thread>

#include "sandbox.hpp"

using namespace pinfold::integration;

namespace {

constexpr const char* kMachine = "10.9.0.1";
constexpr const char* kGateway = "10.9.0.2";
constexpr const char* kFarAway = "10.9.9.9";
constexpr uint16_t kPort = 7007;
constexpr const char* kTun = "/dev/net/tun";

std::string namespace_id(const std::string& path) {
    std::error_code gone;
    return fs::read_symlink(path, gone);
}

// A socket belongs to the network namespace of the thread that makes it.
UniqueFd serve_in(const std::string& net, const char* address, int type, uint16_t port) {
    UniqueFd made;
    std::thread([&] {
        const UniqueFd there(::open(net.c_str(), O_RDONLY | O_CLOEXEC));
        if (::setns(there.get(), CLONE_NEWNET) != 0) return;
        sockaddr_in name{AF_INET, htons(port), {}, {}};
        ::inet_pton(AF_INET, address, &name.sin_addr);
        UniqueFd server(::socket(AF_INET, type | SOCK_CLOEXEC, 0));
        if (::bind(server.get(), reinterpret_cast<sockaddr*>(&name), sizeof name) != 0) return;
        if (type == SOCK_STREAM && ::listen(server.get(), 8) != 0) return;
        made = std::move(server);
    }).join();
    REQUIRE(made);
    return made;
}

// What is answered there, in the same way; nothing where nobody listens.
std::string ask_in(const std::string& net, uint16_t port) {
    std::string answer;
    std::thread([&] {
        const UniqueFd there(::open(net.c_str(), O_RDONLY | O_CLOEXEC));
        if (::setns(there.get(), CLONE_NEWNET) != 0) return;
        const sockaddr_in name{AF_INET, htons(port), {htonl(INADDR_LOOPBACK)}, {}};
        const UniqueFd client(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
        if (::connect(client.get(), reinterpret_cast<const sockaddr*>(&name), sizeof name) != 0) return;
        char bytes[64];
        const ssize_t got = ::recv(client.get(), bytes, sizeof bytes, MSG_WAITALL);
        if (got > 0) answer.assign(bytes, size_t(got));
    }).join();
    return answer;
}

// Declare it after the Bundle, whose leak check follows.
class Networks {
public:
    Networks() : machine_({"--net"}), world_({"--net"}) {
        const std::string out = "nsenter --net=" + world_.path("net") + " ";
        const std::string pid = world_.path("net").substr(6, world_.path("net").find("/ns/") - 6);
        const std::string script = "ip link set lo up && ip link add eth0 type veth peer name far netns " + pid +
                                   " && ip addr add " + kMachine + "/24 dev eth0 && ip link set eth0 up && " + out +
                                   "sh -c 'ip link set lo up && ip addr add " + kGateway +
                                   "/24 dev far && ip addr add " + kFarAway +
                                   "/32 dev lo && ip link set far up' && ip route add default via " + kGateway;
        const Ended made = run_program({"nsenter", "--net=" + machine_.path("net"), "sh", "-c", script});
        REQUIRE_MESSAGE(made.status == 0, made.err);
        holders_ = count();
    }

    std::string machine() const { return machine_.path("net"); }
    std::string world() const { return world_.path("net"); }

    // Processes that are in the machine's namespace, besides those that hold it.
    int others() const { return count() - holders_; }
    void await_none() const {
        const auto start = std::chrono::steady_clock::now();
        while (others() != 0) {
            if (std::chrono::steady_clock::now() - start > patience()) FAIL("pasta, or its watcher, still runs");
        }
    }

private:
    int count() const {
        int found = 0;
        for (const auto& entry : fs::directory_iterator("/proc")) {
            const std::string name = entry.path().filename();
            if (name.find_first_not_of("0123456789") != std::string::npos) continue;
            if (namespace_id(entry.path() / "ns/net") == namespace_id(machine())) ++found;
        }
        return found;
    }

    NamespaceHolder machine_;
    NamespaceHolder world_;
    int holders_ = 0;
};

// pinfold on that machine, as root or as a normal user.
class Caller {
public:
    Caller(Bundle& bundle, const Networks& networks, bool rootless) : bundle_(bundle) {
        prefix_ = {"nsenter", "--net=" + networks.machine()};
        if (!rootless) return;
        normal_user(bundle);
        const std::string id = std::to_string(kNobodySpecial);
        prefix_.insert(prefix_.end(), {"setpriv", "--reuid", id, "--regid", id, "--clear-groups"});
    }

    std::vector<std::string> words(const std::vector<std::string>& verb) const {
        std::vector<std::string> all = prefix_;
        const std::vector<std::string> rest = bundle_.verb(verb);
        all.insert(all.end(), rest.begin(), rest.end());
        return all;
    }
    std::vector<std::string> sandbox(const std::vector<std::string>& options, const Command& command) const {
        std::vector<std::string> all = {"sandbox", "--name", bundle_.id(), "--network", "pasta"};
        all.insert(all.end(), options.begin(), options.end());
        all.insert(all.end(), command.begin(), command.end());
        return words(all);
    }
    Ended run(const std::vector<std::string>& verb) const { return run_program(words(verb), spawn()); }
    static SpawnOptions spawn() { return {.env = {"HOME=/", "XDG_RUNTIME_DIR="}}; }

private:
    Bundle& bundle_;
    std::vector<std::string> prefix_;
};

// The device as most machines have it; some let only root open it.
class OpenTun {
public:
    explicit OpenTun(const Bundle& bundle)
        : node_(make(bundle.host() / "tun")), mount_(node_, kTun, nullptr, MS_BIND) {}

private:
    static fs::path make(const fs::path& path) {
        REQUIRE(::mknod(path.c_str(), S_IFCHR, makedev(10, 200)) == 0);
        REQUIRE(::chmod(path.c_str(), 0666) == 0);
        return path;
    }
    fs::path node_;
    MountGuard mount_;
};

// Prints for each address and port whether a connection was possible. Not all that is refused is told so: a connection
// that is possible takes a small part of the time that it gets.
Command connect_to(const std::vector<std::string>& places) {
    const std::string patience = pinfold::testing::slow_machine() ? "5" : "1";
    Command command = {"bash", "-c",
                       "for at; do if timeout " + patience +
                           " bash -c \"exec 3<>/dev/tcp/$at\" 2> /dev/null; then echo yes $at; else "
                           "echo no $at; fi; done",
                       "bash"};
    command.insert(command.end(), places.begin(), places.end());
    return command;
}

std::string at(const std::string& address) { return address + "/" + std::to_string(kPort); }

}  // namespace

#define NEEDS_PASTA()                                                                             \
    NEEDS_ROOT();                                                                                 \
    PINFOLD_ONLY();                                                                               \
    if (run_program({"sh", "-c", "command -v pasta"}).status != 0) SKIP_TEST("pasta is missing"); \
    run_program({"modprobe", "-q", "tun"});                                                       \
    if (!fs::exists(kTun)) SKIP_TEST("the kernel has no tun device")

TEST_CASE("network: pasta leads to the world, and to nothing that only this machine can reach") {
    NEEDS_PASTA();
    for (const bool rootless : {false, true}) {
        CAPTURE(rootless);
        Bundle bundle;
        const OpenTun tun(bundle);
        const Networks networks;
        const Caller caller(bundle, networks, rootless);
        const UniqueFd far_away = serve_in(networks.world(), kFarAway, SOCK_STREAM, kPort);
        const UniqueFd loopback = serve_in(networks.machine(), "127.0.0.1", SOCK_STREAM, kPort);
        const UniqueFd outside = serve_in(networks.machine(), kMachine, SOCK_STREAM, kPort);
        const Ended ended =
            run_program(caller.sandbox({}, connect_to({at(kFarAway), at("127.0.0.1"), at(kGateway), at(kMachine)})),
                        Caller::spawn());
        CAPTURE(ended.err);
        CHECK(ended.out == "yes " + at(kFarAway) + "\nno " + at("127.0.0.1") + "\nno " + at(kGateway) + "\nno " +
                               at(kMachine) + "\n");
        CHECK(networks.others() == 0);
    }
}

namespace {

// A question to the first server in the sandbox's resolv.conf, by a socket that hears only of that: the answer comes
// from there.
void check_answered(const Caller& caller, const UniqueFd& server) {
    Process asking(
        caller.sandbox({}, {"bash", "-c",
                            "grep search /etc/resolv.conf; read -r _ at < <(grep nameserver /etc/resolv.conf);"
                            "exec 3<>/dev/udp/$at/53; echo question >&3; head -n 1 <&3"}),
        Caller::spawn());
    CHECK(asking.read_line() == "search example.org");
    REQUIRE(await_readable(server.get()));
    char question[64];
    sockaddr_in from{};
    socklen_t size = sizeof from;
    const ssize_t got =
        ::recvfrom(server.get(), question, sizeof question, 0, reinterpret_cast<sockaddr*>(&from), &size);
    CHECK(std::string(question, size_t(got)) == "question\n");
    const std::string answer = "answer\n";
    ::sendto(server.get(), answer.data(), answer.size(), 0, reinterpret_cast<sockaddr*>(&from), size);
    CHECK(asking.read_line() == "answer");
    CHECK(asking.finish().status == 0);
}

}  // namespace

TEST_CASE("network: names are asked for where this machine asks, also on its loopback") {
    NEEDS_PASTA();
    for (const char* address : {"127.0.0.53", kFarAway}) {
        CAPTURE(address);
        Bundle bundle;
        write_text(bundle.host() / "resolv.conf", std::string("search example.org\nnameserver ") + address + "\n");
        const MountGuard names(bundle.host() / "resolv.conf", "/etc/resolv.conf", nullptr, MS_BIND);
        const Networks networks;
        const Caller caller(bundle, networks, false);
        check_answered(caller,
                       serve_in(address == kFarAway ? networks.world() : networks.machine(), address, SOCK_DGRAM, 53));
    }
}

TEST_CASE("network: a server that others can reach too is asked directly") {
    NEEDS_PASTA();
    Bundle bundle;
    write_text(bundle.host() / "resolv.conf", "nameserver 127.0.0.53\nnameserver 10.1.2.3\n");
    const MountGuard names(bundle.host() / "resolv.conf", "/etc/resolv.conf", nullptr, MS_BIND);
    const Networks networks;
    const Caller caller(bundle, networks, false);
    CHECK(run_program(caller.sandbox({}, {"cat", "/etc/resolv.conf"})).out == "nameserver 10.1.2.3\n");
    CHECK(run_job(bundle, {{"--network", "host"}, {"cat", "/etc/resolv.conf"}, {}}).out ==
          "nameserver 127.0.0.53\nnameserver 10.1.2.3\n");
}

TEST_CASE("network: pasta ends with a sandbox whose supervisor was killed") {
    NEEDS_PASTA();
    Bundle bundle;
    const Networks networks;
    const Caller caller(bundle, networks, false);
    const auto running =
        std::make_unique<Process>(caller.sandbox({}, {"sh", "-c", "echo ready; sleep 1000"}), Caller::spawn());
    CHECK(running->read_line() == "ready");
    CHECK(networks.others() >= 3);  // pinfold, the watcher, pasta
    running->signal(SIGKILL);
    CHECK(running->finish().status == 128 + SIGKILL);
    networks.await_none();
    CHECK(verb(bundle, {"delete", "--force", bundle.id()}).status == 0);
}

TEST_CASE("network: a sandbox that stays keeps its network, and takes it along") {
    NEEDS_PASTA();
    for (const bool rootless : {false, true}) {
        CAPTURE(rootless);
        Bundle bundle;
        const OpenTun tun(bundle);
        const Networks networks;
        const Caller caller(bundle, networks, rootless);
        const UniqueFd far_away = serve_in(networks.world(), kFarAway, SOCK_STREAM, kPort);
        // The shell reads to the end of the output: whoever stays must not hold it.
        std::vector<std::string> words = caller.sandbox({"--detach"}, {});
        words.insert(words.begin(), {"sh", "-c", "out=$(\"$@\" 2>&1); echo \"$? $out\"", "sh"});
        CHECK(run_program(words, Caller::spawn()).out == "0 " + bundle.id() + "\n");
        std::vector<std::string> exec = {"exec", bundle.id()};
        const Command command = connect_to({at(kFarAway)});
        exec.insert(exec.end(), command.begin(), command.end());
        CHECK(caller.run(exec).out == "yes " + at(kFarAway) + "\n");
        CHECK(caller.run({"delete", "--force", bundle.id()}).status == 0);
        networks.await_none();
    }
}

TEST_CASE("network: with pasta a published port leads into the sandbox, and goes with it") {
    NEEDS_PASTA();
    for (const bool rootless : {false, true}) {
        CAPTURE(rootless);
        Bundle bundle;
        const OpenTun tun(bundle);
        const Networks networks;
        const Caller caller(bundle, networks, rootless);
        const Command serve = {"perl", "-e",
                               "use Socket; $| = 1; socket(S, AF_INET, SOCK_STREAM, 0); bind(S, sockaddr_in(8000, "
                               "INADDR_LOOPBACK)) or die; listen(S, 8); print \"ready\\n\"; while (accept(C, S)) "
                               "{ print C 'hello'; close C }"};
        Process running(caller.sandbox({"--publish", std::to_string(kPort) + ":8000"}, serve), Caller::spawn());
        CHECK(running.read_line() == "ready");
        CHECK(ask_in(networks.machine(), kPort) == "hello");
        running.signal(SIGTERM);
        CHECK(running.finish().status == 128 + SIGTERM);
        CHECK(ask_in(networks.machine(), kPort).empty());
        networks.await_none();
    }
}

TEST_CASE("network: the profile is the one that fits, unless another is named") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    const Bundle bundle;
    const Command command = {"perl", "-e", "socket(my $list_of_interfaces, 16, 3, 0)"};  // AF_NETLINK, SOCK_RAW
    const auto denied = [&](const std::vector<std::string>& options) {
        return denied_call(judge_job(bundle, {options, command, {}}).result, "socket") != nullptr;
    };
    CHECK(denied({}));
    CHECK_FALSE(denied({"--network", "host"}));
    CHECK(denied({"--network", "host", "--seccomp", "default"}));
}

TEST_CASE("network: what pasta needs and does not have is told, and nothing is left") {
    NEEDS_PASTA();
    Bundle bundle;
    const auto refused = [&](const SpawnOptions& spawn, const std::string& words) {
        const Ended ended = run_job(bundle, {{"--network", "pasta"}, {"/bin/true"}, spawn});
        CHECK(ended.status == 125);
        CHECK_MESSAGE(ended.err.find(words) != std::string::npos, ended.err);
    };
    refused({.env = {"PATH=/nowhere"}}, "hint: install the package passt");
    {
        const NamespaceHolder unplugged({"--net"});
        std::vector<std::string> words = {"nsenter", "--net=" + unplugged.path("net")};
        const std::vector<std::string> rest =
            bundle.verb({"sandbox", "--name", bundle.id(), "--network", "pasta", "true"});
        words.insert(words.end(), rest.begin(), rest.end());
        const Ended ended = run_program(words);
        CHECK(ended.status == 125);
        CHECK_MESSAGE(ended.err.find("pasta could not set up the network: '") != std::string::npos, ended.err);
    }
    write_text(bundle.host() / "nothing", "");
    const MountGuard closed(bundle.host() / "nothing", kTun, nullptr, MS_BIND);
    fs::permissions(bundle.host() / "nothing", fs::perms::none);
    refused(normal_user(bundle), "hint: load the module tun");
}
