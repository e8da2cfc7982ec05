// The conversation of parent and child: its order, and what the parent does while the child waits.
#include "process/handshake.hpp"

#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <iterator>
#include <string_view>

#include "base/fs.hpp"
#include "base/strings.hpp"
#include "process/pause_point.hpp"

namespace pinfold {

namespace {

// Of a descriptor that came from the child's side: somebody else may have put another thing in its place.
Result<void> require_kind(int fd, std::string_view kind) {
    if (link_target(concat("/proc/self/fd/", fd)) == kind) return {};
    return plain_error(concat("a descriptor of the process that was started is no ", kind));
}

// A filter is loaded last, so the child has said beforehand which descriptor its listener will have.
Result<UniqueFd> take_listener(int pidfd, int number) {
    UniqueFd listener(static_cast<int>(::syscall(SYS_pidfd_getfd, pidfd, number, 0)));
    if (listener) {
        TRY(require_kind(listener.get(), "anon_inode:seccomp notify"));
        return listener;
    }
    return errno_error("take the listener out of the process: pidfd_getfd")
        .with_hint("it takes CAP_SYS_PTRACE over the container's user");
}

// Where we decide what the listener is asked: until the payload has been executed. A call that arrives before that is
// the one that executes it.
Result<void> await_exec(const Channel& channel, int listener) {
    pollfd call{listener, POLLIN, 0}, said{channel.fd(), POLLIN, 0};
    if (TRY(channel.await({&call, 1})) || ::poll(&said, 1, 0) > 0) return {};
    return plain_error("seccomp: the profile forbids the very call that starts the program")
        .with_hint("allow execve in it");
}

}  // namespace

const Handshake::Turn Handshake::kConversation[] = {
    {Speaker::parent, Message::go, &Topics::joiner_waits},
    {Speaker::child, Message::marked, &Topics::mark},
    {Speaker::child, Message::terminal, &Topics::joiner_terminal},
    {Speaker::child, Message::born, &Topics::joiner},
    {Speaker::parent, Message::go, nullptr},
    {Speaker::child, Message::mounted, &Topics::host_hooks},
    {Speaker::parent, Message::go, &Topics::host_hooks},
    {Speaker::child, Message::terminal, &Topics::terminal},
    {Speaker::child, Message::born, &Topics::takes_over},
    {Speaker::parent, Message::go, &Topics::takes_over},
    {Speaker::child, Message::created, &Topics::waits_for_start},
    {Speaker::child, Message::ready, nullptr},
};
const size_t Handshake::kReady = std::size(kConversation) - 1;

Result<void> Handshake::take_turn(Speaker speaker, Message message) {
    const auto is_left_out = [&](const Turn& turn) { return turn.topic != nullptr && !(topics_.*turn.topic); };
    while (turn_ < kReady && is_left_out(kConversation[turn_])) ++turn_;
    if (turn_ > kReady) return unexpected(message, Message::ended);
    const Turn& next = kConversation[turn_];
    if (next.speaker != speaker || next.message != message) return unexpected(message, next.message);
    ++turn_;
    return {};
}

Result<std::pair<ParentSide, ChildSide>> ParentSide::make_pair(const Topics& topics) {
    std::pair<Channel, Channel> ends = TRY(Channel::make_pair());
    return std::pair(ParentSide(std::move(ends.first), topics), ChildSide(std::move(ends.second), topics));
}

ParentSide ParentSide::of_created(UniqueFd connection) { return {Channel(std::move(connection)), {}, kReady}; }

Result<void> ParentSide::go(pid_t pid, int fd) {
    TRY(take_turn(Speaker::parent, Message::go));
    return channel_.send(Message::go, pid, fd);
}

Result<Packet> ParentSide::hear(Message message) {
    TRY(take_turn(Speaker::child, message));
    return expect(channel_, message, signal_fd_);
}

Result<UniqueFd> ParentSide::mark() { return TRY(hear(Message::marked)).fd; }

Result<Child> ParentSide::born(int cloner_pidfd) {
    TRY(take_turn(Speaker::child, Message::born));
    return expect_born(channel_, cloner_pidfd, signal_fd_);
}

Result<void> ParentSide::mounted() {
    TRY(hear(Message::mounted));
    return {};
}

Result<UniqueFd> ParentSide::terminal() { return TRY(hear(Message::terminal)).fd; }

Result<void> ParentSide::created(int signal_fd) {
    TRY(take_turn(Speaker::child, Message::created));
    TRY(expect(channel_, Message::created, signal_fd));
    TRY(channel_.receive());  // the end
    return {};
}

Result<void> ParentSide::ready() {
    TRY(hear(Message::ready));
    return {};
}

Result<UniqueFd> ParentSide::payload(const ReadyChild& child) {
    const Packet packet = TRY(hear(Message::ready));
    const bool listens = packet.ready.listener.place.word != 0, pauses = packet.ready.before_exec.word != 0;
    if (listens != child.listens || pauses != child.pauses)
        return plain_error(
            "the process that was started does not wait as it was told to: somebody in the container spoke");
    if (packet.fd) TRY(require_kind(packet.fd.get(), "anon_inode:[userfaultfd]"));
    const ChildMemory memory{child.pid, child.pidfd};
    UniqueFd listener;
    if (const PausePlace place{packet.ready.listener.place.word, packet.fd.get()}; place.word != 0) {
        TRY(memory.await_waiting(place, channel_));
        UniqueFd taken = TRY_IN("seccomp listener", take_listener(child.pidfd, packet.ready.listener.number));
        listener = TRY(child.on_listener(std::move(taken)));
        TRY(memory.let_go_on(place));
    }
    if (const PausePlace place{packet.ready.before_exec.word, packet.fd.get()}; place.word != 0) {
        TRY(memory.await_waiting(place, channel_));
        const Receipt receipt = TRY(child.read_receipt());
        TRY(child.on_receipt ? child.on_receipt(receipt) : require(receipt));
        TRY(memory.let_go_on(place));
    }
    if (listener) TRY(await_exec(channel_, listener.get()));
    // Who may trace it may hold its end of the channel, too: then its program has begun all the same, once it has
    // ended.
    pollfd ended{child.pidfd, POLLIN, 0};
    if (!TRY(channel_.await({&ended, 1}))) return listener;
    const std::optional<Packet> last = TRY(channel_.receive());
    if (last) return last->error;
    return listener;
}

Result<Packet> ChildSide::await_go() {
    std::optional<Packet> packet = TRY(channel_.receive());
    if (!packet) return plain_error("the parent is gone");
    TRY(take_turn(Speaker::parent, packet->message));
    return std::move(*packet);
}

Result<void> ChildSide::say(Message message, int fd) {
    TRY(take_turn(Speaker::child, message));
    return channel_.send(message, 0, fd);
}

Result<void> ChildSide::mark(int cgroup_namespace) { return say(Message::marked, cgroup_namespace); }

// The clone goes on where the conversation is then.
Result<void> ChildSide::clone_sibling(uint64_t flags, const std::function<void()>& as_child) {
    TRY(take_turn(Speaker::child, Message::born));
    return clone_as_sibling(flags, channel_, as_child);
}

Result<void> ChildSide::mounted() {
    TRY(say(Message::mounted));
    TRY(await_go());
    return {};
}

Result<void> ChildSide::terminal(int master) { return say(Message::terminal, master); }

Result<void> ChildSide::created() {
    TRY(say(Message::created));
    close();
    return {};
}

Result<void> ChildSide::ready(const Readiness& readiness, int faults) {
    TRY(take_turn(Speaker::child, Message::ready));
    return channel_.send_ready(readiness, faults);
}

Result<std::string> ChildSide::packet(Message message) {
    TRY(take_turn(Speaker::child, message));
    return packet_of(message);
}

Result<void> ChildSide::leave_go() { return take_turn(Speaker::parent, Message::go); }

}  // namespace pinfold
