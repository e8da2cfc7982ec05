// The handshake: all that parent and child say to each other between the clone and the payload's execve. The methods of
// each side stand in the order of the conversation, which is one table (handshake.cpp) that both keep to, message by
// message. Where there is a joiner (spawn.hpp), it speaks for the child until that is born.
//
// Instead of any of its messages the child may say that it failed, which ends the conversation. So does the end of file
// before `ready`: the child was killed. After `ready` it means that execve has closed the socket, and the payload runs.
#pragma once

#include <sys/types.h>

#include <functional>
#include <utility>

#include "pinfold/result.hpp"
#include "pinfold/unique_fd.hpp"
#include "process/spawn.hpp"
#include "verify/receipt.hpp"

namespace pinfold {

// What there is to talk about besides `go` and `ready`.
struct Topics {
    bool joiner = false;        // the child is born later, by a process that joins or makes what cannot be cloned into
    bool joiner_waits = false;  // which needs groups, limits or id maps first
    bool mark = false;          // its cgroup namespace tells an exec's processes from others
    bool joiner_terminal = false;  // the master of an exec's terminal comes to the parent
    bool host_hooks = false;       // prestart and createRuntime, once the mounts are made
    bool terminal = false;         // the master of a container's terminal comes to the parent
    bool takes_over = false;       // another process becomes the payload, in a pid namespace that others live in
    bool waits_for_start = false;  // create: the child lets go of the socket, and says its last word to `start`
};

class Handshake {
public:
    const Channel& channel() const { return channel_; }
    void close() noexcept { channel_.close(); }

protected:
    enum class Speaker : uint8_t { parent, child };
    struct Turn {
        Speaker speaker;
        Message message;
        bool Topics::*topic;  // null: there always is this turn
    };
    static const Turn kConversation[];
    static const size_t kReady;

    Handshake(Channel channel, const Topics& topics, size_t turn = 0)
        : channel_(std::move(channel)), topics_(topics), turn_(turn) {}

    // An error if it is not what comes next.
    Result<void> take_turn(Speaker speaker, Message message);

    Channel channel_;

private:
    Topics topics_;
    size_t turn_;
};

// A child that is ready, and what is to be done for it while it waits.
struct ReadyChild {
    pid_t pid = 0;
    int pidfd = -1;
    // Gets the listener of its filter, and gives it back if it is to stay with us: a call that arrives there is then
    // the very one that starts the program.
    std::function<Result<UniqueFd>(UniqueFd listener)> on_listener;
    std::function<Result<Receipt>()> read_receipt;
    ReceiptHandler on_receipt;
    // Whether it was to have a listener, and to wait before its execve. Who may trace it can speak in its place.
    bool listens = false;
    bool pauses = false;
};

class ChildSide;

class ParentSide : public Handshake {
public:
    static Result<std::pair<ParentSide, ChildSide>> make_pair(const Topics& topics);
    // With a container that waits for its start, over the socket in its state directory.
    static ParentSide of_created(UniqueFd connection);

    // Whoever waits gives up then (Channel::give_up_at).
    void give_up_at(int timer, int signals) { channel_.give_up_at(timer, signals); }
    // While hooks run: a signalfd; -1: none. Without hooks a start takes milliseconds, and signals are the payload's.
    void heed(int signal_fd) { signal_fd_ = signal_fd; }

    // What was waited for is in place. The pid is that of the process that goes on; the descriptor is for it.
    Result<void> go(pid_t pid = 0, int fd = -1);
    Result<UniqueFd> mark();
    Result<Child> born(int cloner_pidfd);
    Result<void> mounted();  // the time for hooks, which ends with `go`
    Result<UniqueFd> terminal();
    Result<void> created(int signal_fd);  // until the child has let go of all that is ours
    Result<void> ready();                 // of a sandbox init without a payload
    // Ready, paused for its listener and its receipt, and executed. The listener, if it stays with us.
    Result<UniqueFd> payload(const ReadyChild& child);

private:
    using Handshake::Handshake;
    Result<Packet> hear(Message message);

    int signal_fd_ = -1;
};

class ChildSide : public Handshake {
public:
    ChildSide(Channel channel, const Topics& topics) : Handshake(std::move(channel), topics) {}

    Result<Packet> await_go();  // with our own pid, as the host sees it
    Result<void> mark(int cgroup_namespace);
    // In what was cloned `as_child` goes on, which must not return, and with it the conversation (spawn.hpp).
    Result<void> clone_sibling(uint64_t flags, const std::function<void()>& as_child);
    Result<void> mounted();  // until the hooks have run
    Result<void> terminal(int master);
    Result<void> created();  // closes the socket: the conversation goes on over another
    Result<void> ready(const Readiness& readiness = {}, int faults = -1);
    // What is said by the trampoline in our place (trampoline.hpp): born, created, ready; and what it waits for: go.
    Result<std::string> packet(Message message);
    Result<void> leave_go();

    void fail(const Error& error) const noexcept { channel_.send_failure(error); }
    void go_on_over(UniqueFd socket) { channel_ = Channel(std::move(socket)); }

private:
    Result<void> say(Message message, int fd = -1);
};

}  // namespace pinfold
