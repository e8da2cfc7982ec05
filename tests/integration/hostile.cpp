// Running hostile jobs, and looking at what they have left of the host.
#include "hostile.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <sstream>

#include "support/source_root.hpp"

namespace pinfold::integration {

namespace {

constexpr const char* kSecret = "secret of the host";
constexpr const char* kCanary = "alive\n";
constexpr const char* kNeighbour = R"(
    trap 'cat /workspace/mine; exit 5' TERM
    echo mine > /workspace/mine
    echo ready
    while :; do sleep 60 & wait; done)";

UniqueFd open_socket(int domain, int type, const void* address, size_t size) {
    UniqueFd socket(::socket(domain, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    REQUIRE(::bind(socket.get(), static_cast<const sockaddr*>(address), socklen_t(size)) == 0);
    if (type == SOCK_STREAM) REQUIRE(::listen(socket.get(), 8) == 0);
    return socket;
}

sockaddr_in loopback(uint16_t port) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(port);
    return address;
}

uint16_t port_of(int socket) {
    sockaddr_in address{};
    socklen_t size = sizeof address;
    REQUIRE(::getsockname(socket, reinterpret_cast<sockaddr*>(&address), &size) == 0);
    return ntohs(address.sin_port);
}

UniqueFd open_unix_socket(const std::string& name) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    REQUIRE(name.size() < sizeof address.sun_path);
    std::memcpy(address.sun_path, name.data(), name.size());
    return open_socket(AF_UNIX, SOCK_STREAM, &address, offsetof(sockaddr_un, sun_path) + name.size());
}

// What a job with rights of the host could have set.
std::string kernel_settings() {
    std::string text;
    for (const char* name : {"kernel/hostname", "kernel/domainname", "kernel/core_pattern", "kernel/modprobe",
                             "net/ipv4/ip_forward", "kernel/sysrq"}) {
        text += read_text(fs::path("/proc/sys") / name);
    }
    return text;
}

fs::path script_path(const std::string& name) { return testing::source_root() / "tests/data/hostile" / name; }

// The script goes in by standard input: the caller need not be able to read the file.
void take_script(Job& job) {
    const fs::path file = script_path(job.command[0].substr(1));
    job.spawn.input = read_text(file);
    REQUIRE(!job.spawn.input.empty());
    job.options.insert(job.options.end(), {"--lang", file.extension() == ".pl" ? "perl" : "bash", "-"});
    job.options.insert(job.options.end(), job.command.begin() + 1, job.command.end());
    job.command.clear();
}

void check_denied(const Attack& attack, const json& result) {
    std::vector<std::string> names;
    for (const json& call : result["denied"]) {
        names.push_back(call["name"]);
        CHECK(call["program"] != "");
    }
    std::vector<std::string> wanted = attack.denied;
    std::sort(names.begin(), names.end());
    std::sort(wanted.begin(), wanted.end());
    CHECK(json(names) == json(wanted));
}

}  // namespace

Host::Host(const Bundle& bundle)
    : directory_(bundle.host()), name_("pinfold-" + bundle.id()), settings_(kernel_settings()) {
    sockaddr_in address = loopback(0);
    sockets_[0] = open_socket(AF_INET, SOCK_STREAM, &address, sizeof address);
    address = loopback(port_of(sockets_[0].get()));
    sockets_[1] = open_socket(AF_INET, SOCK_DGRAM, &address, sizeof address);
    port_ = std::to_string(ntohs(address.sin_port));
    sockets_[2] = open_unix_socket('\0' + name_);
    sockets_[3] = open_unix_socket(directory_ / "socket");
    write_text(canary(), kCanary);
    write_text(directory_ / "secret", kSecret);
    secret_ = UniqueFd(::open((directory_ / "secret").c_str(), O_RDWR | O_CLOEXEC));
}

std::vector<std::string> Host::job_options() const {
    return {"-e", "PORT=" + port_,
            "-e", "ABSTRACT=" + name_,
            "-e", "SOCKET=" + std::string(directory_ / "socket"),
            "-e", "SECRET=" + std::string(directory_ / "secret"),
            "-e", "CANARY=" + std::string(canary())};
}

