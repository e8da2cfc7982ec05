// How a process comes to be that becomes a payload.
#include "process/spawn.hpp"

#include <grp.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>
#include <vector>

#include "base/clock.hpp"
#include "base/fs.hpp"
#include "base/log.hpp"
#include "base/process.hpp"
#include "base/strings.hpp"
#include "kernel/syscalls.hpp"
#include "process/child_steps.hpp"
#include "process/handshake.hpp"
#include "process/supervise.hpp"
#include "process/trampoline.hpp"

namespace pinfold {

namespace {

// PR_SET_DUMPABLE keeps the processes that live in these namespaces from tracing us or opening our descriptors
// meanwhile (CVE-2016-9962).
Result<void> join(const std::vector<OpenedNamespace>& namespaces, bool joins_user) {
    if (namespaces.empty()) return {};
    if (::prctl(PR_SET_DUMPABLE, 0) != 0) return errno_error("set dumpable");
    // The caller's groups would stay with the payload if the namespace denies setgroups. A normal user cannot drop
    // them.
    if (joins_user && ::setgroups(0, nullptr) != 0 && errno != EPERM) return errno_error("drop the caller's groups");
    TRY(join_namespaces(namespaces));
    if (joins_user) TRY(become_namespace_root({}));
    return {};
}

// Who we are: the caller, or root in a user namespace of our own; then a member of the joined namespaces.
Result<void> enter(const Plan& plan, const std::vector<OpenedNamespace>& namespaces, ChildSide& handshake) {
    if (::prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) return errno_error("set the parent-death signal");
    if (plan.namespaces.user_before_time) {
        // The parent has written our id maps by the time it says go.
        TRY(handshake.await_go());
    }
    const bool joins_user = plan.namespaces.joins(CLONE_NEWUSER);
    // A process that is not dumpable may not open its own files in /proc, unless it is root: so clocks come first,
    // except where it takes the rights of the joined user namespace.
    const bool clocks_first = plan.namespaces.create_time && !joins_user;
    if (clocks_first) TRY(create_time_namespace(plan.namespaces.clock_offsets));
    TRY(join(namespaces, joins_user));
    if (plan.namespaces.create_time && !clocks_first) TRY(create_time_namespace(plan.namespaces.clock_offsets));
    return {};
}

// Not ours to join: what we clone is still to be set up, and not to be seen by those who live there.
UniqueFd take_pid_namespace(std::vector<OpenedNamespace>& namespaces) {
    const auto pid = std::ranges::find(namespaces, uint64_t{CLONE_NEWPID}, &OpenedNamespace::flag);
    if (pid == namespaces.end()) return {};
    UniqueFd taken = std::move(pid->fd);
    namespaces.erase(pid);
    return taken;
}

[[noreturn]] void run_joiner(std::vector<OpenedNamespace> namespaces, ChildContext context) {
    const NamespacePlan& plan = context.plan().namespaces;
    uint64_t flags = plan.create;
    if (plan.user_before_time) flags &= ~uint64_t{CLONE_NEWUSER};
    context.pid_namespace = take_pid_namespace(namespaces);
    ChildSide& handshake = context.handshake;
    const auto clone = [&]() -> Result<void> {
        TRY(enter(context.plan(), namespaces, handshake));
        return handshake.clone_sibling(flags, [&] { run_child(std::move(context)); });
    };
    // A part of the parent's step, which has told of it.
    Result<void> cloned = clone();
    if (!cloned) handshake.fail(in_step("clone", std::move(cloned).error()));
    ::_exit(0);
}

// Whoever lives where the new process is seen may have taken its end of the channel (CAP_SYS_PTRACE), and speak in its
// place. So a descriptor is not believed: it must be of a child of ours. Of all that can be named from in there, only
// the new process is. Its number, as we see it, is the kernel's word.
Result<pid_t> own_child(int pidfd) {
    siginfo_t end{};
    if (::waitid(P_PIDFD, id_t(pidfd), &end, WEXITED | WNOHANG | WNOWAIT) != 0)
        return plain_error("a process was named as pinfold's own that is not: somebody in the container spoke");
    return pid_of(pidfd);
}

}  // namespace

Result<pid_t> clone_into(uint64_t flags, int cgroup, int& pidfd) {
    clone_args arguments{};
    arguments.flags = flags | CLONE_PIDFD;
    arguments.pidfd = reinterpret_cast<uintptr_t>(&pidfd);
    arguments.exit_signal = SIGCHLD;
    if (cgroup >= 0) {
        arguments.flags |= CLONE_INTO_CGROUP;
        arguments.cgroup = static_cast<uint64_t>(cgroup);
    }
    const pid_t pid = sys_clone3(arguments);
    if (pid >= 0) return pid;
    return namespace_error(errno, "clone3");
}

Result<Child> spawn_by_joiner(ChildContext context, ParentSide& handshake, int cgroup,
                              const std::function<void()>& close_ours) {
    const Plan& plan = context.plan();
    std::vector<OpenedNamespace> namespaces = TRY(open_namespaces(plan.namespaces.join));
    int pidfd = -1;
    const pid_t pid = TRY(clone_into(plan.namespaces.user_before_time ? CLONE_NEWUSER : 0, cgroup, pidfd));
    if (pid == 0) {
        close_ours();
        run_joiner(std::move(namespaces), std::move(context));
    }
    const Child joiner{ChildGuard(pid), UniqueFd(pidfd)};
    context.handshake.close();
    if (plan.namespaces.user_before_time) {
        TRY_IN("id maps", write_id_maps(pid, *plan.id_maps));
        TRY(handshake.go());
    }
    return handshake.born(joiner.pidfd.get());
}

std::vector<std::string> new_namespaces(uint64_t flags) {
    std::vector<std::string> words;
    for (const uint64_t flag :
         {CLONE_NEWUSER, CLONE_NEWPID, CLONE_NEWNET, CLONE_NEWIPC, CLONE_NEWUTS, CLONE_NEWNS, CLONE_NEWCGROUP}) {
        if (flags & flag) words.push_back(concat("new ", namespace_name(flag), " namespace"));
    }
    return words;
}

// The 48th and 51st of the words in stat: where the arguments begin and where the environment ends, which follows them.
ArgvRegion find_argv_region() {
    const Result<std::string> stat = read_file("/proc/self/stat");
    if (!stat) return {};
    const std::vector<std::string_view> words = split(std::string_view(*stat).substr(stat->rfind(')') + 1), ' ');
    constexpr size_t kArguments = 48 - 2, kEnvironmentEnd = 51 - 2;
    if (words.size() <= kEnvironmentEnd) return {};
    return {parse_number<uintptr_t>(words[kArguments]).value_or(0),
            parse_number<uintptr_t>(words[kEnvironmentEnd]).value_or(0)};
}

void wipe(const ArgvRegion& words) {
    // NOLINTNEXTLINE(performance-no-int-to-ptr): the kernel tells addresses as numbers
    std::memset(reinterpret_cast<void*>(words.begin), 0, words.end - words.begin);
}

Result<void> depend_on_parent(const Channel& channel) {
    if (::prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) return errno_error("set the parent-death signal");
    pollfd parent{channel.fd(), 0, 0};
    if (::poll(&parent, 1, 0) > 0) return plain_error("the parent is gone");
    return {};
}

Result<void> close_all_but(std::span<const int> kept, unsigned first) {
    stop_logging();
    std::vector<unsigned> numbers;
    for (const int fd : kept) {
        if (fd >= 0 && unsigned(fd) >= first) numbers.push_back(unsigned(fd));
    }
    std::ranges::sort(numbers);
    for (const unsigned number : numbers) {
        if (number > first && ::close_range(first, number - 1, 0) != 0) return errno_error("close_range");
        first = number + 1;
    }
    if (::close_range(first, UINT_MAX, 0) != 0) return errno_error("close_range");
    return {};
}

Error clone_error(int code, bool joins) {
    Error error = errno_error(code, "clone");
    if (code == EAGAIN)
        error.hint =
            "the limit of processes is reached (pids.max of a cgroup, or RLIMIT_NPROC): to come in takes two for a "
            "moment";
    if (code == ENOMEM && joins)
        error.hint = "has the first process of the joined pid namespace ended? None can be started in it then";
    return error;
}

Result<void> clone_as_sibling(uint64_t flags, const Channel& channel, const std::function<void()>& as_child) {
    int pidfd = -1;
    // Not clone3(2), which many filters forbid. With CLONE_PARENT the exit signal is the cloner's own.
    const auto pid =
        static_cast<pid_t>(::syscall(SYS_clone, flags | CLONE_PARENT | CLONE_PIDFD, nullptr, &pidfd, nullptr, nullptr));
    if (pid == 0) {
        as_child();
        ::_exit(1);
    }
    if (pid < 0) return clone_error(errno, flags == 0);
    Result<void> sent = channel.send(Message::born, 0, pidfd);
    if (!sent) ::kill(pid, SIGKILL);
    return sent;
}

namespace {

Result<Child> hear_born(const Channel& channel, int cloner_pidfd, int signal_fd) {
    pollfd slots[] = {{cloner_pidfd, POLLIN, 0}, {signal_fd, POLLIN, 0}};
    bool spoken = false;
    do {
        spoken = TRY(channel.await(slots));
        if (!spoken && slots[1].revents != 0) TRY(refuse_to_go_on(signal_fd));
    } while (!spoken && slots[0].revents == 0);
    // Whoever has ended may have spoken before.
    pollfd said{channel.fd(), POLLIN, 0};
    if (!spoken && ::poll(&said, 1, 0) == 0)
        return plain_error("the container's process was killed while it was set up")
            .with_hint("was the memory limit too low?");
    Packet born = TRY(expect(channel, Message::born));
    const pid_t pid = TRY(own_child(born.fd.get()));
    return Child{ChildGuard(pid), std::move(born.fd)};
}

// Somebody else may have spoken before the cloner did. What that has cloned is our child all the same, which nobody
// else may ever reap, and the container's first process could not end before. The cloner, which nobody there sees, has
// only to say it; but it may be frozen, and whoever spoke may not stop.
void end_unheard_child(const Channel& channel, int cloner_pidfd) {
    constexpr int kPatience = 1000, kMostPackets = 1000;  // milliseconds
    for (int packets = 0; packets < kMostPackets; ++packets) {
        pollfd slots[] = {{channel.fd(), POLLIN, 0}, {cloner_pidfd, POLLIN, 0}};
        if (::poll(slots, 2, kPatience) <= 0) return;
        // It may have spoken between the look at the channel and the look at its end.
        if (slots[0].revents == 0 && ::poll(slots, 1, 0) <= 0) return;
        const Result<std::optional<Packet>> packet = channel.receive();
        if (!packet) continue;
        if (!*packet) return;
        if (const Result<pid_t> pid = own_child((*packet)->fd.get())) return void(ChildGuard(*pid));
    }
}

}  // namespace

Result<Child> expect_born(const Channel& channel, int cloner_pidfd, int signal_fd) {
    Result<Child> born = hear_born(channel, cloner_pidfd, signal_fd);
    if (!born) end_unheard_child(channel, cloner_pidfd);
    return born;
}

namespace {

// Both ends are the same program, so the packet is a plain struct.
struct Wire {
    Message message = Message::failed;
    int32_t pid = 0;
    Readiness ready;
    PayloadEnd end{};
    ErrorPacket error;
};

constexpr size_t kHeader = offsetof(Wire, error);

size_t size_of(const Wire& wire) { return kHeader + wire.error.size(); }

Result<void> send_wire(int socket, const Wire& wire, int fd = -1) {
    iovec part{const_cast<Wire*>(&wire), size_of(wire)};
    msghdr header{};
    header.msg_iov = &part;
    header.msg_iovlen = 1;
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))]{};
    if (fd >= 0) {
        header.msg_control = control;
        header.msg_controllen = sizeof control;
        cmsghdr* rights = CMSG_FIRSTHDR(&header);
        rights->cmsg_level = SOL_SOCKET;
        rights->cmsg_type = SCM_RIGHTS;
        rights->cmsg_len = CMSG_LEN(sizeof(int));
        std::memcpy(CMSG_DATA(rights), &fd, sizeof fd);
    }
    while (::sendmsg(socket, &header, MSG_NOSIGNAL) < 0) {
        if (errno != EINTR) return errno_error("send to the other process");
    }
    return {};
}

