// What the two sides of a copy say to each other, over one SOCK_SEQPACKET pair. A tree is
//
//     directory  name, mode    what it holds follows, up to its `up`
//     file       name, mode    `bytes`, as many as there are, and an `up`
//     link       name, target
//
// The name at the top is empty: where that goes is the receiver's own business. `done` is the answer of a receiver in
// the container. Instead of any of its words a side may say `failed`, which ends the conversation; but where there are
// several trees, each behind a `next` with its path and all of them before a `done`, it ends only the one that it is
// in.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>

#include "pinfold/result.hpp"
#include "pinfold/unique_fd.hpp"

namespace pinfold {

enum class Word : uint8_t { directory, file, link, bytes, up, next, done, failed };

struct Item {
    Word word = Word::failed;
    unsigned mode = 0;
    std::string_view name;
    std::string_view text;  // target or bytes
};

class Stream {
public:
    static Result<std::pair<Stream, Stream>> make_pair();

    explicit Stream(UniqueFd fd) : fd_(std::move(fd)), buffer_(std::make_unique<char[]>(kMaxPacket)) {}

    int fd() const { return fd_.get(); }

    // EPIPE: the other side has ended, and has perhaps said why.
    Result<void> send(const Item& item) const;
    // Best effort: if even this fails, the other side sees the end.
    void send_failure(const Error& error) const;

    // Valid until the next one is received. The other side's end is an error, and so is its failure ...
    Result<Item> receive() const;
    // ... or an item like any other, which becomes one then.
    Result<Item> receive_any() const;
    static Error error_of(const Item& failed);

    // Who waits for the other side gives up at that time of the monotonic clock, with ETIME, and with EINTR once there
    // is something to read from `interrupt` (-1: nothing).
    void give_up_at(int64_t deadline, int interrupt);

    // Of one `bytes`.
    static constexpr size_t kMaxBytes = size_t{64} << 10;

private:
    static constexpr size_t kMaxPacket = kMaxBytes + 512;

    Result<void> await(short event) const;

    UniqueFd fd_;
    std::unique_ptr<char[]> buffer_;
    int64_t deadline_ = INT64_MAX;
    int interrupt_ = -1;
};

}  // namespace pinfold
