// The sandbox init: the first process of a sandbox.
#include "process/sandbox_init.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <initializer_list>

#include "base/clock.hpp"
#include "base/fs.hpp"
#include "base/log.hpp"
#include "base/process.hpp"
#include "base/strings.hpp"
#include "kernel/credentials.hpp"
#include "kernel/syscalls.hpp"
#include "process/supervise.hpp"

namespace pinfold {

namespace {

Result<UniqueFd> hold_back_signals() {
    sigset_t all;
    ::sigfillset(&all);
    UniqueFd signals(::signalfd(-1, &all, SFD_CLOEXEC));
    if (!signals) return errno_error("open a signalfd");
    ::sigprocmask(SIG_SETMASK, &all, nullptr);  // cannot fail
    return signals;
}

using namespace std::chrono_literals;

// A supervisor that is stopped, starved or held up does not lengthen a life: this much later than it should have, the
// sandbox init ends the payload itself. Longer until it is told that the payload's time has started.
constexpr std::chrono::nanoseconds kGrace = 1s, kGraceForStart = 60s;
constexpr int kFailures = 100;  // of one call, in a row

// The time of a sandbox that stays goes on while the machine is suspended.
Result<UniqueFd> start_timer(const SandboxInitPlan& plan) {
    if (!plan.lifetime && !plan.deadline) return UniqueFd();
    UniqueFd timer = TRY(make_timer(plan.lifetime ? CLOCK_BOOTTIME : CLOCK_MONOTONIC));
    TRY(set_timer(timer, plan.lifetime ? *plan.lifetime : *plan.deadline + kGraceForStart));
    return timer;
}

// Its own for as long as the sandbox lives: no rights, no streams, no descriptor of the host's.
Result<void> give_up_all() {
    stop_logging();
    // One capability, of no use without the effective set, sets it above the payload, which is the same user: the
    // kernel then keeps that one's hands off our memory and descriptors, and lets the sandbox's owner at them, who
    // needs to.
    const uint64_t kept = capability_bit("CAP_WAKE_ALARM").value_or(0);
    TRY(apply_capabilities({.permitted = kept}));
    TRY(forbid_new_privileges());
    if (::prctl(PR_SET_NAME, "pinfold-init") != 0) return errno_error("set the name");
    return {};
}

// Only these stay open.
Result<void> keep_descriptors(std::initializer_list<int> kept) {
    const int top = std::max(kept) + 1;
    for (int fd = 0; fd < top; ++fd) {
        if (std::ranges::find(kept, fd) == kept.end()) ::close(fd);
    }
    if (::close_range(static_cast<unsigned>(top), UINT_MAX, 0) != 0) return errno_error("close_range");
    return {};
}

class SandboxInit {
public:
    SandboxInit(pid_t payload, const SandboxInitPlan& plan, UniqueFd signals, UniqueFd timer, Channel link)
        : payload_(payload),
          alone_(plan.alone),
          deadline_(plan.deadline),
          signals_(std::move(signals)),
          timer_(std::move(timer)),
          link_(std::move(link)) {}

    [[noreturn]] void stay() {
        if (alone_) link_.close();
        reap();  // a payload's process that was killed before its signal was held back
        for (int failures = 0;;) {
            pollfd slots[] = {{signals_.get(), POLLIN, 0}, {link_.fd(), POLLIN, 0}, {timer_.get(), POLLIN, 0}};
            if (::poll(slots, 3, -1) < 0) {
                // Nobody is there to be told, and the kernel's want of memory passes: it is not the sandbox's end.
                if (errno != EINTR && ++failures > kFailures) ::_exit(1);
                continue;
            }
            failures = 0;
            if (slots[0].revents != 0) take_signal();
            if (slots[1].revents != 0) take_word();
            if (slots[2].revents != 0) ::_exit(deadline_ ? kDeadlinePassed : exit_code_);
        }
    }

private:
    void take_signal() {
        signalfd_siginfo info;
        if (::read(signals_.get(), &info, sizeof info) != ssize_t(sizeof info)) return;
        const int number = static_cast<int>(info.ssi_signo);
        if (number == SIGCHLD) return reap();
        // Whoever else is in the sandbox may ask for the same: it could send it to all of them by itself.
        if (payload_ > 0) ::kill(info.ssi_code == SI_QUEUE ? -payload_ : payload_, number);
        else if (number == SIGTERM || number == SIGINT) ::_exit(0);
    }

