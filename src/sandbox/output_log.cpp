// What the command of a sandbox that stays has printed.
#include "sandbox/output_log.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/types.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <string>

#include "base/fs.hpp"
#include "base/strings.hpp"

namespace pinfold {

namespace {

constexpr uint64_t kFirst = 4096;  // where the ring begins
constexpr size_t kLongestPiece = 16 << 10;
constexpr size_t kAtOnce = 64 << 10;      // that a reader takes
constexpr uint64_t kReserved = 96 << 10;  // several of the longest pieces, whatever else fills the disk

// Before each piece: twice its size, and its stream, lowest byte first. Many programs write line by line, or less, and
// each is a piece then: what stands before it takes little beside it.
struct Head {
    size_t stream = 0;
    uint64_t size = 0;  // of the bytes that follow
};
constexpr size_t kHeadLength = 2;

std::string head_text(size_t stream, size_t size) {
    const size_t number = 2 * size + stream;
    return {static_cast<char>(number & 0xff), static_cast<char>(number >> 8)};
}

std::optional<Head> parse_head(std::string_view text) {
    if (text.size() < kHeadLength) return std::nullopt;
    const size_t number = static_cast<unsigned char>(text[0]) | size_t{static_cast<unsigned char>(text[1])} << 8;
    const Head head{number % 2, number / 2};
    if (head.size == 0 || head.size > kLongestPiece) return std::nullopt;
    return head;
}

Error broken() { return plain_error("the output's log is broken"); }

// Who reads while it is written may get a part of each: that does not fit together.
struct WrittenRing {
    Ring ring;
    uint64_t check = 0;

