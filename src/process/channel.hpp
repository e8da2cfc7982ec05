// Packets between two processes of pinfold, over one SOCK_SEQPACKET pair: a message, and what belongs to it. What is
// said in which order is the matter of those who speak: parent and child (handshake.hpp), supervisor and sandbox init
// (sandbox_init.hpp) or subreaper (sandbox/external_subreaper.hpp).
#pragma once

#include <poll.h>
#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "pinfold/result.hpp"
#include "pinfold/unique_fd.hpp"

namespace pinfold {

enum class Message : uint8_t { born, go, mount, mounted, marked, terminal, created, ready, ended, failed };

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
    pid_t pid = 0;  // born, go
    // born: the pidfd; terminal: the master; marked: the namespace; mount: itself (proc_inside.hpp); ready: the faults
    UniqueFd fd;
    Error error;  // failed
    Readiness ready;
    PayloadEnd end{};
};

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

}  // namespace pinfold
