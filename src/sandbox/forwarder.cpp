// A process that leads connections to ports of this machine into a sandbox.
#include "sandbox/forwarder.hpp"

#include <fcntl.h>
#include <grp.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <memory>
#include <span>

#include "base/address.hpp"
#include "base/clock.hpp"
#include "base/fs.hpp"
#include "base/log.hpp"
#include "base/strings.hpp"
#include "kernel/capabilities.hpp"
#include "kernel/credentials.hpp"
#include "kernel/namespaces.hpp"
#include "process/payload_steps.hpp"
#include "seccomp/load.hpp"

namespace pinfold {

namespace {

using namespace std::chrono_literals;

// At once, of all ports together. Who comes beyond that waits to be accepted, where the kernel lets a few wait.
constexpr size_t kMostConnections = 256;
constexpr size_t kBytes = 16 << 10;                 // of one direction, on their way through us
constexpr std::chrono::nanoseconds kDraining = 1s;  // for what the sandbox had sent when it ended
constexpr std::chrono::nanoseconds kPause = 100ms;  // where the kernel has no room for one more connection

enum class Moved : uint8_t { so_far, read_failed, write_failed };

// One direction. It reads only when all that it read before is written: a slow reader slows the writer down. The end
// of one is passed on and leaves the other as it is, for those who say all and then listen.
struct Way {
    int from = -1;
    int to = -1;
    char* bytes = nullptr;
    size_t begin = 0;
    size_t end = 0;
    bool ended = false;   // there is no more to read
    bool passed = false;  // and the other side has been told