UniqueFd passed_descriptor(msghdr& header) {
    const cmsghdr* rights = CMSG_FIRSTHDR(&header);
    if (rights == nullptr || rights->cmsg_level != SOL_SOCKET || rights->cmsg_type != SCM_RIGHTS) return {};
    int fd = -1;
    std::memcpy(&fd, CMSG_DATA(rights), sizeof fd);
    return UniqueFd(fd);
}

const char* name_of(Message message) {
    switch (message) {
        case Message::born: return "born";
        case Message::go: return "go";
        case Message::mount: return "mount";
        case Message::mounted: return "mounted";
        case Message::marked: return "marked";
        case Message::terminal: return "terminal";
        case Message::created: return "created";
        case Message::ready: return "ready";
        case Message::ended: return "ended";
        case Message::failed:
        case Message::call_failed: return "failed";
    }
    return "unknown";
}

Error cut_short() { return plain_error("a message between pinfold's processes was cut short"); }

// Hooks may take for ever; whoever waits for them must be able to end that.
Result<void> await_message(const Channel& channel, int signal_fd) {
    if (signal_fd < 0) return {};
    for (;;) {
        pollfd slots[] = {{channel.fd(), POLLIN, 0}, {signal_fd, POLLIN, 0}};
        if (::poll(slots, 2, -1) < 0 && errno != EINTR) return errno_error("poll");
        if (slots[0].revents != 0) return {};
        if (slots[1].revents != 0) TRY(refuse_to_go_on(signal_fd));
    }
}

}  // namespace

