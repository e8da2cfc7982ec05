// The process in front of a running container: passes signals on, relays its terminal, reports its end.
#include "process/supervise.hpp"

#include <poll.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>

#include <array>
#include <cerrno>
#include <optional>
#include <span>

#include "base/log.hpp"
#include "base/strings.hpp"
#include "process/pty_relay.hpp"

namespace pinfold {

namespace {

// Not held back: faults of our own; job control, which has to stop us before we touch a terminal that is not ours
// now; SIGCHLD, since the pidfd tells; SIGURG, which language runtimes send around for themselves.
constexpr int kLeftAlone[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGTTIN, SIGTTOU, SIGCHLD, SIGURG};

// What a parent may have set to be ignored, with the meaning "not for you".
constexpr int kInheritedIgnores[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM};

bool is_ignored(int signal) {
    struct sigaction action {};
    return ::sigaction(signal, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

sigset_t held_back_signals() {
    sigset_t set;
    ::sigfillset(&set);
    for (const int signal : kLeftAlone) ::sigdelset(&set, signal);
    for (const int signal : kInheritedIgnores) {
        if (is_ignored(signal)) ::sigdelset(&set, signal);
    }
    return set;
}

std::optional<int> next_signal(int signal_fd) {
    signalfd_siginfo info;
    if (::read(signal_fd, &info, sizeof info) != ssize_t(sizeof info)) return std::nullopt;
    return static_cast<int>(info.ssi_signo);
}

bool asks_to_end(int signal) { return signal == SIGHUP || signal == SIGINT || signal == SIGQUIT || signal == SIGTERM; }

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
    void handle(int signal);
    void forward(int signal) const;
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

void Supervisor::handle(int signal) {
    switch (signal) {
        case SIGPIPE:  // from our own write to a reader that has gone
            return;
        case SIGWINCH:
            if (relay_) relay_->adopt_window_size();
            return;
        case SIGTSTP:  // the container is in a session of its own: the job that the user stops is us
            return suspend();
        case SIGCONT:
            if (relay_) relay_->reclaim_terminal();
            return forward(signal);
        default: return forward(signal);
    }
}

void Supervisor::forward(int signal) const {
    // By system call: glibc 2.36 declares its wrapper without C linkage.
    if (::syscall(SYS_pidfd_send_signal, what_.pidfd, signal, nullptr, 0) == 0 || errno == ESRCH) return;
    log_warning(errno_error(concat("pass signal ", signal, " on to the container")).message);
}

void Supervisor::suspend() {
    if (relay_) relay_->release_terminal();
    stop_here();
    if (relay_) relay_->reclaim_terminal();
}

}  // namespace

Result<SignalForwarder> SignalForwarder::create() {
    SignalForwarder forwarder;
    const sigset_t held_back = held_back_signals();
    UniqueFd fd(::signalfd(-1, &held_back, SFD_CLOEXEC | SFD_NONBLOCK));
    if (!fd) return errno_error("open a signalfd");
    // A parent that ignores SIGCHLD would leave us a kernel that reaps our children, exit status and all.
    struct sigaction child_action {};
    child_action.sa_handler = SIG_DFL;
    if (::sigaction(SIGCHLD, &child_action, &forwarder.original_child_action_) < 0) return errno_error("reset SIGCHLD");
    const int code = ::pthread_sigmask(SIG_BLOCK, &held_back, &forwarder.original_mask_);
    if (code != 0) return errno_error(code, "hold back signals");
    forwarder.fd_ = std::move(fd);  // last: with it the destructor undoes the rest
    return forwarder;
}

SignalForwarder::~SignalForwarder() {
    if (!fd_) return;
    while (next_signal(fd_.get())) continue;
    ::pthread_sigmask(SIG_SETMASK, &original_mask_, nullptr);
    ::sigaction(SIGCHLD, &original_child_action_, nullptr);
}

Result<void> refuse_to_go_on(int signal_fd) {
    while (const auto signal = next_signal(signal_fd)) {
        if (asks_to_end(*signal)) return plain_error(concat("interrupted by signal ", *signal));
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

}  // namespace pinfold
