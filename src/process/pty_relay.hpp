// Between a container's pty and the standard streams of the process in front of it: bytes both ways, none lost,
// the raw mode of the user's terminal and its window size.
#pragma once

#include <poll.h>

#include <array>
#include <cstddef>
#include <optional>
#include <span>

#include "kernel/terminal.hpp"
#include "pinfold/result.hpp"
#include "pinfold/unique_fd.hpp"

namespace pinfold {

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

}  // namespace pinfold
