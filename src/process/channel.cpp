// Packets between two processes of pinfold.
#include "process/channel.hpp"

#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <vector>

#include "base/clock.hpp"
#include "base/error_packet.hpp"
#include "base/strings.hpp"
#include "process/supervise.hpp"

namespace pinfold {

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
        case Message::failed: return "failed";
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
        if (errno == ECONNRESET) return std::optional<Packet>();  // closed with our message unread: as good as closed
        if (errno != EINTR) return errno_error("receive from the other process");
    }
    if (length == 0) return std::optional<Packet>();
    const std::string_view bytes(reinterpret_cast<const char*>(&wire), size_t(length));
    Packet packet{wire.message, wire.pid, passed_descriptor(header), {}, wire.ready, wire.end};
    if (bytes.size() < kHeader) return cut_short();
    if (wire.message == Message::failed) {
        std::optional<Error> error = unpack_error(bytes.substr(kHeader));
        if (!error) return cut_short();
        packet.error = std::move(*error);
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
