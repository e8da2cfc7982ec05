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
#include "process/child_memory.hpp"
#include "process/listener.hpp"
#include "process/step.hpp"

namespace pinfold {

namespace {

// Of the terminal that we were started from, if we were.
std::optional<winsize> own_window() {
    const Result<winsize> size = window_size(STDIN_FILENO);
    return size ? std::optional(*size) : std::nullopt;
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

Result<void> send_pidfd(const Child& child, const std::string& socket) {
    if (socket.empty()) return {};
    const UniqueFd connection = TRY(connect_to_socket("pidfd socket", socket));
    return send_fd(connection.get(), child.pidfd.get(), "pidfd");
}

Result<PayloadSetup> make_setup(const ProcessPlan& process, const ChildOptions& options) {
    PayloadSetup setup{.window = process.window};
    if (!options.console_socket.empty())
        setup.console_socket = TRY(connect_to_socket("console socket", options.console_socket));
    else if (process.terminal && !setup.window) setup.window = own_window();
    return setup;
}

Result<Packet> expect(const Channel& channel, Message wanted, int signal_fd) {
    TRY(await_message(channel, signal_fd));
    std::optional<Packet> packet = TRY(channel.receive());
    if (!packet)
        return plain_error("the container's process was killed while it was set up")
            .with_hint("was the memory limit too low?");
    if (packet->message == Message::failed) return std::move(packet->error);
    if (packet->message != wanted) return unexpected(packet->message, wanted);
    return std::move(*packet);
}

Result<UniqueFd> await_payload(const Channel& channel, const ReadyChild& child, int signal_fd) {
    const Packet packet = TRY(expect(channel, Message::ready, signal_fd));
    const ChildMemory memory{child.pid, child.pidfd};
    UniqueFd listener;
    if (const PausePlace place{packet.ready.listener.place.word, packet.fd.get()}; place.word != 0) {
        TRY(memory.await_waiting(place, channel));
        UniqueFd taken = TRY_IN("seccomp listener", take_listener(child.pidfd, packet.ready.listener.number));
        listener = TRY(child.on_listener(std::move(taken)));
        TRY(memory.let_go_on(place));
    }
    if (const PausePlace before_exec{packet.ready.before_exec.word, packet.fd.get()}; before_exec.word != 0) {
        TRY(memory.await_waiting(before_exec, channel));
        const Receipt receipt = TRY(child.read_receipt());
        TRY(child.on_receipt ? child.on_receipt(receipt) : require(receipt));
        TRY(memory.let_go_on(before_exec));
    }
    if (listener) TRY(await_exec(channel, listener.get()));
    const std::optional<Packet> last = TRY(channel.receive());
    if (last) return last->error;
    return listener;
}

Result<int> supervise_child(Child child, const SignalForwarder& signals, UniqueFd master) {
    const int exit_code = TRY(supervise({child.pidfd.get(), signals.fd(), std::move(master)}));
    child.guard.release();  // supervise has reaped it
    return exit_code;
}

}  // namespace pinfold