void Host::confide_in(SpawnOptions& pinfold) const {
    pinfold.env.push_back(std::string("TOKEN=") + kSecret);
    pinfold.fds.push_back({7, secret_.get()});
}

void Host::check_unharmed(const std::string& printed) const {
    CHECK(printed.find(kSecret) == std::string::npos);
    CHECK(read_text(canary()) == kCanary);
    CHECK(read_text(directory_ / "secret") == kSecret);
    CHECK(kernel_settings() == settings_);
    for (const UniqueFd& socket : sockets_) {
        CAPTURE(socket.get());
        pollfd slot{socket.get(), POLLIN, 0};
        CHECK(::poll(&slot, 1, 0) == 0);
    }
}

Neighbour::Neighbour(const Bundle& bundle)
    : process_(bundle.verb({"sandbox", "--name", bundle.id() + "-beside", "--", "sh", "-c", kNeighbour}), {}) {
    CHECK(process_.read_line() == "ready");
}

Neighbour::~Neighbour() {
    process_.signal(SIGTERM);
    const Ended ended = process_.finish();
    CHECK_MESSAGE(ended.status == 5, ended.err);
    CHECK(ended.out == "ready\nmine\n");
}

uint64_t Attempt::denials(const std::string& name) const {
    const json* call = denied_call(result, name);
    return call == nullptr ? 0 : call->at("count").get<uint64_t>();
}

json Attempt::answer(size_t line) const {
    std::istringstream lines(out());
    std::string text;
    for (size_t i = 0; i <= line; ++i) std::getline(lines, text);
    json parsed = json::parse(text, nullptr, false);
    if (parsed.is_discarded()) FAIL("no answer " << line << ": " << out() << err());
    return parsed;
}

namespace {

Job job_of(const Attack& attack, As as, Bundle& bundle, const Host& host) {
    Job job{{"--result", "-"}, attack.command, as == As::user ? normal_user(bundle) : SpawnOptions{}};
    host.confide_in(job.spawn);
    for (const std::vector<std::string>& more : {host.job_options(), attack.options})
        job.options.insert(job.options.end(), more.begin(), more.end());
    const std::string program = job.command.empty() ? "" : job.command[0];
    if (program == "/probe")
        job.options.insert(job.options.end(), {"--ro-bind", std::string(bundle.rootfs() / "probe") + ":/probe"});
    if (program.starts_with('@')) take_script(job);
    return job;
}

// An attack that is under way. All of them have to be checked before one of them goes.
class Running {
public:
    Running(const Attack& attack, As as) : attack_(attack), as_(as), host_(bundle_) {
        if (attack.beside) neighbour_.emplace(bundle_);
        const Job job = job_of(attack, as, bundle_, host_);
        process_.emplace(job_line(bundle_, job), job.spawn);
    }

    void check() {
        INFO(std::string(attack_.name), std::string(as_ == As::root ? ", as root" : ", as a normal user"));
        const Judged judged = judge(process_->finish());
        const json& result = judged.result;
        INFO("printed: ", std::string(result["stdout"]).substr(0, 500), std::string(result["stderr"]).substr(0, 500));
        INFO("pinfold: ", judged.err);
        const End& end = as_ == As::user && attack_.end_of_user ? *attack_.end_of_user : attack_.end;
        CHECK(result["status"] == end.status);
        CHECK(judged.status == end.exit_code);
        check_denied(attack_, result);
        if (attack_.check != nullptr) attack_.check({as_, bundle_, host_, result});
        host_.check_unharmed(result.dump() + judged.err);
        neighbour_.reset();
    }

private:
    const Attack& attack_;
    As as_;
    Bundle bundle_;
    Host host_;
    std::optional<Neighbour> neighbour_;
    std::optional<Process> process_;
};

}  // namespace

// Side by side, since most of them wait for their deadline.
void run_attacks(const std::vector<Attack>& attacks) {
    for (const Attack& attack : attacks) {
        Running as_root(attack, As::root), as_user(attack, As::user);
        as_root.check();
        as_user.check();
    }
}

}  // namespace pinfold::integration
