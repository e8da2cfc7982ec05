// The process in front of a running container: passes signals on, relays its terminal, reports its end.
#pragma once

#include <poll.h>
#include <sys/resource.h>
#include <sys/types.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstddef>
#include <optional>
#include <span>

#include "base/process.hpp"
#include "kernel/terminal.hpp"
#include "pinfold/result.hpp"
#include "pinfold/unique_fd.hpp"
#include "process/spawn.hpp"

namespace pinfold {

// Between a container's pty and the standard streams of the process in front of it: bytes both ways, none lost,
// the raw mode of the user's terminal and its window size.

// One direction. It reads only when all that it read before is written: a slow reader slows the writer down.
class ByteFlow {
public:
    ByteFlow(int from, int to) : from_(from), to_(to) {}

    bool wants_read() const { return from_open_ && begin_ == end_; }
    bool wants_write() const { return begin_ != end_; }
    bool read_ended() const { return !from_open_; }
    void reopen_read() { from_open_ = true; }
    size_t read_some();  // 0: nothing there now, or never again
    void write_some();   // a reader that has gone away swallows everything

private:
    int from_;
    int to_;
    bool from_open_ = true;
    bool to_open_ = true;
    size_t begin_ = 0;
    size_t end_ = 0;
    // Not more than PIPE_BUF: a pipe that polls as writable takes so much without blocking.
    std::array<char, 4096> bytes_;
};

class PtyRelay {
public:
    // Takes the input's terminal, if it is one, into raw mode until the relay is destroyed.
    static Result<PtyRelay> create(UniqueFd master, int input, int output);

    static constexpr size_t kSlots = 3;
    using Slots = std::span<pollfd, kSlots>;
    void prepare(Slots slots) const;  // what to poll for
    void serve(Slots slots);          // what poll has found

    // After the container's end: true as long as there is output that it left behind.
    bool output_left();
    pollfd output_slot() const;
    void write_output() { output_flow_.write_some(); }

    void adopt_window_size() const;  // the user's window is the container's
    void release_terminal();         // to the shell, while we are stopped
    void reclaim_terminal();

private:
    struct Ends {
        UniqueFd master;
        UniqueFd slave;  // held only after a hang-up
        UniqueFd input_twin;
        UniqueFd output_twin;
        int input;
        int output;
    };
    explicit PtyRelay(Ends ends);
    void hold_slave();

    Ends ends_;
    ByteFlow input_flow_;
    ByteFlow output_flow_;
    int window_;  // the terminal whose size counts, or -1
    std::optional<RawMode> raw_mode_;
    size_t drained_ = 0;  // bytes read by output_left()
};

// From now on no signal ends this process, until it has ended by itself: what it has begun is logged to its end, its
// result is written, and its exit code is the job's. A wait that others can make long has to heed signals then. What
// was ignored when we were started stays ignored (nohup, a shell's background job).
void hold_signals_until_exit();

// Whether one is held back that asks us to end.
bool is_asked_to_end();
// Becomes readable once such a one has come, which are held back by then.
Result<UniqueFd> open_end_signals();

// Holds back, from before the clone on, the signals that are the container's, so that none is lost on the way. They
// stay held back when it is gone, as above.
class SignalForwarder {
public:
    static Result<SignalForwarder> create();

    int fd() const { return fd_.get(); }

private:
    explicit SignalForwarder(UniqueFd fd) : fd_(std::move(fd)) {}

    UniqueFd fd_;
};

// An error if one of the signals that wait to be read asks us to end. The others are dropped: their receiver does not
// exist yet.
Result<void> refuse_to_go_on(int signal_fd);

struct Supervision {
    int pidfd = -1;
    int signal_fd = -1;     // SignalForwarder::fd()
    UniqueFd pty_master{};  // empty: the container has no terminal
    int input = STDIN_FILENO;
    int output = STDOUT_FILENO;
};

// Waits for the container's process, which must be our child, and reaps it. The value is its exit code.
Result<int> supervise(Supervision supervision);

// The same for a child, with its terminal's master, if we have that.
Result<int> supervise_child(Child child, const SignalForwarder& signals, UniqueFd master);

// How a process ended, and what it and those that it had waited for have used.
PayloadEnd payload_end(const siginfo_t& end, const rusage& usage);

}  // namespace pinfold
