// How a process comes to be that becomes a payload: by one clone, by a joiner, or by a process that gets ready outside
// of a pid namespace that others live in.
//
// Whatever is seen in such a namespace can be taken over by whoever has CAP_SYS_PTRACE there, dumpable or not: its
// root, its descriptors, its rights. So a process gets ready outside, until it has nothing of the host's any more and
// no more rights than the payload will have. Only then does it clone the one that is seen inside, as its parent's own
// child, and is gone.
#pragma once

#include <poll.h>
#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/process.hpp"
#include "pinfold/result.hpp"
#include "pinfold/unique_fd.hpp"

namespace pinfold {

// Packets between two processes of pinfold, over one SOCK_SEQPACKET pair: a message, and what belongs to it. What is
// said in which order is the matter of those who speak: parent and child (handshake.hpp), supervisor and sandbox init
// (sandbox_init.hpp) or subreaper (sandbox/external_subreaper.hpp).

enum class Message : uint8_t { born, go, mount, mounted, marked, terminal, created, ready, ended, failed, call_failed };

// Both are named: two processes disagree on what comes next.
Error unexpected(Message got, Message wanted);

// Where a child waits (pause_point.hpp).
struct PausePlace {
    uint64_t word = 0;  // its address; 0: it does not wait there
    int faults = -1;    // the peer's: what it hears of that by, if there is such a thing
};

// What a peer needs to take the listener of a filter out of the child that is about to load it.
struct ListenerOffer {
    int number = -1;   // of the descriptor that it will have
    PausePlace place;  // where the child waits for that; nowhere: there is no listener
};

struct Readiness {
    ListenerOffer listener;
    PausePlace before_exec;  // where the child waits, all its rights restricted, to be looked at
};

// How the payload of a sandbox init ended, and what all processes of the sandbox have used.
struct PayloadEnd {
    bool signaled;
    int status;  // exit code, or the signal
    uint64_t cpu_usec;
    uint64_t most_memory;  // of the largest of them, in bytes
};

struct Packet {
    Message message = Message::failed;
    pid_t pid = 0;  // go
    // go: the network namespace; born: the pidfd; terminal: the master; marked: the namespace; mount: itself
    // (proc_inside.hpp); ready: the faults
    UniqueFd fd;
    Error error;  // failed
    Readiness ready;
    PayloadEnd end{};
};

// For a process that can no more than write it (trampoline.hpp).
std::string packet_of(Message message);
struct FailurePacket {
    std::string bytes;
    size_t code;  // where in it the error's number belongs, in four bytes
};
FailurePacket failure_of_call(const char* step, const std::string& object);

class Channel {
public:
    static Result<std::pair<Channel, Channel>> make_pair();

    explicit Channel(UniqueFd fd) : fd_(std::move(fd)) {}

    Result<void> send(Message message, pid_t pid = 0, int fd = -1) const;
    Result<void> send_ready(const Readiness& readiness, int faults = -1) const;
    Result<void> send_ended(const PayloadEnd& end) const;
    // Best effort: if even this fails, the parent sees the end of file.
    void send_failure(const Error& error) const noexcept;

    // Nothing: the other side has closed.
    Result<std::optional<Packet>> receive() const;

    // Whoever waits for the other side gives up once this timer has expired, with ETIME, and after a second also at a
    // signal that asks us to end; before, signals are the payload's. -1: no such thing. Where others live, the other
    // side can be stopped by them for as long as they like.
    void give_up_at(int timer, int signals);
    // Until the other side has something to say (true), or one of `others` is ready.
    Result<bool> await(std::span<pollfd> others = {}) const;
    Result<void> check_whether_to_give_up() const;

    void close() noexcept { fd_.reset(); }
    int fd() const noexcept { return fd_.get(); }

private:
    UniqueFd fd_;
    int timer_ = -1;
    int signals_ = -1;
    int64_t heeds_signals_from_ = 0;
};

// Waits for that very message; anything else is an error, as is a signal on signal_fd (-1: none) that asks us to end.
Result<Packet> expect(const Channel& channel, Message wanted, int signal_fd = -1);

struct ChildContext;
class ParentSide;

struct Child {
    ChildGuard guard;
    UniqueFd pidfd;

    pid_t pid() const { return guard.pid(); }
};

// clone3 into the group, if there is one (-1: none). 0 in the child.
Result<pid_t> clone_into(uint64_t flags, int cgroup, int& pidfd);

// With namespaces to join, or clocks to shift, it takes a process in between. There, before all else,
// close_ours() closes what is the parent's alone. Joining a user namespace costs the rights
// over the host, and a pid or time namespace only takes in future children: neither suits the parent itself. The joiner
// joins, then clones the real child as the parent's own (CLONE_PARENT), tells its pid, and is gone.
Result<Child> spawn_by_joiner(ChildContext context, ParentSide& handshake, int cgroup,
                              const std::function<void()>& close_ours);

// In words, each.
std::vector<std::string> new_namespaces(uint64_t flags);

// Where a process keeps its own command line and environment; anyone in a container could read the first.
struct ArgvRegion {
    uintptr_t begin = 0;
    uintptr_t end = 0;
};
ArgvRegion find_argv_region();
void wipe(const ArgvRegion& words);

// A parent that dies takes the child with it. One that had died before gives no signal, but has left its end of the
// channel.
Result<void> depend_on_parent(const Channel& channel);

// Descriptors from `first` on, but for these. Ends logging: its file may be among them.
Result<void> close_all_but(std::span<const int> kept, unsigned first);

// Why a clone has failed; whether it was to go into a pid namespace that was joined.
Error clone_error(int code, bool joins);

// In what was cloned, `as_child` goes on, which must not return. Its parent hears of it on the channel.
Result<void> clone_as_sibling(uint64_t flags, const Channel& channel, const std::function<void()>& as_child);

// The parent's side: what a process cloned that is about to end itself. On failure none of both is left, whoever else
// has spoken; but if the cloner was killed in between, nobody knows the new one, which ends with our end of the
// channel. A signal on signal_fd (-1: none) may ask us to end.
Result<Child> expect_born(const Channel& channel, int cloner_pidfd, int signal_fd = -1);

}  // namespace pinfold