Error unexpected(Message got, Message wanted) {
    return plain_error(
        concat("pinfold's own process said '", name_of(got), "' where '", name_of(wanted), "' was next"));
}

std::string packet_of(Message message) {
    Wire wire;
    wire.message = message;
    return {reinterpret_cast<const char*>(&wire), size_of(wire)};
}

// The step goes as the message and the object as the hint, until there is an error to make one of.
FailurePacket failure_of_call(const char* step, const std::string& object) {
    Wire wire;
    wire.message = Message::call_failed;
    wire.error.hold({0, step, object});
    return {{reinterpret_cast<const char*>(&wire), size_of(wire)}, kHeader + offsetof(ErrorPacket, code)};
}

Result<std::pair<Channel, Channel>> Channel::make_pair() {
    int sockets[2];
    if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets) != 0) return errno_error("socketpair");
    return std::pair<Channel, Channel>(Channel(UniqueFd(sockets[0])), Channel(UniqueFd(sockets[1])));
}

Result<void> Channel::send(Message message, pid_t pid, int fd) const {
    Wire wire;
    wire.message = message;
    wire.pid = pid;
    Result<void> sent = send_wire(fd_.get(), wire, fd);
    // Nobody is left who could go on. What it said last, or that it was killed, is for the next receive to tell.
    if (!sent && message == Message::go && sent.error().code == EPIPE) return {};
    return sent;
}

