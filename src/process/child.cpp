// The parent's side of a child on its way to becoming a payload.
#include "process/child.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "base/fs.hpp"
#include "base/log.hpp"
#include "base/strings.hpp"
#include "kernel/fd_passing.hpp"
#include "kernel/syscalls.hpp"
#include "kernel/terminal.hpp"
#include "process/listener.hpp"
#include "process/step.hpp"
#include "seccomp/cache.hpp"

namespace pinfold {

namespace {

Result<void> set_oom_score(pid_t pid, int score) {
    Result<void> written = write_file_at(AT_FDCWD, concat("/proc/", pid, "/oom_score_adj"), std::to_string(score));
    if (written || written.error().code != EACCES) return written;
    if (::geteuid() != 0 || !TRY(in_initial_user_namespace())) {
        log_warning(concat("oom_score_adj ", score,
                           " is lower than the caller's own, which only root may set; it is left as it is"));
        return {};
    }
    return std::move(written).error().with_hint("lowering it needs CAP_SYS_RESOURCE on the host");
}

// Of the terminal that we were started from, if we were.
std::optional<winsize> own_window() {
    const Result<winsize> size = window_size(STDIN_FILENO);
    return size ? std::optional(*size) : std::nullopt;
}

// Pipes only: files and terminals that the caller has redirected to us stay its own. Without the right to, the payload
// can still use its streams, just not open them anew.
Result<void> give_away_pipes(uid_t owner) {
    for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
        struct stat info {};
        if (::fstat(fd, &info) != 0 || !S_ISFIFO(info.st_mode) || info.st_uid == owner) continue;
        if (::fchown(fd, owner, gid_t(-1)) != 0) log_debug(concat("standard stream ", fd, " stays the caller's"));
    }
    return {};
}

// Hooks may take for ever; whoever waits for them must be able to end that.
Result<void> await_message(const Channel& channel, int signal_fd) {
    if (signal_fd < 0) return {};
    for (;;) {
        pollfd slots[] = {{channel.fd(), POLLIN, 0}, {signal_fd, POLLIN, 0}};
        if (::poll(slots, 2, -1) < 0 && errno != EINTR) return errno_error("poll");
        if (slots[0].revents != 0) return {};
        if (slots[1].revents != 0) TRY(refuse_to_go_on(signal_fd));
    }
}

}  // namespace

Result<pid_t> clone_into(uint64_t flags, int cgroup, int& pidfd) {
    clone_args arguments{};
    arguments.flags = flags | CLONE_PIDFD;
    arguments.pidfd = reinterpret_cast<uintptr_t>(&pidfd);
    arguments.exit_signal = SIGCHLD;
    if (cgroup >= 0) {
        arguments.flags |= CLONE_INTO_CGROUP;
        arguments.cgroup = static_cast<uint64_t>(cgroup);
    }
    const pid_t pid = sys_clone3(arguments);
    if (pid >= 0) return pid;
    Error error = errno_error("clone3");
    if (error.code == ENOSPC) error.hint = "a limit of /proc/sys/user/max_*_namespaces is reached";
    if (error.code == EPERM) error.hint = "new namespaces take root, or a user namespace in linux.namespaces";
    if (error.code == EAGAIN) error.hint = "the limit of processes is reached: pids.max of a cgroup, or RLIMIT_NPROC";
    return error;
}

Result<void> prepare_process(pid_t pid, const ProcessPlan& process, std::optional<uid_t> stream_owner) {
    raise_hard_limits(pid, process.rlimits);
    if (process.oom_score_adj) {
        TRY(take_step(Step::oom_score_adj, [&] { return set_oom_score(pid, *process.oom_score_adj); }));
    }
    if (!stream_owner) return {};
    return take_step(Step::streams, [&] { return give_away_pipes(*stream_owner); });
}

Result<void> send_pidfd(const Child& child, const std::string& socket) {
    if (socket.empty()) return {};
    const UniqueFd connection = TRY(connect_to_socket("pidfd socket", socket));
    return send_fd(connection.get(), child.pidfd.get(), "pidfd");
}

Result<Outfit> make_outfit(const ProcessPlan& process, const std::optional<Seccomp>& seccomp,
                           const ChildOptions& options) {
    Outfit outfit;
    if (seccomp)
        outfit.filter =
            TRY(take_step(Step::filter, [&] { return compile_seccomp_cached(*seccomp, options.seccomp_cache); }));
    outfit.window = process.window;
    if (!options.console_socket.empty())
        outfit.console_socket = TRY(connect_to_socket("console socket", options.console_socket));
    else if (process.terminal && !outfit.window) outfit.window = own_window();
    return outfit;
}

Result<Packet> expect(const Channel& channel, Message wanted, int signal_fd) {
    TRY(await_message(channel, signal_fd));
    std::optional<Packet> packet = TRY(channel.receive());
    if (!packet)
        return plain_error("the container's process was killed while it was set up")
            .with_hint("was the memory limit too low?");
    if (packet->message == Message::failed) return std::move(packet->error);
    if (packet->message != wanted) return plain_error("parent and child disagree on what comes next");
    return std::move(*packet);
}

Result<UniqueFd> await_payload(const Channel& channel, bool terminal_for_us, const ReadyHandlers& handlers,
                               int signal_fd) {
    UniqueFd master;
    if (terminal_for_us) master = TRY(expect(channel, Message::terminal, signal_fd)).fd;
    Packet packet = TRY(expect(channel, Message::ready, signal_fd));
    Readiness& ready = packet.ready;
    ready.listener.place.faults = ready.gate.faults = packet.fd.get();
    int watched = -1;
    if (ready.listener.place.word != 0) watched = TRY(handlers.on_listener(ready.listener));
    if (ready.gate.word != 0) TRY(handlers.on_gate(ready.gate));
    if (watched >= 0) TRY(await_exec(channel, watched));
    const std::optional<Packet> last = TRY(channel.receive());
    if (last) return last->error;
    log_debug("the payload runs");
    return master;
}

Result<int> supervise_child(Child child, const SignalForwarder& signals, UniqueFd master) {
    const int exit_code = TRY(supervise({child.pidfd.get(), signals.fd(), std::move(master)}));
    child.guard.release();  // supervise has reaped it
    return exit_code;
}

}  // namespace pinfold
