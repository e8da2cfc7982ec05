// One direction between a pipe of ours and a stream of the caller's. It never waits for either, and leaves the flags of
// the stream alone: they are shared with everybody who has inherited it.
#pragma once

#include <poll.h>

#include <cstdint>
#include <memory>
#include <string>

#include "base/process.hpp"
#include "pinfold/result.hpp"
#include "pinfold/unique_fd.hpp"

namespace pinfold {

class Flow {
public:
    static Result<Flow> to_caller(UniqueFd pipe, int stream);
    static Result<Flow> from_caller(int stream, UniqueFd pipe);

    // What to wait for; a negative descriptor: nothing any more.
    pollfd slot() const;
    // When that has come: the number of bytes that were taken, at most `most`.
    size_t move(size_t most);

    bool is_over() const { return !pipe_; }
    // There are bytes that the other side does not take.
    bool is_held_up() const { return !is_over() && (to_is_full_ || !pending_.empty()); }
    int lost() const { return lost_; }  // 0, or the errno by which bytes could not be written
    int pipe() const { return pipe_.get(); }

    // Nothing more is coming, or wanted. A helper has yet to pass on what it has; false if it has not by then.
    void close() { pipe_.reset(), own_.reset(); }
    bool await_helper(int64_t give_up_at);

private:
    enum class Kind : uint8_t { pipe, copied_pipe, socket, plain };

    Flow() = default;
    Result<void> open_stream(int stream, bool outward);
    Result<void> start_helper(int stream, bool outward);
    int from() const { return outward_ ? pipe_.get() : stream_; }
    int to() const { return outward_ ? stream_ : pipe_.get(); }
    size_t splice_some(size_t most);
    void copy_from_now_on();
    size_t read_some(size_t most);
    void write_pending();
    void end_by(int code);
    bool means_gone(int code) const;

    UniqueFd pipe_;    // ours; empty: it is over
    int stream_ = -1;  // the caller's, or what stands for it
    UniqueFd own_;     // that, if it was opened here
    std::unique_ptr<ChildGuard> helper_;
    Kind kind_ = Kind::plain;
    bool is_terminal_ = false;
    bool outward_ = true;
    bool to_is_full_ = false;
    int lost_ = 0;
    std::string pending_;  // read, and not written yet
};

}  // namespace pinfold