    void take_word() {
        const Result<std::optional<Packet>> packet = link_.receive();
        if (!packet || !*packet || !deadline_) ::_exit(exit_code_);
        if (payload_ > 0 && !set_timer(timer_, *deadline_ + kGrace)) ::_exit(1);
    }

    // Who cannot say how the payload ended ends as well: the supervisor tells that from a sandbox init that was killed.
    void reap() {
        int failures = 0;
        for (siginfo_t end{};; end = {}) {
            if (::waitid(P_ALL, 0, &end, WEXITED | WNOHANG) != 0) {
                if (errno == ECHILD) return;
                if (errno != EINTR && ++failures > kFailures) ::_exit(1);
            } else if (end.si_pid == 0) {
                return;
            }
            if (end.si_pid != 0 && end.si_pid == payload_) finish(end);
        }
    }

    // Whatever the payload has left running ends with it.
    void finish(const siginfo_t& end) {
        payload_ = 0;
        ::kill(-1, SIGKILL);
        while (::waitpid(-1, nullptr, 0) > 0 || errno == EINTR) continue;
        exit_code_ = exit_code_of(end);
        if (alone_) ::_exit(exit_code_);
        if (deadline_) timer_.reset();
        rusage usage{};
        ::getrusage(RUSAGE_CHILDREN, &usage);
        if (!link_.send_ended(payload_end(end, usage))) ::_exit(1);
    }

    pid_t payload_;  // 0: there is none
    bool alone_;
    std::optional<std::chrono::nanoseconds> deadline_;
    int exit_code_ = 0;
    UniqueFd signals_;
    UniqueFd timer_;
    Channel link_;
};

// Nobody else runs in the sandbox yet.
Result<void> write_script(const std::string& path, std::string_view text) {
    const UniqueFd file = TRY(open_at(AT_FDCWD, path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0600));
    Result<void> written = write_all(file.get(), text, path);
    if (written) return written;
    return std::move(written).error().with_hint("is it larger than the disk that the job has?");
}

Result<pid_t> clone_payload(UniqueFd& pidfd) {
    int number = -1;
    clone_args arguments{};
    arguments.flags = CLONE_PIDFD;
    arguments.pidfd = reinterpret_cast<uintptr_t>(&number);
    arguments.exit_signal = SIGCHLD;
    const pid_t pid = sys_clone3(arguments);
    if (pid < 0) return errno_error("start the payload's process");
    if (pid > 0) pidfd = UniqueFd(number);
    return pid;
}

// The payload's own: what is typed at its terminal as a signal, or at the caller's, is for its processes alone.
Result<void> lead_session() {
    if (::setsid() < 0) return errno_error("setsid");
    return {};
}

}  // namespace

Result<void> await_files(const Channel& link) {
    TRY(link.send(Message::created));
    if (!TRY(link.receive())) return plain_error("the parent is gone");
    return {};
}

Result<void> become_sandbox_init(const SandboxInitPlan& plan, SandboxInitContext context, ChildSide& handshake) {
    if (!plan.script_path.empty()) TRY_IN("script", write_script(plan.script_path, plan.script));
    wipe(context.words);  // before there is anyone to read them
    pid_t payload = 0;
    UniqueFd pidfd;
    if (plan.payload) payload = TRY(clone_payload(pidfd));
    if (plan.payload && payload == 0) {
        context.link.close();
        return lead_session();
    }
    UniqueFd signals = TRY(hold_back_signals());
    UniqueFd timer = TRY(start_timer(plan));
    TRY(give_up_all());
    TRY(keep_descriptors({signals.get(), timer.get(), context.link.fd(), pidfd.get(), handshake.channel().fd()}));
    if (!plan.payload) TRY(handshake.ready());
    // The payload cannot go on before the parent knows of it, and then finds an init that has let go of everything.
    // The parent takes the end of this channel for the payload's start.
    handshake.close();
    if (plan.payload) TRY(context.link.send(Message::born, 0, pidfd.get()));
    pidfd.reset();
    SandboxInit(payload, plan, std::move(signals), std::move(timer), std::move(context.link)).stay();
}

}  // namespace pinfold
