// What a job prints.
#include "sandbox/output.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/fs.hpp"

namespace pinfold {

namespace {

constexpr size_t kChunk = 64 << 10;
// A write of this much, or less, never waits once poll() has found a pipe writable, if it is the only one.
constexpr size_t kSafeWrite = 4096;

}  // namespace

Result<Output> Output::create(bool capture, uint64_t limit) {
    Output output;
    output.limit_ = limit;
    output.nowhere_ = TRY(open_at(AT_FDCWD, "/dev/null", O_WRONLY));
    for (size_t i = 0; i < output.streams_.size(); ++i) {
        int ends[2];
        if (::pipe2(ends, O_CLOEXEC) != 0) return errno_error("make a pipe for the output");
        Stream& stream = output.streams_[i];
        stream.read_end = UniqueFd(ends[0]);
        stream.write_end = UniqueFd(ends[1]);
        if (::fcntl(ends[0], F_SETFL, O_NONBLOCK) != 0) return errno_error("set up a pipe for the output");
        if (!capture) stream.target = static_cast<int>(1 + i);
    }
    return output;
}

// What could not be passed on yet holds up its stream: then the payload waits, as it would for any slow reader.
void Output::prepare(std::span<pollfd, kSlots> slots) const {
    for (size_t i = 0; i < streams_.size(); ++i) {
        const Stream& stream = streams_[i];
        const bool waits = stream.target >= 0 && !stream.text.empty();
        slots[2 * i] = {waits ? -1 : stream.read_end.get(), POLLIN, 0};
        slots[2 * i + 1] = {waits ? stream.target : -1, POLLOUT, 0};
    }
}

// Both streams may go to one pipe (2>&1) that has room for one write: the other's turn is after the next poll().
void Output::serve(std::span<const pollfd, kSlots> slots) {
    bool written = false;
    for (size_t i = 0; i < streams_.size(); ++i) {
        if (slots[2 * i].revents != 0) receive(streams_[i]);
        if (slots[2 * i + 1].revents == 0 || written) continue;
        pass_on(streams_[i], false);
        written = true;
    }
}

void Output::finish() {
    for (Stream& stream : streams_) {
        while (stream.read_end && receive(stream)) pass_on(stream, true);
        pass_on(stream, true);
    }
}

std::string Output::take_unread(size_t index) const {
    char bytes[kChunk];
    const ssize_t count = ::read(streams_[index].read_end.get(), bytes, sizeof bytes);
    return count <= 0 ? "" : std::string(bytes, size_t(count));
}

// False when there is nothing more for now, or at all.
bool Output::receive(Stream& stream) {
    if (truncated_) return discard(stream);
    char bytes[kChunk];
    const ssize_t count = ::read(stream.read_end.get(), bytes, sizeof bytes);
    if (count > 0) {
        accept(stream, {bytes, size_t(count)});
        return true;
    }
    if (count == 0) stream.read_end.reset();
    return count < 0 && errno == EINTR;
}

void Output::accept(Stream& stream, std::string_view bytes) {
    const uint64_t room = limit_ == 0 ? bytes.size() : std::min<uint64_t>(bytes.size(), limit_ - taken_);
    truncated_ = truncated_ || room < bytes.size();
    taken_ += room;
    stream.text += bytes.substr(0, room);
}

// Without a copy: a flood costs us as little as it can.
bool Output::discard(Stream& stream) {
    const ssize_t count =
        ::splice(stream.read_end.get(), nullptr, nowhere_.get(), nullptr, kChunk, SPLICE_F_NONBLOCK | SPLICE_F_MOVE);
    if (count == 0 || (count < 0 && errno != EAGAIN && errno != EINTR)) stream.read_end.reset();
    return count > 0;
}

// A reader of ours that has gone takes no more: the rest is lost, as it would be without us in between.
void Output::pass_on(Stream& stream, bool all) {
    if (stream.target < 0) return;
    while (!stream.text.empty()) {
        const size_t size = all ? stream.text.size() : std::min(stream.text.size(), kSafeWrite);
        const ssize_t count = ::write(stream.target, stream.text.data(), size);
        if (count < 0 && errno == EINTR) continue;
        if (count < 0) stream.text.clear();
        else stream.text.erase(0, size_t(count));
        if (!all) return;
    }
}

}  // namespace pinfold
