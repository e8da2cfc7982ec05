// What a job prints: kept or passed on, up to a limit. What is beyond the limit is read and dropped, so that nobody has
// to wait for a reader; what the caller does not read holds up the job, and nobody else.
#pragma once

#include <poll.h>

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "pinfold/result.hpp"
#include "pinfold/unique_fd.hpp"
#include "sandbox/flow.hpp"
#include "sandbox/output_log.hpp"

namespace pinfold {

// Bytes that are kept where nobody says how many, and at most: they are in our own memory, several times over.
constexpr uint64_t kUsuallyCaptured = 16 << 20;
constexpr uint64_t kMostCaptured = 256 << 20;

class Output {
public:
    static constexpr size_t kSlots = 4;

    struct Wishes {
        bool capture = false;  // the bytes are kept; otherwise they go to our own streams ...
        bool tee = false;      // ... or both
        bool merge = false;    // both streams are one, the first
        uint64_t limit = 0;    // 0: the usual number of bytes, or no limit
    };
    static Result<Output> create(const Wishes& wishes);

    // What the payload is to write to: 0 is its standard output, 1 its standard error.
    UniqueFd take_write_end(size_t index) { return std::move(streams_[index].write_end); }

    // To the caller's streams, which are left alone before.
    Result<void> connect();

    // What was to be kept in our memory goes to this log from now on, and has its limit there.
    void keep_in(OutputLog log);
    void end_log() { log_.reset(); }

    // What to wait for, and what to do when that has come.
    void prepare(std::span<pollfd, kSlots> slots) const;
    void serve(std::span<const pollfd, kSlots> slots);

    // When the job has ended: the rest, as far as somebody takes it by then (by monotonic_ns()). A signal that asks us
    // to end ends the waiting.
    void finish(int64_t give_up_at, int signals);

    // Of what was written and not served, one more buffer's worth.
    std::string take_unread(size_t index) const;

    bool over_limit() const { return over_limit_; }
    bool has_dropped() const { return log_ && log_->has_dropped(); }  // from the log, which keeps the newest
    bool cut() const { return cut_; }                                 // nobody took the rest
    // Why something could not be written, by the first stream of which that is so; empty: all was, or nobody reads.
    const std::string& failure() const { return failure_; }
    std::string take_text(size_t index) { return std::move(streams_[index].text); }

private:
    struct Stream {
        UniqueFd read_end;  // until it flows; what is kept is read from here
        UniqueFd write_end;
        std::optional<Flow> flow;   // to the caller
        UniqueFd copy_to;           // what is kept goes to the flow, too, by this pipe ...
        bool copy_is_full = false;  // ... which holds up the job when nobody takes it
        std::string text;           // kept
    };

    Output() = default;
    size_t room() const;
    void receive(size_t index);
    size_t copy_on(Stream& stream);
    void keep(size_t index, std::string_view bytes);
    void pass_on(Stream& stream);
    bool discard(int pipe);
    bool is_held_up() const;

    std::array<Stream, 2> streams_;
    std::optional<OutputLog> log_;
    UniqueFd nowhere_;
    bool capture_ = false;
    bool tee_ = false;
    bool joined_ = false;  // both go to one place: by one pipe, so that they keep their order
    uint64_t limit_ = 0;
    uint64_t taken_ = 0;
    bool over_limit_ = false;
    bool cut_ = false;
    std::string failure_;
};

}  // namespace pinfold
