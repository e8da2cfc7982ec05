// What the command of a sandbox that stays has printed, in a file: pieces in the order in which they came, each with
// its stream. The file is a ring: of more than it holds the newest is kept.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

#include "pinfold/result.hpp"
#include "pinfold/unique_fd.hpp"

namespace pinfold {

// At the file's beginning. Offsets count all that was ever appended: a byte's place is its offset modulo the size.
struct Ring {
    uint64_t size = 0;
    uint64_t begin = 0;  // of the oldest piece
    uint64_t end = 0;
};

// The end that writes; there is one.
class OutputLog {
public:
    // Some room is taken at once: however full the disk is later, the newest is kept.
    static Result<OutputLog> create(UniqueFd file, uint64_t limit);

    // Of standard output (0) or standard error (1).
    Result<void> append(size_t stream, std::string_view bytes);

    bool has_dropped() const { return ring_.begin != 0; }

private:
    OutputLog(UniqueFd file, uint64_t limit) : file_(std::move(file)), limit_(limit), ring_{limit + limit / 4} {}
    Result<void> add(std::string_view piece);
    Result<void> make_room(uint64_t size);
    Result<void> publish() const;

    UniqueFd file_;
    uint64_t limit_;     // of what is kept, without what stands before each piece
    uint64_t kept_ = 0;  // so far
    Ring ring_;
};

// The bytes are of standard output (0) or standard error (1); or none, where pieces that came here are gone (kDropped).
inline constexpr size_t kDropped = 2;
using OutputSink = std::function<Result<void>(size_t stream, std::string_view bytes)>;

// All pieces from the offset on that are there by now; the offset is moved behind them.
Result<void> read_output(int file, uint64_t& offset, const OutputSink& sink);

// The same until nobody writes any more.
Result<void> follow_output(int file, const OutputSink& sink);

}  // namespace pinfold
