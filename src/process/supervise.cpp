// The process in front of a running container: passes signals on, relays its terminal, reports its end.
#include "process/supervise.hpp"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <iterator>
#include <optional>
#include <span>

#include "base/log.hpp"
#include "base/strings.hpp"
#include "process/typed_signals.hpp"

namespace pinfold {

namespace {

// Not held back: faults of our own; job control, which has to stop us before we touch a terminal that is not ours
// now; SIGCHLD, since the pidfd tells; SIGURG, which language runtimes send around for themselves.
constexpr int kLeftAlone[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGTTIN, SIGTTOU, SIGCHLD, SIGURG};

// They ask us to end. A parent may have set them to be ignored, with the meaning "not for you".
constexpr int kEnding[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM};

bool is_ignored(int signal) {
    struct sigaction action {};
    return ::sigaction(signal, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

sigset_t held_back_signals() {
    sigset_t set;
    ::sigfillset(&set);
    for (const int signal : kLeftAlone) ::sigdelset(&set, signal);
    for (const int signal : kEnding) {
        if (is_ignored(signal)) ::sigdelset(&set, signal);
    }
    return set;
}

std::optional<signalfd_siginfo> next_signal(int signal_fd) {
    signalfd_siginfo info;
    if (::read(signal_fd, &info, sizeof info) != ssize_t(sizeof info)) return std::nullopt;
    return info;
}

int number_of(const signalfd_siginfo& info) { return static_cast<int>(info.ssi_signo); }

bool asks_to_end(const signalfd_siginfo& info) {
    return std::ranges::find(kEnding, number_of(info)) != std::end(kEnding);
}

// Stops us as any other job, with the default action and its rules; returns when we are continued.
void stop_here() {
    sigset_t stop;
    ::sigemptyset(&stop);
    ::sigaddset(&stop, SIGTSTP);
    ::raise(SIGTSTP);
    ::pthread_sigmask(SIG_UNBLOCK, &stop, nullptr);
    ::pthread_sigmask(SIG_BLOCK, &stop, nullptr);
}

class Supervisor {
public:
    Supervisor(const Supervision& what, std::optional<PtyRelay>& relay) : what_(what), relay_(relay) {}

    Result<void> await_end();
    void drain_output();

private:
    void handle(const signalfd_siginfo& info);
    void forward(const signalfd_siginfo& info) const;
    void suspend();

    const Supervision& what_;
    std::optional<PtyRelay>& relay_;
};

Result<void> Supervisor::await_end() {
    std::array<pollfd, 2 + PtyRelay::kSlots> slots{};
    slots[0] = {what_.pidfd, POLLIN, 0};
    slots[1] = {what_.signal_fd, POLLIN, 0};
    const auto relay_slots = std::span(slots).last<PtyRelay::kSlots>();
    for (;;) {
        if (relay_) relay_->prepare(relay_slots);
        if (::poll(slots.data(), relay_ ? slots.size() : 2, -1) < 0) {
            if (errno == EINTR) continue;
            return errno_error("wait for the container: poll");
        }
        if (slots[0].revents != 0) return {};
        if (slots[1].revents != 0) {
            while (const auto signal = next_signal(what_.signal_fd)) handle(*signal);
        }
        if (relay_) relay_->serve(relay_slots);
    }
}

// The pty still holds what the container wrote last. A reader that is stuck holds us up only until we are told to end.
void Supervisor::drain_output() {
    while (relay_->output_left()) {
        pollfd slots[] = {relay_->output_slot(), {what_.signal_fd, POLLIN, 0}};
        if (::poll(slots, 2, -1) < 0 && errno != EINTR) return;
        if (slots[0].revents != 0) {
            relay_->write_output();
            continue;
        }
        while (const auto signal = next_signal(what_.signal_fd)) {
            if (asks_to_end(*signal)) return;
        }
    }
}

void Supervisor::handle(const signalfd_siginfo& info) {
    switch (number_of(info)) {
        case SIGPIPE:  // from our own write to a reader that has gone
            return;
        case SIGWINCH:
            if (relay_) relay_->adopt_window_size();
            return;
        case SIGTSTP:  // the container is in a session of its own: the job that the user stops is us
            return suspend();
        case SIGCONT:
            if (relay_) relay_->reclaim_terminal();
            return forward(info);
        default: return forward(info);
    }
}

void Supervisor::forward(const signalfd_siginfo& info) const {
    const auto send = came_from_terminal(info) ? send_signal_to_group : send_signal;
    if (const Result<bool> sent = send(what_.pidfd, number_of(info)); !sent)
        log_warning(concat("pass on to the container: ", sent.error().message));
}

void Supervisor::suspend() {
    if (relay_) relay_->release_terminal();
    stop_here();
    if (relay_) relay_->reclaim_terminal();
}

}  // namespace

void hold_signals_until_exit() {
    const sigset_t held_back = held_back_signals();
    ::pthread_sigmask(SIG_BLOCK, &held_back, nullptr);  // cannot fail
}

bool is_asked_to_end() {
    sigset_t pending;
    ::sigpending(&pending);
    return std::ranges::any_of(kEnding, [&](int signal) { return ::sigismember(&pending, signal) == 1; });
}

Result<UniqueFd> open_end_signals() {
    sigset_t ends;
    ::sigemptyset(&ends);
    for (const int number : kEnding) ::sigaddset(&ends, number);
    UniqueFd fd(::signalfd(-1, &ends, SFD_CLOEXEC));
    if (!fd) return errno_error("signalfd");
    return fd;
}

Result<SignalForwarder> SignalForwarder::create() {
    const sigset_t held_back = held_back_signals();
    UniqueFd fd(::signalfd(-1, &held_back, SFD_CLOEXEC | SFD_NONBLOCK));
    if (!fd) return errno_error("open a signalfd");
    // A parent that ignores SIGCHLD would leave us a kernel that reaps our children, exit status and all.
    struct sigaction child_action {};
    child_action.sa_handler = SIG_DFL;
    if (::sigaction(SIGCHLD, &child_action, nullptr) < 0) return errno_error("reset SIGCHLD");
    hold_signals_until_exit();
    return SignalForwarder(std::move(fd));
}

Result<void> refuse_to_go_on(int signal_fd) {
    while (const auto signal = next_signal(signal_fd)) {
        if (asks_to_end(*signal)) return plain_error(concat("interrupted by signal ", number_of(*signal)));
    }
    return {};
}

Result<int> supervise(Supervision supervision) {
    std::optional<PtyRelay> relay;
    if (supervision.pty_master) {
        relay.emplace(TRY(PtyRelay::create(std::move(supervision.pty_master), supervision.input, supervision.output)));
    }
    Supervisor supervisor(supervision, relay);
    TRY(supervisor.await_end());
    const ChildEnd end = TRY_IN("wait for the container", reap_held(supervision.pidfd));
    if (relay) supervisor.drain_output();
    return exit_code_of(end.how);
}

PayloadEnd payload_end(const siginfo_t& end, const rusage& usage) {
    const auto microseconds = [](const timeval& time) {
        return uint64_t(time.tv_sec) * 1000000 + uint64_t(time.tv_usec);
    };
    return {end.si_code != CLD_EXITED, end.si_status, microseconds(usage.ru_utime) + microseconds(usage.ru_stime),
            uint64_t(usage.ru_maxrss) << 10};
}

Result<int> supervise_child(Child child, const SignalForwarder& signals, UniqueFd master) {
    const int exit_code = TRY(supervise({child.pidfd.get(), signals.fd(), std::move(master)}));
    child.guard.release();  // supervise has reaped it
    return exit_code;
}

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
