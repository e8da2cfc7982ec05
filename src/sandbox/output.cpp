// What a job prints.
#include "sandbox/output.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>

#include "base/clock.hpp"
#include "base/fs.hpp"
#include "base/strings.hpp"
#include "process/supervise.hpp"

namespace pinfold {

namespace {

constexpr size_t kChunk = 64 << 10;

bool are_one_file() {
    struct stat out {
    }, err{};
    return ::fstat(STDOUT_FILENO, &out) == 0 && ::fstat(STDERR_FILENO, &err) == 0 && out.st_dev == err.st_dev &&
           out.st_ino == err.st_ino;
}

}  // namespace

Result<Output> Output::create(const Wishes& wishes) {
    const bool capture = wishes.capture;
    const uint64_t limit = wishes.limit;
    if (capture && limit > kMostCaptured)
        return plain_error(concat("output_limit: found ", limit, ", allowed with capture: at most ", kMostCaptured));
    Output output;
    output.capture_ = capture;
    output.tee_ = capture && wishes.tee;
    output.limit_ = capture && limit == 0 ? kUsuallyCaptured : limit;
    output.joined_ = wishes.merge || (!capture && are_one_file());
    output.nowhere_ = TRY(open_at(AT_FDCWD, "/dev/null", O_WRONLY));
    for (Stream& stream : output.streams_) {
        if (output.joined_ && output.streams_[0].write_end) {
            stream.write_end = UniqueFd(::fcntl(output.streams_[0].write_end.get(), F_DUPFD_CLOEXEC, 3));
            if (!stream.write_end) return errno_error("set up a pipe for the output");
            continue;
        }
        Pipe pipe = TRY(make_pipe(" for the output"));
        stream.read_end = std::move(pipe.from);
        stream.write_end = std::move(pipe.to);
        if (::fcntl(stream.read_end.get(), F_SETFL, O_NONBLOCK) != 0)
            return errno_error("set up a pipe for the output");
    }
    return output;
}

Result<void> Output::connect() {
    for (size_t i = 0; i < streams_.size() && (!capture_ || tee_); ++i) {
        Stream& stream = streams_[i];
        if (!stream.read_end) continue;
        UniqueFd source;
        if (tee_) {
            Pipe copy = TRY(make_pipe(" for a copy of the output"));
            stream.copy_to = std::move(copy.to);
            source = std::move(copy.from);
            if (::fcntl(source.get(), F_SETFL, O_NONBLOCK) != 0) return errno_error("set up a pipe for the output");
        } else {
            source = std::move(stream.read_end);
        }
        stream.flow = TRY(Flow::to_caller(std::move(source), static_cast<int>(STDOUT_FILENO + i)));
    }
    return {};
}

// The first two are the job's pipes that are kept, the others those that flow.
void Output::prepare(std::span<pollfd, kSlots> slots) const {
    for (size_t i = 0; i < streams_.size(); ++i) {
        const Stream& stream = streams_[i];
        slots[i] = {stream.copy_is_full ? -1 : stream.read_end.get(), POLLIN, 0};
        slots[streams_.size() + i] = stream.flow ? stream.flow->slot() : pollfd{-1, 0, 0};
    }
}

void Output::serve(std::span<const pollfd, kSlots> slots) {
    for (size_t i = 0; i < streams_.size(); ++i) {
        if (slots[i].revents != 0) receive(i);
        if (slots[streams_.size() + i].revents != 0) pass_on(streams_[i]);
    }
}

bool Output::is_held_up() const {
    return std::ranges::any_of(streams_, [](const Stream& each) { return each.flow && each.flow->is_held_up(); });
}

// Nothing inside writes any more, or whoever still does is not waited for.
void Output::finish(int64_t give_up_at, int signals) {
    std::array<pollfd, kSlots + 1> slots{};
    const auto own = std::span(slots).first<kSlots>();
    for (;;) {
        prepare(own);
        slots[kSlots] = {signals, POLLIN, 0};
        const int64_t left = std::clamp<int64_t>((give_up_at - monotonic_ns()) / 1000000, 0, INT_MAX);
        const int count = ::poll(slots.data(), slots.size(), is_held_up() ? static_cast<int>(left) : 0);
        if (count < 0 && errno == EINTR) continue;
        const bool told_to_end = slots[kSlots].revents != 0 && !refuse_to_go_on(signals);
        if (count <= 0 || told_to_end || left == 0) {
            cut_ = is_held_up() || std::ranges::any_of(own, [](const pollfd& slot) { return slot.revents != 0; });
            break;
        }
        serve(own);
    }
    for (size_t i = 0; i < streams_.size(); ++i) {
        std::optional<Flow>& flow = streams_[i].flow;
        if (!flow) continue;
        flow->close();
        cut_ = !flow->await_helper(give_up_at) || cut_;
        if (flow->lost() == 0 || !failure_.empty()) continue;
        failure_ = errno_error(flow->lost(), concat("write to standard ", i == 0 ? "output" : "error")).message;
    }
}

std::string Output::take_unread(size_t index) const {
    char bytes[kChunk];
    const ssize_t count = ::read(streams_[joined_ ? 0 : index].read_end.get(), bytes, sizeof bytes);
    return count <= 0 ? "" : std::string(bytes, size_t(count));
}

size_t Output::room() const { return limit_ == 0 ? kChunk : std::min<uint64_t>(kChunk, limit_ - taken_); }

void Output::keep_in(OutputLog log) {
    log_ = std::move(log);
    limit_ = 0;
}

void Output::receive(size_t index) {
    Stream& stream = streams_[index];
    char bytes[kChunk];
    if (room() == 0) {
        if (!discard(stream.read_end.get())) stream.read_end.reset();
        return;
    }
    const size_t most = stream.copy_to ? copy_on(stream) : room();
    if (most == 0) return;
    const ssize_t count = ::read(stream.read_end.get(), bytes, most);
    if (count == 0) stream.read_end.reset(), stream.copy_to.reset();
    if (count > 0) keep(index, {bytes, size_t(count)});
}

void Output::keep(size_t index, std::string_view bytes) {
    taken_ += bytes.size();
    if (!log_) streams_[index].text.append(bytes);
    else if (const Result<void> kept = log_->append(index, bytes); !kept && failure_.empty())
        failure_ = kept.error().message;
}

// To the pipe that flows to the caller, from the job's, where it stays to be read: the number of bytes that may be. At
// the end one may try.
size_t Output::copy_on(Stream& stream) {
    if (stream.flow->is_over()) {  // who watched has gone; what is to be kept is
        stream.copy_to.reset();
        return room();
    }
    const ssize_t count = ::tee(stream.read_end.get(), stream.copy_to.get(), room(), SPLICE_F_NONBLOCK);
    if (count >= 0) return count == 0 ? 1 : size_t(count);
    stream.copy_is_full = errno == EAGAIN;  // poll() has found bytes in the one: it is the other that has no room
    return 0;
}

// What is copied was counted when it was kept.
void Output::pass_on(Stream& stream) {
    Flow& flow = *stream.flow;
    if (tee_) {
        stream.copy_is_full = flow.move(SIZE_MAX) == 0 && stream.copy_is_full && !flow.is_over();
        return;
    }
    if (room() == 0 && !flow.is_held_up()) {
        if (!discard(flow.pipe())) flow.close();
        return;
    }
    // A poll() for each little piece would cost more than the piece; but others have their turn as well.
    constexpr int kAtOnce = 16;
    for (int i = 0; i < kAtOnce; ++i) {
        const size_t moved = flow.move(room());
        taken_ += moved;
        if (moved == 0 || room() == 0) return;
    }
}

// Without a copy: a flood costs us as little as it can. False at the end.
bool Output::discard(int pipe) {
    const ssize_t count = ::splice(pipe, nullptr, nowhere_.get(), nullptr, kChunk, SPLICE_F_NONBLOCK | SPLICE_F_MOVE);
    over_limit_ = over_limit_ || count > 0;
    return count > 0 || (count < 0 && (errno == EAGAIN || errno == EINTR));
}

}  // namespace pinfold
