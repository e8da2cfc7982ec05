// What a job prints: kept or passed on, up to a limit, and read to its end whatever the limit is, so that nobody has to
// wait for a reader.
#pragma once

#include <poll.h>

#include <array>
#include <cstdint>
#include <span>
#include <string>

#include "pinfold/result.hpp"
#include "pinfold/unique_fd.hpp"

namespace pinfold {

class Output {
public:
    static constexpr size_t kSlots = 4;

    // With `capture` the bytes are kept, otherwise they go to our own streams. 0: no limit.
    static Result<Output> create(bool capture, uint64_t limit);

    // What the payload is to write to: 0 is its standard output, 1 its standard error.
    UniqueFd take_write_end(size_t index) { return std::move(streams_[index].write_end); }

    // What to wait for, and what to do when that has come.
    void prepare(std::span<pollfd, kSlots> slots) const;
    void serve(std::span<const pollfd, kSlots> slots);

    // When nobody can write any more: the rest.
    void finish();

    // Of what was written and not served, one more buffer's worth.
    std::string take_unread(size_t index) const;

    bool truncated() const { return truncated_; }
    std::string take_text(size_t index) { return std::move(streams_[index].text); }

private:
    struct Stream {
        UniqueFd read_end;
        UniqueFd write_end;
        int target = -1;   // -1: it is kept
        std::string text;  // kept, or yet to be passed on
    };

    Output() = default;
    bool receive(Stream& stream);
    void accept(Stream& stream, std::string_view bytes);
    bool discard(Stream& stream);
    void pass_on(Stream& stream, bool all);

    std::array<Stream, 2> streams_;
    UniqueFd nowhere_;
    uint64_t limit_ = 0;
    uint64_t taken_ = 0;
    bool truncated_ = false;
};

}  // namespace pinfold