    static uint64_t check_of(const Ring& ring) { return ~(ring.size ^ (ring.begin << 1) ^ (ring.end << 2)); }
};

Result<Ring> ring_of(int file) {
    constexpr int kTries = 1000;
    for (int i = 0; i < kTries; ++i) {
        WrittenRing written;
        const ssize_t count = ::pread(file, &written, sizeof written, 0);
        if (count < 0) return errno_error("read the output's log");
        if (count == 0) return Ring{};  // it was just made
        if (size_t(count) == sizeof written && written.check == WrittenRing::check_of(written.ring))
            return written.ring;
    }
    return broken();
}

// The part of a stretch that lies together in the file.
uint64_t together(const Ring& ring, uint64_t offset, uint64_t size) {
    return std::min(size, ring.size - offset % ring.size);
}

Result<void> write_at(int file, const Ring& ring, uint64_t offset, std::string_view bytes) {
    while (!bytes.empty()) {
        const ssize_t count =
            ::pwrite(file, bytes.data(), together(ring, offset, bytes.size()), off_t(kFirst + offset % ring.size));
        if (count < 0 && errno == EINTR) continue;
        if (count <= 0) return errno_error(count == 0 ? ENOSPC : errno, "write the output's log");
        offset += uint64_t(count);
        bytes.remove_prefix(size_t(count));
    }
    return {};
}

Result<std::string> read_at(int file, const Ring& ring, uint64_t offset, uint64_t size) {
    std::string bytes(size, '\0');
    for (uint64_t done = 0; done < size;) {
        const ssize_t count = ::pread(file, bytes.data() + done, together(ring, offset + done, size - done),
                                      off_t(kFirst + (offset + done) % ring.size));
        if (count < 0 && errno == EINTR) continue;
        if (count < 0) return errno_error("read the output's log");
        if (count == 0) return broken();
        done += uint64_t(count);
    }
    return bytes;
}

bool is_full(const Error& error) { return error.code == ENOSPC || error.code == EDQUOT || error.code == EFBIG; }

bool has_writer(int file) {
    if (::flock(file, LOCK_SH | LOCK_NB) != 0) return true;
    ::flock(file, LOCK_UN);
    return false;
}

// Until the file was changed or closed. Not for ever: who was killed may have closed it before it let go of its lock.
void await_change(int events) {
    constexpr int kPatience = 1000;  // milliseconds
    pollfd slot{events, POLLIN, 0};
    char ignored[4096];
    if (::poll(&slot, 1, kPatience) > 0) (void)!::read(events, ignored, sizeof ignored);
}

}  // namespace

// A quarter more than what is kept: for the heads.
Result<OutputLog> OutputLog::create(UniqueFd file, uint64_t limit) {
    constexpr uint64_t kLeast = 4096;
    OutputLog log(std::move(file), std::max(limit, kLeast));
    const uint64_t reserved = kFirst + std::min(log.ring_.size, kReserved);
    if (::fallocate(log.file_.get(), FALLOC_FL_KEEP_SIZE, 0, off_t(reserved)) != 0 && errno != EOPNOTSUPP)
        return errno_error("reserve room for the output's log");
    TRY(log.publish());
    return log;
}

// In pieces that are small beside all that is kept: the oldest are dropped as a whole.
Result<void> OutputLog::append(size_t stream, std::string_view bytes) {
    const size_t longest = std::clamp<size_t>(limit_ / 16, 256, kLongestPiece);
    for (; !bytes.empty(); bytes.remove_prefix(std::min(longest, bytes.size()))) {
        const std::string_view part = bytes.substr(0, longest);
        TRY(add(concat(head_text(stream, part.size()), part)));
    }
    return {};
}

// Where the file can grow no more before it has come round for the first time, it is as large as it will be. What could
// not be written is left out; the next piece may find room again.
Result<void> OutputLog::add(std::string_view piece) {
    TRY(make_room(piece.size()));
    Result<void> written = write_at(file_.get(), ring_, ring_.end, piece);
    const bool may_shrink = ring_.end < ring_.size && ring_.end >= 2 * piece.size();
    if (!written && is_full(written.error()) && may_shrink) {
        ring_.size = ring_.end;
        TRY(make_room(piece.size()));
        written = write_at(file_.get(), ring_, ring_.end, piece);
    }
    TRY(std::move(written));
    ring_.end += piece.size();
    kept_ += piece.size() - kHeadLength;
    return publish();
}

// An eighth of it at once, so that this is seldom. It is published before it is written over: who has read from there
// meanwhile sees that.
Result<void> OutputLog::make_room(uint64_t size) {
    if (size > ring_.size / 2) return errno_error(ENOSPC, "write the output's log");
    const uint64_t bytes = size - kHeadLength;
    if (ring_.end + size - ring_.begin <= ring_.size && kept_ + bytes <= limit_) return {};
    const uint64_t most = ring_.size - std::max(ring_.size / 8, size);
    const uint64_t most_kept = limit_ - std::max(limit_ / 8, bytes);
    while (ring_.end - ring_.begin > most || kept_ > most_kept) {
        const uint64_t left = ring_.end - ring_.begin;
        const std::optional<Head> head =
            parse_head(TRY(read_at(file_.get(), ring_, ring_.begin, std::min<uint64_t>(left, kHeadLength))));
        if (!head) return broken();
        ring_.begin += kHeadLength + head->size;
        kept_ -= head->size;
    }
    return publish();
}

Result<void> OutputLog::publish() const {
    const WrittenRing written{ring_, WrittenRing::check_of(ring_)};
    if (::pwrite(file_.get(), &written, sizeof written, 0) == ssize_t(sizeof written)) return {};
    return errno_error("write the output's log");
}

namespace {

// Whole pieces; the offset is moved behind them.
Result<void> pass_on(std::string_view pieces, uint64_t& offset, const OutputSink& sink) {
    const uint64_t before = offset;
    for (;;) {
        const std::optional<Head> head = parse_head(pieces);
        if (!head || kHeadLength + head->size > pieces.size()) break;
        offset += kHeadLength + head->size;
        TRY(sink(head->stream, pieces.substr(kHeadLength, head->size)));
        pieces.remove_prefix(kHeadLength + head->size);
    }
    return offset != before ? Result<void>() : broken();
}

}  // namespace

// What was read counts if it was still there afterwards.
Result<void> read_output(int file, uint64_t& offset, const OutputSink& sink) {
    const uint64_t end = TRY(ring_of(file)).end;
    while (offset < end) {
        const Ring ring = TRY(ring_of(file));
        if (offset < ring.begin) {
            offset = ring.begin;
            TRY(sink(kDropped, {}));
            continue;
        }
        const std::string pieces = TRY(read_at(file, ring, offset, std::min<uint64_t>(ring.end - offset, kAtOnce)));
        const Ring after = TRY(ring_of(file));
        if (after.size == ring.size && after.begin <= offset) TRY(pass_on(pieces, offset, sink));
    }
    return {};
}

Result<void> follow_output(int file, const OutputSink& sink) {
    const UniqueFd events(::inotify_init1(IN_CLOEXEC));
    if (!events) return errno_error("inotify");
    if (::inotify_add_watch(events.get(), concat("/proc/self/fd/", file).c_str(), IN_MODIFY | IN_CLOSE_WRITE) < 0)
        return errno_error("inotify: watch the output's log");
    uint64_t offset = 0;
    for (bool writing = true; writing;) {
        writing = has_writer(file);
        TRY(read_output(file, offset, sink));
        if (writing) await_change(events.get());
    }
    return {};
}

}  // namespace pinfold