    bool wants_read() const { return !ended && begin == end; }
    bool wants_write() const { return begin != end; }
    Moved move();
    // Nobody takes it.
    void abandon() {
        begin = end = 0;
        ended = passed = true;
    }

private:
    bool read_some();
    bool write_some();
};

bool is_for_now() { return errno == EAGAIN || errno == EINTR; }

// False: the connection is broken, as it is below.
bool Way::read_some() {
    const ssize_t got = ::recv(from, bytes, kBytes, MSG_DONTWAIT);
    begin = end = 0;
    if (got < 0) return is_for_now();
    end = static_cast<size_t>(got);
    ended = got == 0;
    return true;
}

bool Way::write_some() {
    const ssize_t put = ::send(to, bytes + begin, end - begin, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (put < 0) return is_for_now();
    begin += static_cast<size_t>(put);
    return true;
}

// Not for ever: others want their turn.
Moved Way::move() {
    constexpr int kTurns = 4;
    for (int turn = 0; turn < kTurns && !passed; ++turn) {
        if (wants_read() && !read_some()) return Moved::read_failed;
        if (wants_write() && !write_some()) return Moved::write_failed;
        if (wants_write() || (!ended && begin == 0)) return Moved::so_far;
        if (!ended) continue;
        passed = true;
        if (::shutdown(to, SHUT_WR) != 0) return Moved::write_failed;
    }
    return Moved::so_far;
}

struct Side {
    UniqueFd socket;
    bool hung = false;  // its connection was reset; what it had said before may still be there to read
};

struct Connection {
    Side host;
    Side inside;
    Way inwards;
    Way outwards;
    uint16_t port = 0;
    bool connecting = false;
    bool by_six = false;  // IPv4 was refused

    bool is_there() const { return bool(host.socket); }
    void begin();
    void finish_connecting();
    void pass_on();
    void drop();
};

// The other one sees that it was broken off, and takes no part for the whole.
void reset(UniqueFd& socket) {
    const linger at_once{1, 0};
    if (socket) ::setsockopt(socket.get(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    socket.reset();
}

UniqueFd begin_connecting(uint16_t port, bool by_six) {
    constexpr int kTries = 4;  // some 15 seconds
    constexpr int kOptions[][3] = {{SOL_SOCKET, SO_RCVBUF, kSocketBuffer},
                                   {SOL_SOCKET, SO_SNDBUF, kSocketBuffer},
                                   {IPPROTO_TCP, TCP_SYNCNT, kTries},
                                   {IPPROTO_TCP, TCP_NODELAY, 1}};
    sockaddr_in four{AF_INET, htons(port), {htonl(INADDR_LOOPBACK)}, {}};
    sockaddr_in6 six{AF_INET6, htons(port), 0, IN6ADDR_LOOPBACK_INIT, 0};
    const auto* name = by_six ? reinterpret_cast<sockaddr*>(&six) : reinterpret_cast<sockaddr*>(&four);
    UniqueFd socket(::socket(name->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!socket) return {};
    for (const auto& option : kOptions) ::setsockopt(socket.get(), option[0], option[1], &option[2], sizeof(int));
    if (::connect(socket.get(), name, by_six ? sizeof six : sizeof four) != 0 && errno != EINPROGRESS) return {};
    return socket;
}

// Where nothing listens by IPv4, a program may by IPv6 alone.
void Connection::begin() {
    connecting = true;
    inside = {begin_connecting(port, by_six), false};
    if (!inside.socket && !by_six) {
        by_six = true;
        inside.socket = begin_connecting(port, by_six);
    }
    if (!inside.socket) return drop();
    inwards = {host.socket.get(), inside.socket.get(), inwards.bytes};
    outwards = {inside.socket.get(), host.socket.get(), outwards.bytes};
}

void Connection::finish_connecting() {
    int failed = 0;
    socklen_t size = sizeof failed;
    if (::getsockopt(inside.socket.get(), SOL_SOCKET, SO_ERROR, &failed, &size) != 0) failed = errno;
    if (failed == ECONNREFUSED && !by_six) {
        by_six = true;
        return begin();
    }
    if (failed != 0) return drop();
    connecting = false;
}

// A program that takes no more may have answered before it went.
void Connection::pass_on() {
    const Moved in = inwards.move();
    if (in == Moved::read_failed) return drop();
    if (in == Moved::write_failed) inwards.abandon();
    if (outwards.move() != Moved::so_far) drop();
}

void Connection::drop() {
    reset(inside.socket);
    reset(host.socket);
}

// Under its filter it allocates nothing: all that it will ever need is made with it.
class Relay {
public:
    Relay(int sandbox_init, std::span<const Listener> listeners, size_t most)
        : listeners_(listeners),
          connections_(most),
          bytes_(std::make_unique_for_overwrite<char[]>(most * 2 * kBytes)),
          slots_(1 + listeners.size() + 2 * most) {
        slots_[0] = {sandbox_init, POLLIN, 0};
        for (size_t i = 0; i < most; ++i) {
            connections_[i].inwards.bytes = &bytes_[2 * i * kBytes];
            connections_[i].outwards.bytes = &bytes_[(2 * i + 1) * kBytes];
        }
    }

    void run();

private:
    void prepare();
    void accept_from(const Listener& listener);
    void serve(Connection& one, const pollfd& host, const pollfd& inside);
    void begin_to_end();
    bool is_done(const Connection& one) const;
    int patience() const;
    bool accepts() const { return give_up_at_ == 0 && used_ < connections_.size() && monotonic_ns() >= accepts_from_; }

    std::span<const Listener> listeners_;
    std::vector<Connection> connections_;
    std::unique_ptr<char[]> bytes_;
    std::vector<pollfd> slots_;
    size_t used_ = 0;
    int64_t accepts_from_ = 0;
    int64_t give_up_at_ = 0;  // 0: the sandbox lives
};

// What one side has to be asked for. Where that is nothing, only whether it was reset; but not once both of its
// directions have ended, which looks the same.
pollfd slot_of(const Side& side, const Way& out_of_it, const Way& into_it) {
    const int events = (out_of_it.wants_read() ? POLLIN : 0) | (into_it.wants_write() ? POLLOUT : 0);
    const bool is_asked = events != 0 || (!side.hung && !into_it.passed);
    return {is_asked ? side.socket.get() : -1, static_cast<short>(events), 0};
}

void Relay::prepare() {
    const bool open = accepts();
    for (size_t i = 0; i < listeners_.size(); ++i) slots_[1 + i] = {open ? listeners_[i].socket.get() : -1, POLLIN, 0};
    for (size_t i = 0; i < connections_.size(); ++i) {
        const Connection& one = connections_[i];
        pollfd* const slots = &slots_[1 + listeners_.size() + 2 * i];
        slots[0] = slots[1] = {-1, 0, 0};
        if (!one.is_there()) continue;
        slots[0] = one.connecting ? pollfd{one.host.socket.get(), 0, 0} : slot_of(one.host, one.inwards, one.outwards);
        slots[1] = one.connecting ? pollfd{one.inside.socket.get(), POLLOUT, 0}
                                  : slot_of(one.inside, one.outwards, one.inwards);
    }
}

// Milliseconds until something is to be done even if nobody speaks; -1: nothing is.
int Relay::patience() const {
    const int64_t until = give_up_at_ != 0 ? give_up_at_ : accepts_from_;
    const int64_t left = until - monotonic_ns();
    if (give_up_at_ == 0 && left <= 0) return -1;
    return static_cast<int>(std::max<int64_t>(left, 0) / 1'000'000 + 1);
}

void Relay::run() {
    constexpr int kFailures = 100;  // in a row; the kernel's want of memory passes
    int failures = 0;
    while (give_up_at_ == 0 || (used_ != 0 && monotonic_ns() < give_up_at_)) {
        prepare();
        if (::poll(slots_.data(), slots_.size(), patience()) < 0) {
            if (errno != EINTR && ++failures > kFailures) break;
            continue;
        }
        failures = 0;
        const pollfd* const slots = &slots_[1 + listeners_.size()];
        for (size_t i = 0; i < connections_.size(); ++i) serve(connections_[i], slots[2 * i], slots[2 * i + 1]);
        for (size_t i = 0; i < listeners_.size(); ++i) {
            if (slots_[1 + i].revents != 0 && accepts()) accept_from(listeners_[i]);
        }
        if (slots_[0].revents != 0) begin_to_end();
    }
    for (Connection& one : connections_) one.drop();
}

// The sandbox is gone. What it had sent is in our sockets by now.
void Relay::begin_to_end() {
    slots_[0] = {-1, 0, 0};
    give_up_at_ = monotonic_ns() + kDraining.count();
    for (const Listener& listener : listeners_) ::close(listener.socket.get());  // nobody returns from here
    for (Connection& one : connections_) serve(one, {-1, 0, 0}, {-1, 0, 0});
}

void Relay::accept_from(const Listener& listener) {
    UniqueFd socket(::accept4(listener.socket.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!socket) {
        const bool no_room = errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS;
        if (no_room) accepts_from_ = monotonic_ns() + kPause.count();
        return;
    }
    Connection& one = *std::ranges::find_if_not(connections_, &Connection::is_there);
    one.host = {std::move(socket), false};
    one.port = listener.port.inside;
    one.by_six = false;
    one.begin();
    if (one.is_there()) ++used_;
}

bool Relay::is_done(const Connection& one) const {
    return one.outwards.passed && (one.inwards.passed || give_up_at_ != 0);
}

bool was_reset(const pollfd& slot) { return slot.events == 0 && slot.revents != 0; }

void Relay::serve(Connection& one, const pollfd& host, const pollfd& inside) {
    if (!one.is_there()) return;
    if (one.connecting) {
        if (host.revents != 0 || give_up_at_ != 0) one.drop();
        else if (inside.revents != 0) one.finish_connecting();
    } else {
        one.host.hung = one.host.hung || was_reset(host);
        one.inside.hung = one.inside.hung || was_reset(inside);
        if (host.revents != 0 || inside.revents != 0) one.pass_on();
        // Nobody is left there to hear what the other side says.
        const bool is_lost = (one.host.hung && one.inwards.passed) || (one.inside.hung && one.outwards.passed);
        if (is_lost) one.drop();
        if (is_done(one)) {
            one.inside.socket.reset();
            one.host.socket.reset();
        }
    }
    if (!one.is_there()) --used_;
}

// As many as there are descriptors for.
size_t most_connections(size_t listeners) {
    constexpr size_t kOthers = 16;
    rlimit limit{};
    if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return kMostConnections;
    const rlimit raised{limit.rlim_max, limit.rlim_max};
    if (::setrlimit(RLIMIT_NOFILE, &raised) == 0) limit = raised;
    if (limit.rlim_cur <= listeners + kOthers + 2) return 1;
    return std::min<size_t>(kMostConnections, (limit.rlim_cur - listeners - kOthers) / 2);
}

// What the process keeps of all that it has inherited.
struct Equipment {
    const Channel& link;
    int sandbox_init;
    std::span<const Listener> listeners;
    const SeccompFilter& filter;
    const InsideOf& inside;
    UniqueFd net;
};

Result<void> keep_only(const Equipment& equipment) {
    const UniqueFd null = TRY(open_at(AT_FDCWD, "/dev/null", O_RDWR));
    for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
        if (::dup2(null.get(), stream) < 0) return errno_error("replace the standard streams");
    }
    std::vector<int> kept = {equipment.link.fd(), equipment.sandbox_init, equipment.net.get(),
                             equipment.inside.way->user.get()};
    for (const Listener& listener : equipment.listeners) kept.push_back(listener.socket.get());
    return close_all_but(kept, STDERR_FILENO + 1);
}

// Who we are: the caller. Afterwards: the payload's user in its user namespace, with no capability there or anywhere.
Result<void> become_payloads_user(Equipment& equipment) {
    // They would stay with us where the namespace denies setgroups. A normal user cannot drop them.
    if (::setgroups(0, nullptr) != 0 && errno != EPERM) return errno_error("drop the groups");
    std::vector<OpenedNamespace> namespaces;
    namespaces.push_back({CLONE_NEWNET, "of the sandbox", std::move(equipment.net)});
    namespaces.push_back({CLONE_NEWUSER, "of the sandbox",
                          UniqueFd(::fcntl(equipment.inside.way->user.get(), F_DUPFD_CLOEXEC, STDERR_FILENO + 1))});
    TRY(join_namespaces(namespaces));
    Identity identity = equipment.inside.identity;
    identity.set_groups = equipment.inside.way->set_groups;
    TRY(change_identity(identity));
    TRY(apply_capabilities({}));
    TRY(forbid_new_privileges());
    if (::prctl(PR_SET_DUMPABLE, 0) != 0) return errno_error("set dumpable");  // a change of user has set it
    return {};
}

Result<void> forward(Equipment& equipment) {
    ::setsid();  // a terminal's signals are for the sandbox
    reset_signals();
    ::prctl(PR_SET_NAME, "pinfold-publish");
    if (::prctl(PR_SET_DUMPABLE, 0) != 0) return errno_error("set dumpable");
    wipe(find_argv_region());
    TRY(keep_only(equipment));
    if (::chdir("/") != 0) return errno_error("change to /");
    const size_t most = most_connections(equipment.listeners.size());
    Relay relay(equipment.sandbox_init, equipment.listeners, most);
    const std::string ready = packet_of(Message::ready);
    const int link = equipment.link.fd();
    TRY(become_payloads_user(equipment));
    ::close(equipment.inside.way->user.get());  // nobody returns from here
    TRY(load_seccomp(equipment.filter));
    if (::send(link, ready.data(), ready.size(), MSG_NOSIGNAL) != ssize_t(ready.size())) ::_exit(1);
    ::close(link);
    relay.run();
    ::_exit(0);
}

}  // namespace

Result<SeccompFilter> forwarder_filter() {
    constexpr const char* kAllow = "SCMP_ACT_ALLOW";
    Seccomp profile{.default_action = "SCMP_ACT_KILL_PROCESS"};
    profile.syscalls.push_back({{"poll", "ppoll", "accept4", "connect", "getsockopt", "setsockopt", "recvfrom",
                                 "sendto", "shutdown", "close", "clock_gettime", "restart_syscall", "exit_group"},
                                kAllow,
                                {},
                                {}});
    for (const uint64_t family : {AF_INET, AF_INET6})
        profile.syscalls.push_back({{"socket"}, kAllow, {}, {{0, family, 0, "SCMP_CMP_EQ"}}});
    return compile_seccomp(profile);
}

Result<Forwarder> Forwarder::start(const Child& sandbox_init, const InsideOf& inside,
                                   const std::vector<Listener>& listeners, const SeccompFilter& filter) {
    std::pair<Channel, Channel> ends = TRY(Channel::make_pair());
    // Opened here: after it has joined the user namespace it may not look at the process any more.
    UniqueFd net = TRY(open_at(AT_FDCWD, concat("/proc/", sandbox_init.pid(), "/ns/net"), O_RDONLY));
    const pid_t pid = ::fork();
    if (pid < 0) return errno_error("--publish: fork");
    if (pid == 0) {
        ends.first.close();
        Equipment equipment{ends.second, sandbox_init.pidfd.get(), listeners, filter, inside, std::move(net)};
        const Result<void> failed = forward(equipment);
        ends.second.send_failure(failed.error());
        ::_exit(1);
    }
    ChildGuard process(pid);
    ends.second.close();
    UniqueFd pidfd = open_pidfd(pid);
    if (!pidfd) return errno_error("--publish: pidfd_open");
    TRY_IN("--publish", expect(ends.first, Message::ready));
    return Forwarder(std::move(process), std::move(pidfd));
}

Forwarder::~Forwarder() {
    constexpr std::chrono::seconds kPatience = 2s;
    if (!pidfd_) return;
    if (!await_end(pidfd_.get(), kPatience)) log_warning("--publish: connections were still open, and are cut");
}

void Forwarder::release() noexcept {
    process_.release();
    pidfd_.reset();
}

}  // namespace pinfold
