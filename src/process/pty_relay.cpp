// Between a container's pty and the standard streams of the process in front of it.
#include "process/pty_relay.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

#include "base/log.hpp"
#include "base/strings.hpp"

namespace pinfold {

namespace {

enum Slot : size_t { kMaster, kInput, kOutput };

// Several times what a pty can hold. More comes only from processes that outlive the container's first one, and those
// may write for ever.
constexpr size_t kDrainLimit = size_t{64} * 1024;

constexpr short kReadable = POLLIN | POLLHUP | POLLERR | POLLNVAL;
constexpr short kWritable = POLLOUT | POLLHUP | POLLERR | POLLNVAL;

// A negative descriptor keeps poll() from reporting a hang-up over and over.
pollfd slot_for(int fd, int events) { return {events != 0 ? fd : -1, static_cast<short>(events), 0}; }

Result<void> make_nonblocking(int fd) {
    const int flags = ::fcntl(fd, F_GETFL);
    if (flags < 0 || ::fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0) return errno_error("make the pty non-blocking");
    return {};
}

// Terminals only: a tty that polls as writable may have room for one byte, and one that polls as readable may be
// empty after a stop in the background. Pipes and sockets keep poll's promise for small pieces.
UniqueFd nonblocking_twin(int fd) {
    Result<UniqueFd> twin = reopen_terminal(fd);
    return twin ? std::move(twin).value() : UniqueFd();
}

int terminal_of(int input, int output) {
    if (::isatty(input) != 0) return input;
    return ::isatty(output) != 0 ? output : -1;
}

}  // namespace

size_t ByteFlow::read_some() {
    if (!from_open_) return 0;
    ssize_t got;
    do got = ::read(from_, bytes_.data(), bytes_.size());
    while (got < 0 && errno == EINTR);
    if (got > 0) {
        begin_ = 0;
        end_ = size_t(got);
        return end_;
    }
    // Zero is the end; EIO is a terminal that was hung up; no other error heals either.
    if (got == 0 || errno != EAGAIN) from_open_ = false;
    return 0;
}

void ByteFlow::write_some() {
    const ssize_t written = to_open_ ? ::write(to_, bytes_.data() + begin_, end_ - begin_) : ssize_t(end_ - begin_);
    if (written >= 0) {
        begin_ += size_t(written);
        return;
    }
    if (errno == EAGAIN || errno == EINTR) return;
    // The container must not hang because nobody listens, so from here on its output goes nowhere.
    if (errno != EPIPE && errno != EIO) log_warning(errno_error("terminal bytes are lost: write").message);
    to_open_ = false;
    begin_ = end_;
}

Result<PtyRelay> PtyRelay::create(UniqueFd master, int input, int output) {
    TRY(make_nonblocking(master.get()));
    PtyRelay relay(Ends{std::move(master), {}, nonblocking_twin(input), nonblocking_twin(output), input, output});
    relay.adopt_window_size();
    if (::isatty(input) != 0) relay.raw_mode_.emplace(TRY(RawMode::enter(input)));
    return relay;
}

PtyRelay::PtyRelay(Ends ends)
    : ends_(std::move(ends)),
      input_flow_(ends_.input_twin ? ends_.input_twin.get() : ends_.input, ends_.master.get()),
      output_flow_(ends_.master.get(), ends_.output_twin ? ends_.output_twin.get() : ends_.output),
      window_(terminal_of(ends_.input, ends_.output)) {}

void PtyRelay::prepare(Slots slots) const {
    const int master_events = (output_flow_.wants_read() ? POLLIN : 0) | (input_flow_.wants_write() ? POLLOUT : 0);
    slots[kMaster] = slot_for(ends_.master.get(), master_events);
    slots[kInput] = slot_for(ends_.input, input_flow_.wants_read() ? POLLIN : 0);
    slots[kOutput] = output_slot();
}

pollfd PtyRelay::output_slot() const { return slot_for(ends_.output, output_flow_.wants_write() ? POLLOUT : 0); }

void PtyRelay::serve(Slots slots) {
    if ((slots[kOutput].revents & kWritable) != 0) output_flow_.write_some();
    if ((slots[kMaster].revents & kWritable) != 0 && input_flow_.wants_write()) input_flow_.write_some();
    if ((slots[kMaster].revents & kReadable) != 0 && output_flow_.wants_read()) output_flow_.read_some();
    if ((slots[kInput].revents & kReadable) != 0) input_flow_.read_some();
    if ((slots[kMaster].revents & POLLHUP) != 0 || output_flow_.read_ended()) hold_slave();
}

// A container may close its console and open it again later, and a login program hangs it up on purpose: with a slave
// of our own the pty lives on. When the container has come to its end, the pidfd says so.
void PtyRelay::hold_slave() {
    Result<UniqueFd> slave = open_pty_slave(ends_.master.get());
    if (!slave) return log_debug(slave.error().message);
    ends_.slave = std::move(slave).value();
    output_flow_.reopen_read();
}

bool PtyRelay::output_left() {
    if (output_flow_.wants_write()) return true;
    if (drained_ >= kDrainLimit) return false;
    const size_t got = output_flow_.read_some();
    drained_ += got;
    return got > 0;
}

void PtyRelay::adopt_window_size() const {
    if (window_ < 0) return;
    // A size that cannot be read or set leaves the old one: no reason to end a container.
    const Result<winsize> size = window_size(window_);
    if (!size || (size->ws_row == 0 && size->ws_col == 0)) return;
    const Result<void> set = set_window_size(ends_.master.get(), size->ws_row, size->ws_col);
    if (!set) log_debug(set.error().message);
}

void PtyRelay::release_terminal() {
    if (raw_mode_) raw_mode_->restore();
}

void PtyRelay::reclaim_terminal() {
    if (!raw_mode_) return;
    const Result<void> applied = raw_mode_->apply();
    if (!applied) log_debug(applied.error().message);
    adopt_window_size();
}

}  // namespace pinfold