Result<void> Channel::send_ready(const Readiness& readiness, int faults) const {
    Wire wire;
    wire.message = Message::ready;
    wire.ready = readiness;
    return send_wire(fd_.get(), wire, faults);
}

Result<void> Channel::send_ended(const PayloadEnd& end) const {
    Wire wire;
    wire.message = Message::ended;
    wire.end = end;
    return send_wire(fd_.get(), wire);
}

void Channel::send_failure(const Error& error) const noexcept {
    Wire wire;
    wire.message = Message::failed;
    wire.error.hold(error);
    // By write(2): a filter that allows no sockets may be in force already.
    [[maybe_unused]] const ssize_t sent = ::write(fd_.get(), &wire, size_of(wire));
}

void Channel::give_up_at(int timer, int signals) {
    constexpr int64_t kSecond = 1'000'000'000;
    timer_ = timer;
    signals_ = signals;
    heeds_signals_from_ = monotonic_ns() + kSecond;
}

Result<void> Channel::check_whether_to_give_up() const {
    pollfd slots[] = {{timer_, POLLIN, 0}, {monotonic_ns() < heeds_signals_from_ ? -1 : signals_, POLLIN, 0}};
    if (::poll(slots, 2, 0) <= 0) return {};
    if (slots[0].revents != 0) return Error{ETIME, "its process was not ready at the deadline", {}};
    return refuse_to_go_on(signals_);
}

Result<bool> Channel::await(std::span<pollfd> others) const {
    std::vector<pollfd> slots(others.begin(), others.end());
    slots.insert(slots.end(), {{fd_.get(), POLLIN, 0}, {timer_, POLLIN, 0}, {signals_, POLLIN, 0}});
    for (;;) {
        const int64_t left = signals_ < 0 ? 0 : heeds_signals_from_ - monotonic_ns();
        slots.back().fd = left > 0 ? -1 : signals_;
        if (::poll(slots.data(), slots.size(), left > 0 ? int(left / 1'000'000) + 1 : -1) < 0 && errno != EINTR)
            return errno_error("poll");
        std::copy_n(slots.begin(), others.size(), others.begin());
        if (slots[others.size()].revents != 0) return true;
        if (std::ranges::any_of(others, [](const pollfd& slot) { return slot.revents != 0; })) return false;
        TRY(check_whether_to_give_up());
    }
}

// So that none of them looks like one of ours: it may be the words of somebody else.
static void indent_further_lines(std::string& text) {
    for (size_t at = text.find('\n'); at != text.npos; at = text.find('\n', at + 1)) text.insert(at + 1, "  ");
}

Result<std::optional<Packet>> Channel::receive() const {
    if (timer_ >= 0 || signals_ >= 0) TRY(await());
    Wire wire;
    iovec part{&wire, sizeof wire};
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))]{};
    msghdr header{};
    header.msg_iov = &part;
    header.msg_iovlen = 1;
    header.msg_control = control;
    header.msg_controllen = sizeof control;
    ssize_t length = 0;
    while ((length = ::recvmsg(fd_.get(), &header, MSG_CMSG_CLOEXEC)) < 0) {
        // Closed with our message unread, which is told once, and before what was said last.
        if (errno != EINTR && errno != ECONNRESET) return errno_error("receive from the other process");
    }
    if (length == 0) return std::optional<Packet>();
    const std::string_view bytes(reinterpret_cast<const char*>(&wire), size_t(length));
    Packet packet{wire.message, wire.pid, passed_descriptor(header), {}, wire.ready, wire.end};
    if (bytes.size() < kHeader) return cut_short();
    if (wire.message == Message::failed || wire.message == Message::call_failed) {
        std::optional<Error> error = unpack_error(bytes.substr(kHeader));
        if (!error) return cut_short();
        if (wire.message == Message::call_failed) error = error_of_call(error->message, error->hint, error->code);
        packet.message = Message::failed;
        packet.error = std::move(*error);
        indent_further_lines(packet.error.message);
        indent_further_lines(packet.error.hint);
    }
    return std::optional<Packet>(std::move(packet));
}

Result<Packet> expect(const Channel& channel, Message wanted, int signal_fd) {
    TRY(await_message(channel, signal_fd));
    std::optional<Packet> packet = TRY(channel.receive());
    if (!packet)
        return plain_error("the container's process was killed while it was set up")
            .with_hint("was the memory limit too low?");
    if (packet->message == Message::failed) return std::move(packet->error);
    if (packet->message != wanted) return unexpected(packet->message, wanted);
    return std::move(*packet);
}

}  // namespace pinfold
